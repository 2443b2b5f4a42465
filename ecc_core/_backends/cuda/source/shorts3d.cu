// The Euler characteristic curve of 3-D images of 16-bit integers with more thresholds than the
// codes of pairs3d.cu tell apart: two samples in a register as they are, a row and the eighth below
// it. A lane owns four columns.
//
// One instruction finds the larger of two samples, for both halves, and leaves in predicates which
// it is; additions that depend on these make the planes. Counts are by value, two values in a word
// of shared memory, and spill to global memory before they can overflow.
//
// Rows are multiples of four samples.
#define ECC_SHORTS
#include "histogram.cuh"
#include "compare_shorts.cuh"
#include "rows.cuh"
#include "spread.cuh"
#include "cache.cuh"
#include "volume.cuh"

constexpr int kWarpBytes = kPairRows8 * kCacheRow + Feed::kBytes;
constexpr int kWords = 1 << 15;  // of two counts each
// A count starts at kZero and goes to global memory once a lane sees it outside [0, 2^13). A lane
// looks after kBlind samples at the latest. Each adds from -5 to 7, which is 1 less the Euler
// characteristic of a part of an octahedron's surface. So a count stays within 2^16 around kMiddle.
constexpr unsigned kZero = 0x1000u;
constexpr int kBlind = 12;
constexpr unsigned kMiddle = kZero + kBlind * ECC_THREADS * (7 - 5) / 2;
static_assert(0x2000 + kBlind * ECC_THREADS * (7 + 5) < 0x10000, "counts do not fit");

// Planes as they grow, a bit a row.
typedef Rows<false> Own;
// The same with a row above, whose bit has half the weight of the first.
struct Both {
    static constexpr float kHalves = Rows<true>::kHalves;
    float column[4] = {kHalves, kHalves, kHalves, kHalves};

    __device__ __forceinline__ plane own() const {
        constexpr float low = Own::kLow - kHalves, high = Own::kHigh - kHalves;
        return Own::words({add_truncated(column[0], low), add_truncated(column[1], low),
                           add_truncated(column[2], high), add_truncated(column[3], high)});
    }
    // As seen from the rows that follow.
    __device__ __forceinline__ plane before() const {
        return {__byte_perm(__float_as_uint(column[0]), __float_as_uint(column[2]), 0x5410),
                __byte_perm(__float_as_uint(column[1]), __float_as_uint(column[3]), 0x5410)};
    }
};

// Comparisons that end in planes.
struct Comparisons {
    float unused;  // a comparison whose later samples are not used takes two instructions more

    // Of the pairs `a` and `b` in column x of item i, rows i - 1 and i + 7: who owns what they share,
    // and where b does, a bit. Row 7 does not come with the row above, but with row 15.
    template <class Rows>
    __device__ __forceinline__ static pair run(Rows& rows, int i, int x, pair a, pair b) {
        const float low = 0.5f * (1 << i), high = 128.0f * (1 << i);
        float& to = rows.column[x];
        return i > 0 ? compare_pair(a, b, to, low, high) : compare_pair(a, b, to, low);
    }

    // Compares with the samples to the right; `next` is to the right of the last one.
    template <class Rows>
    __device__ __forceinline__ void right(Rows& rows, int i, const pair (&row)[kLaneWidth],
                                          pair next) {
        float later[kLaneWidth];
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x)
            later[x] = __uint_as_float(
                run(rows, i, x, row[x], x < kLaneWidth - 1 ? row[(x + 1) % kLaneWidth] : next));
#pragma unroll
        for (int x = 0; x < kLaneWidth; x += 2)
            unused = multiply_add(later[x], later[x + 1], unused);
    }
};

__device__ __forceinline__ pair from_right(pair first) {
    return __shfl_down_sync(kWarp, first, 1);
}

// Two rows of a lane. Item 0 is the row above only, the last item the row below.
__device__ __forceinline__ void take(Feed& feed, int i, pair (&out)[kLaneWidth]) {
    const Quad* const quads = feed.take(i);
    const uint2 low = *(const uint2*)(quads + (i < kItems - 1 ? 0 : 32)),
                high = *(const uint2*)(quads + (i > 0 ? 32 : 0));
    out[0] = __byte_perm(low.x, high.x, 0x5410);
    out[1] = __byte_perm(low.x, high.x, 0x7632);
    out[2] = __byte_perm(low.y, high.y, 0x5410);
    out[3] = __byte_perm(low.y, high.y, 0x7632);
}

