// Curves from the counts of bins, and their values at thresholds.
#include "common.cuh"

constexpr bool kSuper = ECC_SUPER;
constexpr int kThreads = ECC_THREADS, kWarps = kThreads / 32;
constexpr int kEach = 4;  // Bins that a thread adds at a time.

// Writes running sums; a block takes a row of `bins` counts. Value k of a row is the sum of the bins up to
// k, or for superlevel sets of those behind it. The last bin (superlevel: the first) counts what never
// enters.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_rows(const long long* counts, long long bins, long long sign, long long* values) {
    __shared__ long long sums[kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long levels = bins - 1;
    counts += blockIdx.x * bins, values += blockIdx.x * levels;
    long long before = 0;
    for (long long begin = 0; begin < levels; begin += kThreads * kEach) {
        const long long first = begin + threadIdx.x * kEach;
        long long kept[kEach], own = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const long long k = first + i;
            own += k < levels ? counts[kSuper ? levels - k : k] : 0;
            kept[i] = own;
        }
        const long long through = running_sum(own, lane);
        if (lane == 31) sums[warp] = through;
        __syncthreads();
        long long ahead = before + through - own;
        for (int i = 0; i < kWarps; ++i) {
            if (i < warp) ahead += sums[i];
            before += sums[i];
        }
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const long long k = first + i;
            if (k < levels) values[kSuper ? levels - 1 - k : k] = sign * (ahead + kept[i]);
        }
        __syncthreads();  // `sums` have been read.
    }
}

// Writes the values (rows, count) of curves at thresholds, of which each has the index of its level, or -1
// where the value is 0.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    pick_levels(const long long* values, long long levels, const long long* places, long long count,
                long long size, long long* found) {
    const long long at = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (at >= size) return;
    const long long place = places[at % count];
    found[at] = place < 0 ? 0 : values[at / count * levels + place];
}

// Writes even thresholds over the range of 8-bit values, and the values (rows, count) of curves at them.
// The curves (rows, 256) are known at every value from `least` on. `range` is what range.cu writes.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    pick_even(const long long* values, const long long* range, long long least, long long count,
              long long size, double* thresholds, long long* found) {
    const long long at = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (at >= size) return;
    // Keys are the floats 2^23 + the distance from the least value, so their low bits are the distance.
    const double low = (double)(least + (~range[0] & 0x7FFFFF)),
                 high = (double)(least + (range[2] & 0x7FFFFF));
    const int k = (int)(at % count);
    const double threshold = EvenThresholds(low, high, (int)count)[k];
    if (at < count) thresholds[k] = threshold;
    const long long place = (long long)(kSuper ? ceil(threshold) : floor(threshold)) - least;
    found[at] = values[at / count * 256 + place];
}
