// What ecc_core/_backends/cuda/source/compare_shorts.cuh has, in plain C++.
#pragma once
#include "image.cuh"

inline Element later_sample(Element a, Element b) { return (kDown ? b < a : a < b) ? b : a; }
inline pair owner(pair a, pair b) {
    const unsigned short low = later_sample((Element)a, (Element)b),
                         high = later_sample((Element)(a >> 16), (Element)(b >> 16));
    return low | high << 16;
}
inline pair owns_shared(pair a, pair b) {
    const pair changed = owner(a, b) ^ a;
    return (changed & 0xFFFFu ? 1 : 0) + (changed >> 16 ? 65536 : 0);
}
inline pair compare_pair(pair a, pair b, float& sum, float low, float high = 0.0f) {
    const pair owned = owns_shared(a, b);
    if (owned & 1) sum += low;
    if (owned >> 16) sum += high;
    return owner(a, b);
}
