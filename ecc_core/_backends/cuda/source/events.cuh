// Samples with a non-zero coefficient, each to its bin.
#pragma once
#include "histogram.cuh"
#include "planes.cuh"

constexpr int kCacheWidth = 32 * kLaneWidth;
struct __align__(16) Four {
    Key v[kLaneWidth];
};

// The keys of a warp's word in shared memory, eight rows of 128: each lane reads what it has
// written.
struct Cache {
    Key* lane;  // row 0, the lane's first column

    __device__ __forceinline__ void put(int row, const Key (&four)[kLaneWidth]) const {
        Four packed;
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) packed.v[x] = four[x];
        *(Four*)(lane + row * kCacheWidth) = packed;
    }

    __device__ __forceinline__ Four get(int row) const {
        return *(const Four*)(lane + row * kCacheWidth);
    }
    __device__ __forceinline__ Key get(int row, int x) const { return lane[row * kCacheWidth + x]; }
};

// More events than this in some lane of the warp, and it pays to walk every sample instead.
constexpr int kDense = 10;

template <class T>
struct IsFloat {
    static constexpr bool value = false;
};
template <>
struct IsFloat<float> {
    static constexpr bool value = true;
};

// The short way: everything in shared memory, by 32-bit addresses.
constexpr bool kShort =
    kStore == kShared && (kBins == kTable || kBins == kConsecutive ||
                          (kBins == kUniform && kSharedTable && IsFloat<Key>::value));

struct Counter {
    const Bins& bins;
    const SharedLayout& layout;
    const Histogram& histogram;
    unsigned table, counts,
        step;  // kShort: addresses of entry 0 (kUniform: of the guess 0), bytes from bin to bin

    __device__ __forceinline__ Counter(const Bins& bins, const SharedLayout& layout,
                                       const Histogram& histogram)
        : bins(bins), layout(layout), histogram(histogram) {
        step = 4u * histogram.copies;
        counts = shared_address(histogram.counts + histogram.lane_copy);
        table = shared_address(kBins == kTable ? (const void*)layout.table
                                               : (const void*)layout.thresholds);
        if (kBins == kUniform) {
            counts = opaque(counts - kGuess * step);
            table = opaque(table - kGuess * 4u);
        }
    }

    __device__ __forceinline__ unsigned address(Key key) const {
        if (kBins == kTable)
            return counts + step * shared_int(table + 4u * (unsigned)to_integer(key));
        if (kBins == kConsecutive) return counts + step * consecutive_bin(key, bins);
        const unsigned near = guess(key, bins), base = counts + step * near;
        const float threshold = shared_float(table + 4u * near), value = (float)key;
        return base + (kSuper ? choose_less(value, threshold, 0, step)
                              : choose_less(threshold, value, step, 0));
    }

    __device__ __forceinline__ void event(Key key, int amount) const {
        if (kShort)
            shared_add(address(key), amount);
        else if (amount)
            histogram.add(bin_of(key, bins, layout.thresholds, layout.table), amount);
    }

    // One by one, in each lane its own.
    __device__ __forceinline__ void sparse(const Cache& cache, Numbers4 c, plane events) const {
        while (events) {
            const int i = shift_to_sign(events);
            events ^= 0x80000000u >> i;
            const Key key = cache.get(i >> 2, i & 3);
            event(key, coefficient(c.b0, c.b1, c.b2, c.b3, i));
        }
    }

    // Row by row, all lanes together. The planes become four words of eight 4-bit numbers, one word
    // a column.
    __device__ __forceinline__ void dense(const Cache& cache, Numbers4 c, plane events) const {
        constexpr plane kPairs = 0x55555555u, kFours = 0x33333333u;
        const plane b0 = c.b0 & events, b1 = c.b1 & events, b2 = c.b2 & events, b3 = c.b3 & events;
        const plane even01 = (b0 & kPairs) | ((b1 & kPairs) << 1),
                    odd01 = ((b0 >> 1) & kPairs) | (b1 & ~kPairs);
        const plane even23 = (b2 & kPairs) | ((b3 & kPairs) << 1),
                    odd23 = ((b2 >> 1) & kPairs) | (b3 & ~kPairs);
        plane word[kLaneWidth] = {((odd01 >> 2) & kFours) | (odd23 & ~kFours),
                                  ((even01 >> 2) & kFours) | (even23 & ~kFours),
                                  (odd01 & kFours) | ((odd23 & kFours) << 2),
                                  (even01 & kFours) | ((even23 & kFours) << 2)};
#pragma unroll
        for (int r = 0; r < kLaneRows; ++r) {
            const Four four = cache.get(r);
            int amount[kLaneWidth];
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) amount[x] = (int)(word[x] << (4 * r)) >> 28;
            if (kStore == kPacked) {
                int bin[kLaneWidth];
#pragma unroll
                for (int x = 0; x < kLaneWidth; ++x)
                    bin[x] = bin_of(four.v[x], bins, layout.thresholds, layout.table);
                histogram.add(bin, amount);
            } else {
#pragma unroll
                for (int x = 0; x < kLaneWidth; ++x) event(four.v[x], amount[x]);
            }
        }
    }

    __device__ __forceinline__ void operator()(const Cache& cache, Numbers4 c, plane own) const {
        const plane events = (c.b0 | c.b1 | c.b2 | c.b3) & own;
        const unsigned most = __reduce_max_sync(0xFFFFFFFFu, (unsigned)__popc(events));
        if (most > kDense)
            dense(cache, c, events);
        else
            sparse(cache, c, events);
    }
};
