// Counts pairs whose coefficients are not zero by their codes. Counts are in units of 1/16, so that a
// coefficient is the upper half of a byte.
#pragma once
#include "histogram.cuh"
#include "pairs.cuh"
#include "spread.cuh"
#include "cache.cuh"

// If some word of the warp has more events than this, it is faster to count every sample.
constexpr unsigned kDense = 8;

struct PairCounter {
    unsigned cache;   // shared address of the lane's pairs
    unsigned step;    // bytes from code to code
    unsigned counts;  // shared address of the count of a half of zero, in the copy of the lane

    __device__ __forceinline__ PairCounter(const pair* cache, const Histogram& histogram)
        : cache(shared_address(cache)),
          step(4u * histogram.copies),
          counts(shared_address(histogram.counts + histogram.lane_copy) - kCodeZero * step) {}

    __device__ __forceinline__ void put(int row, const pair (&four)[kLaneWidth]) const {
        keep(cache + row * kCacheRow, four);
    }

    // Counts events one by one, all lanes at the same time. A word has at most `most` events.
    __device__ __forceinline__ void sparse(const Numbers4& c, plane events, unsigned most) const {
        for (unsigned k = 0; k < most; ++k) {
            const Events next = take_events(cache, c, events);
            shared_add(counts + next.a.half * step, 16 * next.a.amount);
            shared_add(counts + next.b.half * step, 16 * next.b.amount);
        }
    }

    __device__ __forceinline__ void add(pair codes, int low, int high) const {
        shared_add(counts + (codes & 0xFFFFu) * step, low);
        shared_add(counts + (codes >> 16) * step, high);
    }

    // Counts every sample row by row, all lanes at the same time.
    __device__ __forceinline__ void dense(const Numbers4& c, plane events) const {
        unsigned first[8], second[8];
        spread(c, events, first, second);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            pair four[kLaneWidth];
            shared_load(cache + r * kCacheRow, four);
            add(four[0], permute<0x8880>(first[r], 0), permute<0x9991>(first[r], 0));
            add(four[1], permute<0xAAA2>(first[r], 0), permute<0xBBB3>(first[r], 0));
            add(four[2], permute<0x8880>(second[r], 0), permute<0x9991>(second[r], 0));
            add(four[3], permute<0xAAA2>(second[r], 0), permute<0xBBB3>(second[r], 0));
        }
    }

    __device__ __forceinline__ void operator()(const Numbers4& c, plane own) const {
        count_events(*this, c, own, kDense);
    }
};
