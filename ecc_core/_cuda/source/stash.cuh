// A lane's pairs in shared memory, where its events find them.
#pragma once
#include "planes.cuh"

constexpr int kStashRow = 32 * kLaneWidth * sizeof(pair);  // bytes

// A row: the columns of one word of planes, then of the other.
__device__ __forceinline__ void keep(unsigned address, const pair (&p)[kLaneWidth]) {
    shared_store(address, {p[0], p[2], p[1], p[3]});
}
__device__ __forceinline__ void recall(unsigned address, pair (&p)[kLaneWidth]) {
    pair kept[kLaneWidth];
    shared_load(address, kept);
    p[0] = kept[0], p[1] = kept[2], p[2] = kept[1], p[3] = kept[3];
}

// The events of a word, in each lane its own: calls `then` with the half of a pair and the
// coefficient. `columns`: address of the columns of the word in the first row.
template <class Then>
__device__ __forceinline__ void each_event(unsigned columns, unsigned b0, unsigned b1, unsigned b2,
                                           unsigned b3, unsigned events, const Then& then) {
    const unsigned last = columns + 7 * kStashRow + 3 * 2;  // of bit 31
    while (events) {
        const int shift = shift_to_sign(events);
        events ^= 0x80000000u >> shift;
        const unsigned half =
            shared_short(last - shift * kStashRow + (shift >> 3) * (8 * kStashRow - 2));
        then(half, coefficient(b0, b1, b2, b3, shift));
    }
}
