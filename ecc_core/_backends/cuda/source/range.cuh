// Finds the smallest and the largest finite value of images, and whether they have a NaN, in one pass.
#pragma once
#include "samples.cuh"

// The range of values, as unsigned integers in their order.
struct Range {
    unsigned long long least, largest;  // The complement of the smallest value; the largest value.
    unsigned long long some, nan;       // Whether there is a finite value, and a NaN.
    unsigned long long blocks;          // The number of blocks that are done.
};
constexpr unsigned long long kSign = 1ull << 63;

ECC_DEVICE bool is_finite(float key) { return subtract_floats(key, key) == 0.0f; }
ECC_DEVICE bool is_finite(double key) { return key - key == 0.0; }
ECC_DEVICE bool is_finite(int) { return true; }
ECC_DEVICE bool is_finite(long long) { return true; }

// Returns whether all of four keys are finite; of floats, by fewer instructions than one by one.
template <class T>
ECC_DEVICE bool are_finite(const T (&keys)[4]) {
    return is_finite(keys[0]) && is_finite(keys[1]) && is_finite(keys[2]) && is_finite(keys[3]);
}
ECC_DEVICE bool are_finite(const float (&keys)[4]) {
    float sum = 0.0f;  // It becomes NaN if a product is NaN.
#pragma unroll
    for (int i = 0; i < 4; ++i) sum = multiply_add(keys[i], 0.0f, sum);
    return sum == 0.0f;
}

template <class T>
ECC_DEVICE T larger(T a, T b) {
    return a < b ? b : a;
}
template <class T>
ECC_DEVICE T smaller(T a, T b) {
    return a < b ? a : b;
}

ECC_DEVICE Ordinal largest_of_warp(Ordinal value) {
#pragma unroll
    for (int step = 16; step; step >>= 1)
        value = max(value, __shfl_down_sync(0xFFFFFFFFu, value, step));
    return value;
}

// Returns the range of the samples of a block in its first thread.
ECC_DEVICE Range range_of_block(const Samples& samples) {
    __shared__ Range block;
    if (threadIdx.x == 0) block = Range();
    __syncthreads();
    Key least = 0, largest = 0;  // They mean nothing until there are `some`.
    bool some = false, nan = false;
    const auto widen = [&](Key key) {
        least = some ? smaller(least, key) : key;
        largest = some ? larger(largest, key) : key;
        some = true;
    };
    visit_samples<true>(samples, samples.depth, samples.height, samples.width,
                        [&](int, int, int, const SampleRow& row, const FourSamples& four) {
                            Key keys[4];
#pragma unroll
                            for (int i = 0; i < 4; ++i)
                                keys[i] = row.key(four.sample[i],
                                                  min(four.x + i * four.step, samples.width - 1));
                            if (!kMask && are_finite(keys)) {
                                if (!some) least = largest = keys[0];
                                some = true;
#pragma unroll
                                for (int i = 0; i < 4; ++i) {
                                    least = smaller(least, keys[i]);
                                    largest = larger(largest, keys[i]);
                                }
                                return;
                            }
#pragma unroll
                            for (int i = 0; i < 4; ++i) {
                                if (!four.shown[i]) continue;
                                nan |= is_nan(keys[i]);
                                if (is_finite(keys[i])) widen(keys[i]);
                            }
                        });
    constexpr Ordinal kLeast = (Ordinal)(1ull << (8 * sizeof(Ordinal) - 1));
    const Ordinal high = largest_of_warp(some ? ordinal(largest) : kLeast);
    const Ordinal low = largest_of_warp(some ? ~ordinal(least) : kLeast);
    if (__any_sync(0xFFFFFFFFu, some) && threadIdx.x % 32 == 0) {
        atomicMax(&block.largest, (unsigned long long)(long long)high ^ kSign);
        atomicMax(&block.least, (unsigned long long)(long long)low ^ kSign);
        block.some = 1;
    }
    if (nan) block.nan = 1;
    __syncthreads();
    return block;
}

// Adds the range of a block to that of the images, by one thread. In the last block, returns true and
// the whole range; `range` is then zero again, as at launch.
ECC_DEVICE bool join_ranges(Range& block, Range* range) {
    if (block.some) {
        atomicMax(&range->largest, block.largest);
        atomicMax(&range->least, block.least);
        range->some = 1;
    }
    if (block.nan) range->nan = 1;
    __threadfence();
    if (atomicAdd(&range->blocks, 1ull) + 1 < gridDim.x) return false;
    __threadfence();
    const volatile Range& whole = *range;
    block = {whole.least, whole.largest, whole.some, whole.nan, 0};
    *range = Range();
    __threadfence_system();  // The host must not see the reply earlier.
    return true;
}
