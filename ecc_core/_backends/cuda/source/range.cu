// The smallest and the largest finite value of images, and whether a NaN is among them, in one pass.
#include "samples.cuh"

// Zero at launch. Values are kept as integers in their order, from 0 on.
struct Range {
    unsigned long long least, largest;  // the complement of the smallest value; the largest one
    unsigned long long some, nan;       // whether there is a finite value, and a NaN
};

__device__ __forceinline__ bool is_finite(float key) { return subtract_floats(key, key) == 0.0f; }
__device__ __forceinline__ bool is_finite(double key) { return key - key == 0.0; }
__device__ __forceinline__ bool is_finite(int) { return true; }
__device__ __forceinline__ bool is_finite(long long) { return true; }

__device__ __forceinline__ Ordinal largest_of_warp(Ordinal value) {
#pragma unroll
    for (int step = 16; step; step >>= 1)
        value = max(value, __shfl_down_sync(0xFFFFFFFFu, value, step));
    return value;
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    find_range(const Samples samples, Range* range) {
    __shared__ Range block;
    if (threadIdx.x == 0) block = Range();
    __syncthreads();
    constexpr Ordinal kLeast = (Ordinal)(1ull << (8 * sizeof(Ordinal) - 1));
    Ordinal largest = kLeast, reversed = kLeast;  // of the samples; of their complements
    bool some = false, nan = false;
    visit_samples(samples, samples.depth, samples.height, samples.width,
                  [&](int, int, int, const SampleRow& row, const FourSamples& four) {
#pragma unroll
                      for (int i = 0; i < 4; ++i) {
                          const Key key = row.key(four.sample[i],
                                                  min(four.x + i * four.step, samples.width - 1));
                          nan |= four.shown[i] && is_nan(key);
                          if (!four.shown[i] || !is_finite(key)) continue;
                          const Ordinal value = ordinal(key);
                          largest = max(largest, value);
                          reversed = max(reversed, (Ordinal)~value);
                          some = true;
                      }
                  });
    constexpr unsigned long long kSign = 1ull << 63;
    largest = largest_of_warp(largest), reversed = largest_of_warp(reversed);
    if (__any_sync(0xFFFFFFFFu, some) && threadIdx.x % 32 == 0) {
        atomicMax(&block.largest, (unsigned long long)(long long)largest ^ kSign);
        atomicMax(&block.least, (unsigned long long)(long long)reversed ^ kSign);
        block.some = 1;
    }
    if (nan) block.nan = 1;
    __syncthreads();
    if (threadIdx.x) return;
    if (block.some) {
        atomicMax(&range->largest, block.largest);
        atomicMax(&range->least, block.least);
        range->some = 1;
    }
    if (block.nan) range->nan = 1;
}
