// From a sample to its bin: the number of thresholds that do not admit it (sublevel: thresholds below the sample;
// superlevel: thresholds up to the sample, which are the ones that do).
#pragma once
#include "image.cuh"

struct Bins {
    const Key* thresholds;  // non-decreasing, in the samples' key order; kTable: null
    const int* table;       // kTable: the bin of every 8-bit pattern
    int count;              // thresholds; bins are 0..count
    float low, scale, last; // kUniform: threshold k is near low + k / (scale * last)
    long long first;        // kConsecutive (samples of up to 32 bits): the thresholds are first, first + 1, ...
};

__device__ __forceinline__ bool passed(Key sample, Key threshold) {
    return kSuper ? !is_less(sample, threshold) : is_less(threshold, sample);
}

__device__ __forceinline__ int search(Key key, const Key* thresholds, int count) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) >> 1;
        if (passed(key, thresholds[middle])) low = middle + 1;
        else high = middle;
    }
    return low;
}

__device__ __forceinline__ long long to_integer(Half) { return 0; }
__device__ __forceinline__ long long to_integer(BFloat) { return 0; }
template <class T> __device__ __forceinline__ long long to_integer(T v) { return (long long)v; }
__device__ __forceinline__ int pattern(unsigned char v) { return v; }
__device__ __forceinline__ int pattern(signed char v) { return (unsigned char)v; }
template <class T> __device__ __forceinline__ int pattern(T) { return 0; }

__device__ __forceinline__ int consecutive_bin(Element sample, const Bins& bins) {
    if (sizeof(Element) <= 2) {
        return max(0, min(bins.count, (int)to_integer(sample) - (int)bins.first + (kSuper ? 1 : 0)));
    }
    const long long above = to_integer(sample) - bins.first + (kSuper ? 1 : 0);
    return (int)max(0ll, min((long long)bins.count, above));
}

// kUniform: near the bin. The guess never decreases with the key and maps every threshold to itself (the host has
// checked it), so it is off by at most one, and one exact comparison settles it. The low 23 bits are the guess.
constexpr unsigned kGuess = 0x4B000000u;
__device__ __forceinline__ unsigned guess(Key key, const Bins& bins) {
    const float unit = multiply_saturated(subtract_floats((float)key, bins.low), bins.scale);
    return __float_as_uint(multiply_add(unit, bins.last, 8388608.0f));
}

// `thresholds` and `table` are in shared memory or in global memory.
__device__ __forceinline__ int bin_of(Element sample, const Bins& bins, const Key* thresholds, const int* table) {
    if (kBins == kTable) return table[pattern(sample)];
    if (kBins == kConsecutive) return consecutive_bin(sample, bins);
    const Key key = to_key(sample);
    if (kBins == kSearch) return search(key, thresholds, bins.count);
    const int near = (int)(guess(key, bins) - kGuess);
    return near + (passed(key, thresholds[near]) ? 1 : 0);
}