// The upper rows of item 1 as the lower rows of the last item.
__device__ __forceinline__ void between(const pair (&first)[kLaneWidth],
                                        pair (&last)[kLaneWidth]) {
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) last[x] = __byte_perm(first[x], last[x], 0x5432);
}

// Four numbers of 4 bits, in upper halves of bytes, as bytes.
__device__ __forceinline__ unsigned signed_bytes(unsigned upper) {
    const unsigned low = upper >> 4;
    return low + (low & 0x08080808u) * 0x1Eu;
}

// Events of a warp, whose samples wait in shared memory.
struct ShortCounter {
    unsigned cache, counts;  // shared addresses: of the lane's samples, of value 0
    const Histogram& histogram;
    const Bins& bins;

    __device__ __forceinline__ void put(int row, const pair (&p)[kLaneWidth]) const {
        keep(cache + row * kCacheRow, p);
    }

    struct TwoCounts {
        int low, high;

        __device__ __forceinline__ explicit TwoCounts(unsigned counted) {
            const int both = (int)(counted - kMiddle * 0x10001u), from = kMiddle - kZero;
            const int half = (short)both;
            low = half + from, high = ((both - half) >> 16) + from;
        }
    };

    __device__ __forceinline__ int bin_of_value(int value) const {
        return bin_of(to_key((Element)value), bins, bins.thresholds, bins.table);
    }

    __device__ __forceinline__ void spill(int word, unsigned counted) const {
        const TwoCounts pair(counted);
        if (pair.low) histogram.spill(bin_of_value(2 * word), pair.low);
        if (pair.high) histogram.spill(bin_of_value(2 * word + 1), pair.high);
    }

    // The counts of some words, values of one bin together: many blocks add to few bins at once.
    __device__ __forceinline__ void spill_together(const unsigned* words, int first, int last) const {
        int bin = 0, sum = 0;
        for (int i = first; i < last; ++i) {
            const TwoCounts pair(words[i]);
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                const int amount = k ? pair.high : pair.low;
                if (!amount) continue;
                const int own = bin_of_value(2 * i + k);
                if (own != bin) histogram.spill(bin, sum), bin = own, sum = 0;
                sum += amount;
            }
        }
        histogram.spill(bin, sum);
    }

    // Not zero where one of two counts is outside [0, 2^13).
    __device__ __forceinline__ static unsigned far(unsigned counted) {
        return counted & 0xE000E000u;
    }

    // Bytes from value 0 to the word of a value, from twice the value.
    __device__ __forceinline__ static unsigned place(unsigned twice) { return twice & 0x1FFFCu; }

    // `shift`: 16 where the value is odd; its last five bits. Returns what was there.
    __device__ __forceinline__ unsigned add(unsigned place, unsigned shift, int amount) const {
        return shared_exchange_add(counts + place, shift_left(amount, shift));
    }
    __device__ __forceinline__ unsigned add(Event event) const {
        return add(place(event.half << 1), event.half << 4, event.amount);
    }
    __device__ __forceinline__ void relieve(unsigned value) const {
        const unsigned here = place(value << 1);
        if (far(shared_exchange_add(counts + here, 0)))
            spill((int)(here >> 2), shared_exchange(counts + here, kZero * 0x10001u));
    }

    // One by one, in all lanes at a time; `most` in a word.
    __device__ __forceinline__ void sparse(const Numbers4& c, plane events, unsigned most) const {
        plane again = events;
        unsigned seen = 0;
        for (unsigned k = 0; k < most; ++k) {
            const Events next = take_events(cache, c, events);
            seen |= add(next.a) | add(next.b);
        }
        if (__any_sync(kWarp, far(seen))) {
#pragma unroll 1
            for (unsigned k = 0; k < most; ++k) {
                const Events next = take_events(cache, c, again);
                relieve(next.a.half);
                relieve(next.b.half);
            }
        }
    }

    // A row, whose coefficients are upper halves of bytes. Returns what was there of all.
    __device__ __forceinline__ unsigned add_row(int row, unsigned first, unsigned second) const {
        unsigned four[4], seen = 0;
        shared_load(cache + row * kCacheRow, four);
        const unsigned a = signed_bytes(first), b = signed_bytes(second);
        const unsigned amount[8] = {permute<0x8880>(a, 0), permute<0x9991>(a, 0),
                                    permute<0xAAA2>(a, 0), permute<0xBBB3>(a, 0),
                                    permute<0x8880>(b, 0), permute<0x9991>(b, 0),
                                    permute<0xAAA2>(b, 0), permute<0xBBB3>(b, 0)};
#pragma unroll
        for (int x = 0; x < 8; ++x) {
            const unsigned one = x % 2 ? 0x100u : 1u;  // of a register, the half
            seen |= add(place(dot_halves(four[x / 2], 2 * one)), dot_halves(four[x / 2], 16 * one),
                        (int)amount[x]);
        }
        return seen;
    }

    // Row by row, in all lanes at a time.
    __device__ __forceinline__ void dense(const Numbers4& c, plane events) const {
        unsigned first[8], second[8];
        spread(c, events, first, second);
#pragma unroll
        for (int r = 0; r < kPairRows8; ++r) {
            if (far(add_row(r, first[r], second[r]))) {
#pragma unroll 1
                for (int x = 0; x < 8; ++x)
                    relieve(shared_short(cache + r * kCacheRow + 2 * x));
            }
        }
    }

    __device__ __forceinline__ void operator()(const Numbers4& c, plane own) const {
        count_events(*this, c, own, kBlind / 2);
    }
};

