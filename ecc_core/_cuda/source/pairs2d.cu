// The Euler characteristic curve of 2-D images whose samples need no more than their bins: as
// curve2d.cu, two samples in a register.
//
// A warp owns 128 columns and marches down `chunk` rows, sixteen at a time; a lane owns four columns
// and has a row and the eighth below it in one register.
#define ECC_PAIRS
#include "pair_block.cuh"

constexpr int kCopies = 4;  // divides the row pairs of a step, so that each finds its slot in place
typedef Queue<kCopies> RowQueue;

struct Planes2 {
    plane g, m, below;
};  // below: [X_y before X_y+1]

// The columns of a warp.
struct Strip {
    const Image& image;
    const Element* data;  // column `left` of row 0
    const Columns& columns;
    int left, lane;

    __device__ __forceinline__ const Element* row(int y) const {
        return data + min(max(y, 0), image.height - 1) * image.row;
    }

    __device__ __forceinline__ void load(BorderRow& border, int y) const {
        border.load(row(y - 1 + min(lane, kPairRows + 1)), left, image.width);
    }

    // Rows y + r and the eighth below.
    __device__ __forceinline__ void ask(const RowQueue& queue, int y, int r) const {
        queue.ask(r, true, row(y + r), true, row(y + r + kPairRows8), columns);
    }
};

// Comparisons of the sixteen rows from row `y` on. `p` holds rows y and y + 8 on entry and those of
// the next step on return; the queue holds the rows after.
__device__ __forceinline__ Planes2 compare(const Strip& strip, int y, pair (&p)[kLaneWidth],
                                           const RowQueue& queue, const Encoder& encode,
                                           const PairCounter& count, RowWeights weights,
                                           PairCheck& check) {
    Rows<false> g, m, below;
    pair first[kLaneWidth], next[kLaneWidth];
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) first[x] = p[x];
#pragma unroll
    for (int r = 0; r < kPairRows8; ++r) {
        pair q[kLaneWidth], both[kLaneWidth], won[kLaneWidth];
        queue.take(r + 1, true, true, encode, next, check);
        const int coming = r + 1 + kCopies;
        strip.ask(queue, coming < kPairRows8 ? y : y + kPairRows8, coming);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            q[x] = r < kPairRows8 - 1 ? next[x] : between(first[x], next[x]);
            both[x] = owner(p[x], q[x]);
        }
        contest_right(won, p);
        g.add(r == 0, won, weights);
        contest_right(won, both);
        m.add(r == 0, won, weights);
        contest(won, p, q);
        below.add(r == 0, won, weights);
        weights.next();
        count.put(r, p);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) p[x] = next[x];
    }
    return {g.own(), m.own(), below.own()};
}

// What row y - 1 gives to row y, as a first row; `p` holds row y in its low halves.
__device__ __forceinline__ Trits given_to(const Strip& strip, int y, const pair (&p)[kLaneWidth],
                                          const Encoder& encode, const Place& place, Sides m_sides,
                                          RowWeights weights, PairCheck& check) {
    pair up[kLaneWidth], both[kLaneWidth], won[kLaneWidth];
    Quad row;
    load_quad(row, strip.row(y - 1), strip.columns);
    encode(&row, &row, up, check);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) both[x] = owner(up[x], p[x]);
    Rows<false> m, below;
    contest_right(won, both);
    m.add(true, won, weights);
    contest(won, up, p);
    below.add(true, won, weights);
    return place.steps(m.own(), m_sides, 16).taken(below.own());
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    constexpr int kWarpBytes = kStashBytes + RowQueue::kBytes;
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    char* const room = (char*)memory + warp * kWarpBytes;
    const PairBlock shared((char*)memory, kWarpBytes, bins, result, index, lane);
    __syncthreads();

    const int unit = block * (blockDim.x >> 5) + warp;
    const int left = unit % tiling.across * kWarpWidth, x = left + lane * kLaneWidth;
    const int begin = tiling.first + unit / tiling.across * tiling.chunk,
              end = min(begin + tiling.chunk, tiling.last);
    PairCheck check;
    if (begin < end) {
        const Columns columns(lane, left, image.width);
        const Place place(lane, x, image.width);
        const Encoder encode(bins, shared.thresholds);
        const RowWeights weights(lane);
        const Strip strip = {image, image.data + index * image.batch + left, columns, left, lane};
        const RowQueue queue = {(Quad*)(room + kStashBytes) + lane};
        const PairCounter count((const pair*)room + lane * kLaneWidth, shared.histogram);
        const plane columns_in = column_bits(image.width - x);
        BorderRow border;
        strip.load(border, begin);
        Quad low, high;
        load_quad(low, strip.row(begin), columns);
        load_quad(high, strip.row(begin + kPairRows8), columns);
#pragma unroll
        for (int r = 1; r <= kCopies; ++r) strip.ask(queue, begin, r);
        pair p[kLaneWidth];
        encode(&low, &high, p, check);
        Trits above = {kNone, kNone};
        for (int row = begin; row < end; row += kPairRows) {
            const Border samples = border.codes(encode);
            strip.load(border, row + kPairRows);
            const Sides g_sides = sides(samples, left == 0);
            const Sides m_sides = sides(owner(samples, next_row(samples)), left == 0);
            if (row == begin && row > 0)
                above = given_to(strip, row, p, encode, place, m_sides, weights, check);
            const Planes2 w = compare(strip, row, p, queue, encode, count, weights, check);
            const Steps g = place.steps(w.g, g_sides, 15), m = place.steps(w.m, m_sides, 15);
            const int rest = image.height - row;
            const plane below = force(w.below, row_bits(rest) & ~row_bits(rest - 1));
            if (kDual && row == 0) above = g.taken(kAll);
            const Trits given = m.taken(below);
            const Numbers3 c =
                sum(g, m.taken(~below),
                    {next_row(given.plus, above.plus), next_row(given.minus, above.minus)});
            above = {last_row(given.plus), last_row(given.minus)};
            count({c.b0, c.b1, c.b2, c.b2}, columns_in & row_bits(end - row));
        }
    }
    finish(shared.histogram, result, index, check.failed());
}
