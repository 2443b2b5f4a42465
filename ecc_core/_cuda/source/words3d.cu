// The Euler characteristic curve of 3-D images of 16-bit integers with more thresholds than pairs
// can tell apart: one sample in a register, as a float. A lane owns four columns.
//
// The tensor cores collect the bits, one row of a lane at a time. Counts are by value, two values
// in a word of shared memory, and spill to global memory before they can overflow.
#define ECC_WORDS
#include "histogram.cuh"
#include "rows.cuh"
#include "spread.cuh"
#include "volume.cuh"

constexpr int kRows = kPairRows + 2;  // that a lane reads
constexpr int kStashRow = 32 * sizeof(Quad);
constexpr int kWarpBytes = kPairRows * kStashRow + Feed::kBytes;
constexpr int kWords = 1 << 15;  // of two counts each
constexpr unsigned kMany = 14;   // events in a lane: more, and every sample is walked

__device__ __forceinline__ float contest(float a, float b) {
    return kDown ? subtract_floats_saturated(a, b) : subtract_floats_saturated(b, a);
}

// Weights that make one matrix product add a row to the numbers of Rows in the same lane. With lane
// 4 g + t: the left matrix has the lane's columns in rows g and g + 8 at t and t + 4, the product
// has their sums at 2 t and 2 t + 1.
struct RowWeights {
    float even, odd;  // first of the row above, which is a half

    __device__ __forceinline__ explicit RowWeights(int lane) {
        even = lane >> 2 == 2 * (lane & 3) ? 0.5f : 0.0f;
        odd = lane >> 2 == 2 * (lane & 3) + 1 ? 0.5f : 0.0f;
    }
    __device__ __forceinline__ void next() {
        even = add_floats(even, even);  // not chosen anew, as the compiler would
        odd = add_floats(odd, odd);
    }
};

// Four samples of a row as they are in memory.
struct Packed {
    unsigned words[2];

    __device__ __forceinline__ void keys(float (&out)[kLaneWidth]) const {
        constexpr unsigned flip = Element(-1) < Element(0) ? 0x80008000u : 0u;
        const unsigned a = words[0] ^ flip, b = words[1] ^ flip;
        out[0] = __uint_as_float(__byte_perm(a, kMagic, 0x7610));
        out[1] = __uint_as_float(__byte_perm(a, kMagic, 0x7632));
        out[2] = __uint_as_float(__byte_perm(b, kMagic, 0x7610));
        out[3] = __uint_as_float(__byte_perm(b, kMagic, 0x7632));
    }
};

// Events of a warp, whose samples wait in shared memory.
struct WordCounter {
    unsigned stash, counts;  // shared addresses: of the lane's samples, of value 0
    const Histogram& histogram;
    const Bins& bins;

    __device__ __forceinline__ void put(int row, const Packed& four) const {
        shared_store(stash + row * kStashRow, four.words);
    }
    __device__ __forceinline__ Packed get(int row) const {
        Packed four;
        shared_load(stash + row * kStashRow, four.words);
        return four;
    }

    __device__ __forceinline__ void spill(int word, int packed) const {
        const int low = (short)packed, high = (packed - low) >> 16;
        const Element a = (Element)(2 * word), b = (Element)(2 * word + 1);
        if (low) histogram.spill(bin_of(to_key(a), bins, bins.thresholds, bins.table), low);
        if (high) histogram.spill(bin_of(to_key(b), bins, bins.thresholds, bins.table), high);
    }

    // Not zero where a count has left [-2^13, 2^13): long before others, up to 28 of each thread
    // since then, can make it overflow.
    __device__ __forceinline__ static unsigned far(unsigned packed) {
        return (packed + 0x20002000u) & 0xC000C000u;
    }

    // `value`: its last 16 bits. Returns the count.
    __device__ __forceinline__ unsigned add(unsigned value, int amount) const {
        const unsigned step = shift_left(amount, value << 4);
        return shared_exchange_add(counts + (value << 1 & 0x1FFFCu), step) + step;
    }
    __device__ __forceinline__ void relieve(unsigned value) const {
        const unsigned place = value << 1 & 0x1FFFCu;
        spill((int)(place >> 2), (int)shared_take(counts + place));
    }

