// From a key to its bin: the number of thresholds that do not admit it (sublevel: thresholds below
// the sample; superlevel: thresholds up to the sample, which are the ones that do).
#pragma once
#include "element.cuh"

struct Bins {
    const Key* thresholds;   // non-decreasing, in the samples' key order; kTable: null
    const int* table;        // kTable: the bin of each of 256 values, least first; kCells: below
    int count;               // thresholds; bins are 0..count
    float low, scale, last;  // kUniform: threshold k is near k = (low + scale * key) * last
    long long first;  // kConsecutive (types of up to 32 bits): the thresholds, as to_integer has
                      // them, are first, first + 1, ...
    int span;         // kCells: a power of two; cells have less than 2 * span thresholds
};

__device__ __forceinline__ bool passed(Key sample, Key threshold) {
    return kSuper ? !is_less(sample, threshold) : is_less(threshold, sample);
}

__device__ __forceinline__ int search(Key key, const Key* thresholds, int count) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) >> 1;
        if (passed(key, thresholds[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Integer keys: of types of up to 16 bits the distance from the least value, else the key itself.
__device__ __forceinline__ int to_integer(float key) {
    return (int)(__float_as_uint(key) & 0xFFFFu);
}
template <class T>
__device__ __forceinline__ long long to_integer(T key) {
    return (long long)key;
}

__device__ __forceinline__ int consecutive_bin(float key, const Bins& bins) {
    return max(0, min(bins.count, to_integer(key) - (int)bins.first + (kSuper ? 1 : 0)));
}

template <class T>
__device__ __forceinline__ int consecutive_bin(T key, const Bins& bins) {
    const long long above = to_integer(key) - bins.first + (kSuper ? 1 : 0);
    return (int)max(0ll, min((long long)bins.count, above));
}

// A guess that never decreases with the key, in the low 23 bits. kUniform: near the bin. Every
// threshold is mapped to itself (the host has checked it), so the guess is off by at most one, and
// one exact comparison settles it. kCells: a cell with few thresholds, in pairs at most one (the host
// computes the cells by the same arithmetic), for which `table` has the first to compare with.
constexpr unsigned kGuess = 0x4B000000u;
__device__ __forceinline__ unsigned guess(Key key, const Bins& bins) {
    const float unit = multiply_add_saturated((float)key, bins.scale, bins.low);
    return __float_as_uint(multiply_add(unit, bins.last, 8388608.0f));
}

// `thresholds` and `table` are in shared memory or in global memory.
__device__ __forceinline__ int bin_of(Key key, const Bins& bins, const Key* thresholds,
                                      const int* table) {
    if (kBins == kTable) return table[(int)to_integer(key)];
    if (kBins == kConsecutive) return consecutive_bin(key, bins);
    if (kBins == kSearch) return search(key, thresholds, bins.count);
    int near = (int)(guess(key, bins) - kGuess);
    if (kBins != kCells) return near + (passed(key, thresholds[near]) ? 1 : 0);
    near = table[near];
    for (int step = bins.span; step; step >>= 1) {
        const int last = near + step - 1;
        if (last < bins.count && passed(key, thresholds[last])) near += step;
    }
    return near;
}
