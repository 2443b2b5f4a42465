// The Euler characteristic curve of 3-D images whose samples need no more than their bins: as
// curve3d.cu, two samples in a register.
//
// A warp owns 128 columns and 16 rows and marches through `chunk` slices; a lane owns four columns
// and has a row and the eighth below it in one register. What the row above gives to the first one
// is computed once more, so that warps need not wait for each other. Images have 16 rows at least.
#define ECC_PAIRS
#include "pair_block.cuh"

// Comparisons of a slice s with the samples at x + 1, y + 1 and s + 1. n: maxima over y; m: over s;
// b: over both. `before`: the same as the rows see them that follow.
struct Planes3 {
    plane g, n, m, b, below, m_below, behind;
    plane n_before, b_before, below_before, m_below_before;
};

// Items of a slice: the row above a warp's rows, eight times two rows, and the row below.
constexpr int kItems = kPairRows8 + 2;
constexpr int kCopies = 5;  // divides the items, so that each finds its own slot in place
typedef Queue<kCopies> SliceQueue;

// The samples of a warp and the volume they are in.
struct Column {
    const Image& image;
    const Element* data;  // first column and row of the warp, slice 0
    const Columns& columns;
    const Element* border_row;  // first column of the lane's row of the borders, slice 0
    int left;
    bool above, below;  // whether the image has rows there

    __device__ __forceinline__ const Element* slice(int s) const {
        return data + min(s, image.depth - 1) * image.slice;
    }

    __device__ __forceinline__ void load(BorderRow& border, int s) const {
        border.load(border_row + min(s, image.depth - 1) * image.slice, left, image.width);
    }
};

// Where the next rows to be copied are.
struct Reader {
    const Element *low, *high;

    // Sets out with item `i` of a slice, after those before it.
    __device__ __forceinline__ void step(int i, int s, const Column& own) {
        const long long row = own.image.row;
        if (i == 0) {
            high = own.slice(s);
            low = own.above ? high - row : high;
        } else if (i == 1) {
            low = high;
            high += kPairRows8 * row;
        } else if (i < kItems - 1) {
            low += row;
            high += row;
        } else if (own.below) {
            high += row;
        }
    }
};

__device__ __forceinline__ void ask(const SliceQueue& queue, int i, const Reader& reader,
                                    const Columns& columns) {
    queue.ask(i, i < kItems - 1, reader.low, i > 0, reader.high, columns);
}

// Comparisons of slice s. `p` holds slice s on entry and slice s + 1 on return, from the row above
// to the row below; the queue holds the first items of slice s + 1, then of s + 2.
__device__ __forceinline__ Planes3 compare(const Column& own, int s,
                                           pair (&p)[kItems][kLaneWidth], const SliceQueue& queue,
                                           Reader& reader, const Encoder& encode,
                                           const PairCounter& count, PairCheck& check) {
    Rows<false> g, m, behind;
    Rows<true> n, b, below, m_below;
    RowWeights weights(lane_again());
    pair q_before[kLaneWidth], m_row[kLaneWidth], won[kLaneWidth];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {  // item i comes in, item i - 1 is compared
        pair q[kLaneWidth], m_next[kLaneWidth];
        queue.take(i, i < kItems - 1, i > 0, encode, q, check);
        if (i == kItems - 1) {
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) q[x] = between(p[1][x], q[x]);
        }
        const int coming = (i + kCopies) % kItems;
        reader.step(coming, s + 1 + (i + kCopies) / kItems, own);
        ask(queue, coming, reader, own.columns);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) m_next[x] = owner(p[i][x], q[x]);
        if (i > 0) {
            const int r = i - 2;  // -1: the row above
            pair n_row[kLaneWidth], b_row[kLaneWidth];
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) {
                n_row[x] = owner(p[i - 1][x], p[i][x]);
                b_row[x] = owner(m_row[x], m_next[x]);
            }
            const RowWeights at = r < 0 ? weights.above() : weights;
            contest_right(won, n_row);
            n.add(r < 0, won, at);
            contest_right(won, b_row);
            b.add(r < 0, won, at);
            contest(won, p[i - 1], p[i]);
            below.add(r < 0, won, at);
            contest(won, m_row, m_next);
            m_below.add(r < 0, won, at);
            if (r >= 0) {
                contest_right(won, p[i - 1]);
                g.add(r == 0, won, weights);
                contest_right(won, m_row);
                m.add(r == 0, won, weights);
                contest(won, p[i - 1], q_before);
                behind.add(r == 0, won, weights);
                count.put(r, p[i - 1]);
                weights.next();
            }
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) p[i - 1][x] = q_before[x];
        }
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            q_before[x] = q[x];
            m_row[x] = m_next[x];
        }
    }
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) p[kItems - 1][x] = q_before[x];
    return {g.own(),           n.own(),      m.own(),      b.own(),        below.own(),
            m_below.own(),     behind.own(), n.before(),   b.before(),     below.before(),
            m_below.before()};
}

