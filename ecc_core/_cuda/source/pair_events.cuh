// Pairs with a coefficient that is not zero, each sample to its bin. Counts are in units of 1/16:
// so a coefficient is the upper half of a byte.
#pragma once
#include "histogram.cuh"
#include "pairs.cuh"
#include "spread.cuh"

// More events than this in some lane of the warp, and it pays to walk every sample instead.
constexpr int kDense = 14;

constexpr int kStashRow = 32 * kLaneWidth * sizeof(pair);  // bytes

    struct PairCounter {
    unsigned stash;  // shared addresses: the lane's pairs, and code 0 of the lane's copy
    unsigned counts;
    unsigned step;  // bytes from code to code

    __device__ __forceinline__ PairCounter(const pair* stash, const Histogram& histogram)
        : stash(shared_address(stash)), step(4u * histogram.copies),
          counts(shared_address(histogram.counts + histogram.lane_copy)) {}

    __device__ __forceinline__ void put(int row, const pair (&four)[kLaneWidth]) const {
        shared_store(stash + row * kStashRow, four);
    }

    // One by one, in each lane its own: the events of a word, whose columns begin `place` bytes
    // after the lane's first.
    __device__ __forceinline__ void sparse(unsigned b0, unsigned b1, unsigned b2, unsigned b3,
                                           unsigned events, int place) const {
        while (events) {
            const int i = 31 - __clz(events);
            events ^= 1u << i;
            const unsigned code =
                shared_short(stash + place + ((i & 7) * kStashRow + (i >> 3) * 2));
            const int upper = 31 - i;  // from bit i to the sign
            const int amount = ((int)(b3 << upper) >> 31 & 0x80) | (b2 << upper >> 31) << 6 |
                               (b1 << upper >> 31) << 5 | (b0 << upper >> 31) << 4;
            shared_add(counts + (code - kCodeZero) * step, (int)(signed char)amount);
        }
    }

    __device__ __forceinline__ void add(pair codes, int low, int high) const {
        const unsigned offsets = codes * step - kCodeZero * 0x10001u * step;  // below 64 KiB
        shared_add(counts + (offsets & 0xFFFFu), low);
        shared_add(counts + (offsets >> 16), high);
    }

    // Row by row, all lanes together.
    __device__ __forceinline__ void dense(const Numbers4& c, plane events) const {
        unsigned first[8], second[8];
        spread(c.b0.a & events.a, c.b1.a & events.a, c.b2.a & events.a, c.b3.a & events.a, first);
        spread(c.b0.b & events.b, c.b1.b & events.b, c.b2.b & events.b, c.b3.b & events.b, second);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            pair four[kLaneWidth];
            shared_load(stash + r * kStashRow, four);
            add(four[0], permute<0x8880>(first[r], 0), permute<0x9991>(first[r], 0));
            add(four[1], permute<0xAAA2>(first[r], 0), permute<0xBBB3>(first[r], 0));
            add(four[2], permute<0x8880>(second[r], 0), permute<0x9991>(second[r], 0));
            add(four[3], permute<0xAAA2>(second[r], 0), permute<0xBBB3>(second[r], 0));
        }
    }

    __device__ __forceinline__ void operator()(const Numbers4& c, plane own) const {
        const plane events = (c.b0 | c.b1 | c.b2 | c.b3) & own;
        const unsigned most = __reduce_max_sync(kWarp, (unsigned)(__popc(events.a) + __popc(events.b)));
        if (most > kDense)
            dense(c, events);
        else {
            sparse(c.b0.a, c.b1.a, c.b2.a, c.b3.a, events.a, 0);
            sparse(c.b0.b, c.b1.b, c.b2.b, c.b3.b, events.b, 8);
        }
    }
};