// Comparisons of slice s. `p` holds slice s on entry and slice s + 1 on return, from the row above
// to the row below.
__device__ __forceinline__ PairPlanes3 compare(pair (&p)[kItems][kLaneWidth], Feed& feed,
                                               const ShortCounter& count, Comparisons& comparisons) {
    Own g, m, behind;
    Both n, b, below, m_below;
    pair m_row[kLaneWidth];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        if (i < kItems - 1) {  // what does not need the next slice
            const pair right = from_right(p[i][0]);
            pair n_row[kLaneWidth];
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x)
                n_row[x] = comparisons.run(below, i, x, p[i][x], p[i + 1][x]);
            const pair n_right = from_right(n_row[0]);
            if (i > 0) {
                comparisons.right(g, i, p[i], right);
                count.put(i - 1, p[i]);
            }
            comparisons.right(n, i, n_row, n_right);
        }
        pair q[kLaneWidth], m_next[kLaneWidth];
        take(feed, i, q);
        if (i == kItems - 1) between(p[1], q);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            m_next[x] = i > 0 && i < kItems - 1 ? comparisons.run(behind, i, x, p[i][x], q[x])
                                                : owner(p[i][x], q[x]);
            p[i][x] = q[x];
        }
        if (i > 0) {  // the item before
            const pair right = from_right(m_row[0]);
            pair b_row[kLaneWidth];
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x)
                b_row[x] = comparisons.run(m_below, i - 1, x, m_row[x], m_next[x]);
            const pair b_right = from_right(b_row[0]);
            if (i > 1) comparisons.right(m, i - 1, m_row, right);
            comparisons.right(b, i - 1, b_row, b_right);
        }
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) m_row[x] = m_next[x];
    }
    return {g.own(), n.own(), m.own(), b.own(), below.own(), m_below.own(),
            behind.own(), n.before(), b.before(), below.before(), m_below.before()};
}

// The columns left and right of the two borders of a warp, those of the left border in the low
// halves. Lane i holds row i - 1 of the warp's rows.
struct ShortBorder {
    pair a, b;
    unsigned no_left, no_right;  // all bits: the image has no column there
};

__device__ __forceinline__ ShortBorder owner(ShortBorder p, ShortBorder q) {
    return {owner(p.a, q.a), owner(p.b, q.b), p.no_left, p.no_right};
}

__device__ __forceinline__ ShortBorder next_row(ShortBorder p) {
    return {__shfl_down_sync(kWarp, p.a, 1), __shfl_down_sync(kWarp, p.b, 1), p.no_left,
            p.no_right};
}