    // One by one, in each lane its own: the events of a word, whose columns begin `place` bytes
    // after the lane's first.
    __device__ __forceinline__ void sparse(unsigned b0, unsigned b1, unsigned b2, unsigned b3,
                                           unsigned events, int place) const {
        const unsigned last = stash + place + 15 * kStashRow + 4;  // of bit 31
        while (events) {
            const int shift = shift_to_sign(events);
            events ^= 0x80000000u >> shift;
            const unsigned value =
                shared_short(last - shift * kStashRow + (shift >> 4) * (16 * kStashRow - 4));
            if (far(add(value, coefficient(b0, b1, b2, b3, shift)))) relieve(value);
        }
    }

    // Row by row, all lanes together.
    __device__ __forceinline__ void dense(const Numbers4& c, plane events) const {
        unsigned first[8], second[8];
        spread(c, events, first, second);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            row<0>(r, first[r], second[r]);
            row<1>(r + 8, first[r], second[r]);
        }
    }

    // A row's four events. Its coefficients are the upper halves of bytes `lower` and 2 + `lower`.
    template <int lower>
    __device__ __forceinline__ void row(int r, unsigned first, unsigned second) const {
        constexpr unsigned left = lower ? 0x9991u : 0x8880u, right = lower ? 0xBBB3u : 0xAAA2u;
        const Packed four = get(r);
        const unsigned value[4] = {four.words[0], four.words[1], four.words[0] >> 16,
                                   four.words[1] >> 16};
        const int amount[4] = {
            (int)permute<left>(first, 0) >> 4, (int)permute<right>(first, 0) >> 4,
            (int)permute<left>(second, 0) >> 4, (int)permute<right>(second, 0) >> 4};
        unsigned now[4], any = 0;
#pragma unroll
        for (int x = 0; x < 4; ++x) now[x] = add(value[x], amount[x]);
#pragma unroll
        for (int x = 0; x < 4; ++x) any |= far(now[x]);
        if (any) {
            for (int x = 0; x < 4; ++x)
                if (far(now[x])) relieve(value[x]);
        }
    }

    __device__ __forceinline__ void operator()(const Numbers4& c, plane own) const {
        const plane events = (c.b0 | c.b1 | c.b2 | c.b3) & own;
        const unsigned own_events = __popc(events.a) + __popc(events.b);
        const unsigned most = __reduce_max_sync(kWarp, own_events);
        if (most > kMany)
            dense(c, events);
        else {
            sparse(c.b0.a, c.b1.a, c.b2.a, c.b3.a, events.a, 0);
            sparse(c.b0.b, c.b1.b, c.b2.b, c.b3.b, events.b, 2);
        }
    }
};

// Comparisons of slice s. `p` holds slice s on entry and slice s + 1 on return.
__device__ __forceinline__ Planes3 compare(Packed (&p)[kRows], Feed& feed,
                                           const WordCounter& count) {
    Planes3 w;
    Rows<false> g, m, behind;
    Rows<true> n, b, below, m_below;
    RowWeights weights(lane_again());
    Packed q_packed;
    float p_before[kLaneWidth], q_before[kLaneWidth], m_row[kLaneWidth], won[kLaneWidth];
    const Quad* quads = nullptr;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {  // row i - 1 comes in, row r is compared
        const int r = i - 2;
        float p_row[kLaneWidth], q[kLaneWidth], m_next[kLaneWidth];
        if (i % 2 == 0) quads = feed.take(i / 2);
        const Packed packed = *(const Packed*)(quads + i % 2 * 32);
        packed.keys(q);
        p[i].keys(p_row);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) m_next[x] = later(p_row[x], q[x]);
        if (i > 0) {
            float n_row[kLaneWidth], b_row[kLaneWidth];
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) {
                n_row[x] = later(p_before[x], p_row[x]);
                b_row[x] = later(m_row[x], m_next[x]);
            }
            if (r == kPairRows - 1) {
                w.n_before = n.before(), w.b_before = b.before();
                w.below_before = below.before(), w.m_below_before = m_below.before();
            }
            contest_right(won, n_row);
            n.add(r < 0, won, weights);
            contest_right(won, b_row);
            b.add(r < 0, won, weights);
            contest(won, p_before, p_row);
            below.add(r < 0, won, weights);
            contest(won, m_row, m_next);
            m_below.add(r < 0, won, weights);
            if (r >= 0) {
                contest_right(won, p_before);
                g.add(r == 0, won, weights);
                contest_right(won, m_row);
                m.add(r == 0, won, weights);
                contest(won, p_before, q_before);
                behind.add(r == 0, won, weights);
                count.put(r, p[i - 1]);
            }
            weights.next();
            p[i - 1] = q_packed;
        }
        q_packed = packed;
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            p_before[x] = p_row[x];
            q_before[x] = q[x];
            m_row[x] = m_next[x];
        }
    }
    p[kRows - 1] = q_packed;
    w.g = g.own(), w.n = n.own(), w.m = m.own(), w.b = b.own();
    w.below = below.own(), w.m_below = m_below.own(), w.behind = behind.own();
    return w;
}

