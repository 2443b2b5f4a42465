// Samples with a non-zero coefficient, each to its bin.
#pragma once
#include "histogram.cuh"
#include "planes.cuh"

// Where a lane's 8 x 4 samples are. Only owned samples are read one by one; whole rows are clamped to `last_row`.
struct LaneTile {
    const Element* origin;  // row 0 of the lane, column 0 of the image
    long long row;
    int last_row, column;
};

// More events than this in some lane of the warp, and it pays to walk every sample instead.
constexpr int kDense = 10;

struct Counter {
    const Bins& bins;
    const Key* thresholds;
    const int* table;
    const Histogram& histogram;

    __device__ __forceinline__ void event(Element sample, int coefficient) const {
        if (kNan == kNanOmit && is_nan(to_key(sample))) return;
        histogram.add(bin_of(sample, bins, thresholds, table), coefficient);
    }

    // One by one, in each lane its own.
    __device__ __forceinline__ void sparse(const LaneTile& tile, Numbers4 c, plane events) const {
        while (events) {
            const int i = __clz(events);
            events &= ~(0x80000000u >> i);
            const Element sample = tile.origin[(i >> 2) * tile.row + (tile.column + (i & 3))];
            const plane digits = ((c.b3 << i) >> 31 << 3) | ((c.b2 << i) >> 31 << 2) | ((c.b1 << i) >> 31 << 1)
                                 | ((c.b0 << i) >> 31);
            event(sample, (int)(digits << 28) >> 28);
        }
    }

    // Row by row, all lanes together. The planes become four words of eight 4-bit numbers, one word a column.
    __device__ __forceinline__ void dense(const LaneTile& tile, const Columns& columns, Numbers4 c, plane events) const {
        constexpr plane kPairs = 0x55555555u, kFours = 0x33333333u;
        const plane b0 = c.b0 & events, b1 = c.b1 & events, b2 = c.b2 & events, b3 = c.b3 & events;
        const plane even01 = (b0 & kPairs) | ((b1 & kPairs) << 1), odd01 = ((b0 >> 1) & kPairs) | (b1 & ~kPairs);
        const plane even23 = (b2 & kPairs) | ((b3 & kPairs) << 1), odd23 = ((b2 >> 1) & kPairs) | (b3 & ~kPairs);
        plane word[kLaneWidth] = {
            ((odd01 >> 2) & kFours) | (odd23 & ~kFours), ((even01 >> 2) & kFours) | (even23 & ~kFours),
            (odd01 & kFours) | ((odd23 & kFours) << 2), (even01 & kFours) | ((even23 & kFours) << 2)};
        #pragma unroll 2
        for (int r = 0; r < kLaneRows; ++r) {
            Element sample[kLaneWidth];
            load_four(tile.origin + min(r, tile.last_row) * tile.row, columns, sample);
            #pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) {
                const int coefficient = (int)word[x] >> 28;
                word[x] <<= 4;
                if (coefficient) event(sample[x], coefficient);
            }
        }
    }

    __device__ __forceinline__ void operator()(const LaneTile& tile, const Columns& columns, Numbers4 c, plane own) const {
        const plane events = (c.b0 | c.b1 | c.b2 | c.b3) & own;
        const unsigned most = __reduce_max_sync(0xFFFFFFFFu, (unsigned)__popc(events));
        if (most > kDense) dense(tile, columns, c, events);
        else sparse(tile, c, events);
    }
};