__device__ __forceinline__ PairSides sides(ShortBorder border) {
    const pair owned = owns_shared(border.a, border.b);
    const unsigned left = __ballot_sync(kWarp, owned & 0xFFFFu),
                   right = __ballot_sync(kWarp, owned >> 16);
    return {kCubes ? left | border.no_left : left & ~border.no_left,
            kCubes ? right & ~border.no_right : right | border.no_right};
}

// What a warp keeps in shared memory, as registers are short.
struct Kept : Unit {
    int width;  // of ShortBorders
};

struct ShortBorders : BorderFeed {
    using BorderFeed::BorderFeed;
    unsigned outer[2];  // left and right; not shorts, which the compiler packs at once

    __device__ __forceinline__ void ask(int width) {
        outer[0] = global_short(next), outer[1] = global_short(next + width);
        advance();
    }

    // Of the slice asked for, whose own columns are `ends`; asks for the next.
    __device__ __forceinline__ ShortBorder take(pair ends, int width) {
        const ShortBorder border = {__byte_perm(outer[0], ends, 0x7610),
                                    __byte_perm(ends, outer[1], 0x5410), 0u, 0u};
        ask(width);
        return border;
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    alignas(16) __shared__ char ends_of[ECC_THREADS / 32][Ends::kBytes];
    __shared__ Kept kept[ECC_THREADS / 32];
    __shared__ Bins shared_bins;  // counts spill rarely, and registers are short
    __shared__ Histogram histogram;
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    char* const room = (char*)memory + warp * kWarpBytes;
    unsigned* const counts = (unsigned*)((char*)memory + (blockDim.x >> 5) * kWarpBytes);
    const Unit unit(image, tiling, block * (blockDim.x >> 5) + warp);
    const Columns columns(lane, unit.left, image.width);
    Feed feed(image, unit, index, room + kPairRows8 * kCacheRow, columns);
    if (unit.some()) feed.begin();  // on their way while counts are cleared
    if (threadIdx.x == 0) {
        shared_bins = bins;
        histogram = {nullptr, result.counts_of(index, bins.count + 1), bins.count + 1, 1, 0};
    }
    for (int i = threadIdx.x; i < kWords; i += blockDim.x) counts[i] = kZero * 0x10001u;
    __syncthreads();

    const ShortCounter count = {shared_address((const pair*)room + lane * kLaneWidth),
                                shared_address(counts), histogram, shared_bins};
    if (unit.some()) {
        pair p[kItems][kLaneWidth];
        ShortBorders borders(image, unit, index);
        borders.ask(borders.width);
        static_cast<Unit&>(kept[warp]) = unit;
        kept[warp].width = borders.width;
        __syncwarp();
        const volatile Kept& here = kept[warp];
#pragma unroll
        for (int i = 0; i < kItems; ++i) take(feed, i, p[i]);
        between(p[1], p[kItems - 1]);
        const Ends ends = {shared_address(ends_of[warp])};
        ShortBorder border_p = borders.take(ends.columns(p), here.width);
        Combiner combine(image, here);
        Comparisons comparisons = {0.0f};
        // uniform(): without it the compiler assumes that lanes may differ, and diverges.
        for (int s = unit.start; s < uniform(here.end); ++s) {
            const PairPlanes3 w = compare(p, feed, count, comparisons);
            ShortBorder border_q = borders.take(ends.columns(p), here.width);
            const Outside outside(here.left, image.width);
            border_p.no_left = border_q.no_left = outside.left ? ~0u : 0u;
            border_p.no_right = border_q.no_right = outside.right ? ~0u : 0u;
            const AllSides<ShortBorder> side(border_p, border_q);
            border_p = border_q;
            const Numbers4 c = combine(w, side, s);
            if (s >= uniform(here.begin)) count(c, combine.own());
        }
        shared_store(count.cache, {__float_as_uint(comparisons.unused), 0u});
    }
    __syncthreads();
    if (kBins == kConsecutive) {
        for (int i = threadIdx.x; i < kWords; i += blockDim.x) count.spill(i, counts[i]);
    } else {
        const int run = ((kWords + blockDim.x - 1) / blockDim.x) | 1;  // odd: each lane its bank
        const int first = min((int)threadIdx.x * run, (int)kWords);
        count.spill_together(counts, first, min(first + run, (int)kWords));
    }
    finish(histogram, result, index, false);
}
