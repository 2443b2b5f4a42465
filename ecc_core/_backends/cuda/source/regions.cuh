// Writes the labels and curves of the regions of an image, in whichever kernel counts the last of them.
#pragma once
#include "device.cuh"

constexpr unsigned long long kHugeLabel = 1ull << 62;  // Reported in place of larger labels.

constexpr int kBinsAtOnce = 8;  // Bins that a lane reads at a time.

// Writes the curve of a region from its counts, which other blocks may have written. Called by a warp.
template <class Count>
ECC_DEVICE void write_region_curve(const Count* counts, int bins, long long* values) {
    const int lane = threadIdx.x & 31;
    Count sum = 0;
    for (int first = 0; first < bins - 1; first += 32 * kBinsAtOnce) {
        Count read[kBinsAtOnce];
#pragma unroll
        for (int i = 0; i < kBinsAtOnce; ++i) {
            const int k = first + 32 * i + lane;
            read[i] = k < bins - 1
                          ? *(const volatile Count*)(counts + (ECC_SUPER ? bins - 1 - k : k))
                          : 0;
        }
#pragma unroll
        for (int i = 0; i < kBinsAtOnce; ++i) {
            const int k = first + 32 * i + lane;
            const Count through = sum + running_sum(read[i], lane);
            if (k < bins - 1) values[ECC_SUPER ? bins - 2 - k : k] = through;
            sum = __shfl_sync(kWarp, through, 31);
        }
    }
}

// Tells the host the number of regions, the largest label without a row of counts and whether there is a
// NaN.
ECC_DEVICE void reply_regions(volatile long long* reply, long long regions,
                              unsigned long long largest, long long nan) {
    reply[0] = regions;
    reply[1] = (long long)(largest < kHugeLabel ? largest : kHugeLabel);
    reply[2] = nan;
}