// What a warp cannot see of its two sides, for slices s and s + 1.
struct AllSides {
    Sides g, n, m, b;

    __device__ __forceinline__ AllSides(Border p, Border q, bool first) {
        const Border at_m = owner(p, q);
        g = sides(p, first);
        n = sides(owner(p, next_row(p)), first);
        m = sides(at_m, first);
        b = sides(owner(at_m, next_row(at_m)), first);
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    constexpr int kWarpBytes = kStashBytes + SliceQueue::kBytes;
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    char* const room = (char*)memory + warp * kWarpBytes;
    const int unit = block * (blockDim.x >> 5) + warp;
    const int left = unit % tiling.across * kWarpWidth;
    const int rows_before = unit / tiling.across % tiling.down * kPairRows;
    const int y = min(rows_before, image.height - kPairRows);  // the last rows may be repeated
    const int begin = tiling.first + unit / (tiling.across * tiling.down) * tiling.chunk;
    const int end = min(begin + tiling.chunk, tiling.last), start = max(begin - 1, 0);
    const Columns columns(lane, left, image.width);
    const Element* const data = image.data + index * image.batch + left;
    const Element* const border_row =
        data + min(max(y - 1 + min(lane, kPairRows + 1), 0), image.height - 1) * image.row;
    const Column own = {image, data + y * image.row, columns, border_row,
                        left,  y > 0,                y + kPairRows < image.height};
    const SliceQueue queue = {(Quad*)(room + kStashBytes) + lane};
    Reader reader;
    if (begin < end) {  // on their way while counts are cleared
#pragma unroll
        for (int i = 0; i < kCopies; ++i) {
            reader.step(i, start + 1, own);
            ask(queue, i, reader, columns);
        }
    }
    const PairBlock shared((char*)memory, kWarpBytes, bins, result, index, lane);
    __syncthreads();

    PairCheck check;
    if (begin < end) {
        const Encoder encode(bins, shared.thresholds);
        const PairCounter count((const pair*)room + lane * kLaneWidth, shared.histogram);
        const plane new_rows = ~row_bits(rows_before - y);
        const plane last_rows = own.below ? kNone : ~row_bits(kPairRows - 1);

        pair p[kItems][kLaneWidth];
        Reader first;
        BorderRow first_border, border;
        own.load(first_border, start);
        own.load(border, start + 1);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            Quad low, high;
            first.step(i, start, own);
            load_quad(low, i < kItems - 1 ? first.low : first.high, columns);
            load_quad(high, i > 0 ? first.high : first.low, columns);
            encode(&low, &high, p[i], check);
        }
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x)
            p[kItems - 1][x] = between(p[1][x], p[kItems - 1][x]);
        Border border_p = first_border.codes(encode);
        Numbers3 given_behind = {kNone, kNone, kNone};  // what slice s - 1 gives to slice s
        for (int s = start; s < end; ++s) {
            const Border border_q = border.codes(encode);
            own.load(border, s + 2);
            Planes3 w = compare(own, s, p, queue, reader, encode, count, check);
            const int here = lane_again();
            const Place place(here, left + here * kLaneWidth, image.width);
            const AllSides side(border_p, border_q, left == 0);
            border_p = border_q;
            w.below = force(w.below, last_rows);
            w.m_below = force(w.m_below, last_rows);
            if (kDual && y == 0) {  // the first row is its own row above
                w.below_before = w.below_before | row_bits(1);
                w.m_below_before = w.m_below_before | row_bits(1);
            }
            if (s == image.depth - 1) w.behind = kDual ? kNone : kAll;
            const Numbers3 flat = sum(place.steps(w.g, side.g, 15),
                                      place.steps(w.n, side.n, 15).taken(~w.below),
                                      place.steps(w.n_before, side.n, 16).taken(w.below_before));
            const Numbers3 deep =
                sum(place.steps(w.m, side.m, 15), place.steps(w.b, side.b, 15).taken(~w.m_below),
                    place.steps(w.b_before, side.b, 16).taken(w.m_below_before));
            if (kDual && s == 0) given_behind = flat;
            const Numbers4 c = subtract(flat, only(deep, ~w.behind), given_behind);
            given_behind = only(deep, w.behind);
            if (s >= begin)
                count(c, column_bits(image.width - left - here * kLaneWidth) & new_rows);
        }
    }
    finish(shared.histogram, result, index, check.failed());
}