// The columns left and right of the two borders of a warp.
struct Border {
    float left[2], right[2];
};

__device__ __forceinline__ Border owner(Border p, Border q) {
    return {{later(p.left[0], q.left[0]), later(p.left[1], q.left[1])},
            {later(p.right[0], q.right[0]), later(p.right[1], q.right[1])}};
}

__device__ __forceinline__ Border next_row(Border p) {
    Border next;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        next.left[i] = __shfl_down_sync(kWarp, p.left[i], 1);
        next.right[i] = __shfl_down_sync(kWarp, p.right[i], 1);
    }
    return next;
}

// Whether b owns what it shares with a.
__device__ __forceinline__ bool wins(float a, float b) { return kDown ? b < a : a < b; }

__device__ __forceinline__ Sides sides(Border border) {
    return {__ballot_sync(kWarp, wins(border.left[0], border.left[1])),
            __ballot_sync(kWarp, wins(border.right[0], border.right[1]))};
}

struct WordBorders : BorderFeed {
    using BorderFeed::BorderFeed;

    __device__ __forceinline__ Border take() const {
        constexpr float beyond = kDown != kDual ? 0.0f : 16777216.0f;
        return {{outside.left ? beyond : to_key(left[0]), to_key(left[1])},
                {to_key(right[0]), outside.right ? beyond : to_key(right[1])}};
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    char* const room = (char*)memory + warp * kWarpBytes;
    int* const counts = (int*)((char*)memory + (blockDim.x >> 5) * kWarpBytes);
    const Unit unit(image, tiling, block * (blockDim.x >> 5) + warp);
    const Columns columns(lane, unit.left, image.width);
    const Element* const data = image.data + index * image.batch + unit.start * image.slice;
    Feed feed(image, data + unit.y * image.row + unit.left, unit.left, image.depth - unit.start,
              room + kPairRows * kStashRow, columns, unit.y > 0,
              unit.y + kPairRows < image.height);
    if (unit.begin < unit.end) feed.begin();  // on their way while counts are cleared
    const Histogram histogram = {counts, result.counts_of(index, bins.count + 1), bins.count + 1,
                                 1, 0};
    for (int i = threadIdx.x; i < kWords; i += blockDim.x) counts[i] = 0;
    __syncthreads();

    const WordCounter count = {shared_address((const Quad*)room + lane), shared_address(counts),
                               histogram, bins};
    if (unit.begin < unit.end) {
        Packed p[kRows];
        WordBorders borders(image, data, unit);
        borders.ask();
        Border border_p = borders.take();
        borders.ask();
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const Quad* const quads = feed.take(i);
            p[2 * i] = *(const Packed*)quads;
            p[2 * i + 1] = *(const Packed*)(quads + 32);
        }
        Combiner combine(image, unit);
        for (int s = unit.start; s < unit.end; ++s) {
            const Planes3 w = compare(p, feed, count);
            const Border border_q = borders.take();
            borders.ask();
            const AllSides<Border> side(border_p, border_q);
            border_p = border_q;
            const Numbers4 c = combine(w, side, s);
            if (s >= unit.begin) count(c, combine.own());
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kWords; i += blockDim.x) count.spill(i, counts[i]);
    finish(histogram, result, index, false);
}
