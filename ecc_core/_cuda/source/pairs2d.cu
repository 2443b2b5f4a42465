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
    const Element* data;  // column `left` of row 0 of its image
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

// Comparisons of the sixteen rows from row `y` on. `p` holds rows y and y + 8 on entry and rows
// y + 16 and y + 24 on return; the queue holds the rows after. The next step is at row `y_after` of
// `after`.
__device__ __forceinline__ Planes2 compare(const Strip& strip, int y, pair (&p)[kLaneWidth],
                                           const Strip& after, int y_after, const RowQueue& queue,
                                           const Encoder& encode, const PairCounter& count,
                                           PairCheck& check) {
    Rows<false> g, m, below;
    RowWeights weights(lane_again());
    pair first[kLaneWidth], next[kLaneWidth];
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) first[x] = p[x];
#pragma unroll
    for (int r = 0; r < kPairRows8; ++r) {
        pair q[kLaneWidth], both[kLaneWidth], won[kLaneWidth];
        queue.take(r + 1, true, true, encode, next, check);
        const int coming = r + 1 + kCopies;
        if (coming <= kPairRows8)
            strip.ask(queue, coming < kPairRows8 ? y : y + kPairRows8, coming);
        else
            after.ask(queue, y_after, coming - kPairRows8);
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

// What the row above gives to the first one; both are in low halves. Beyond the `border` of the
// image a row is its own row above, and T has it give all.
__device__ __forceinline__ Trits given_to(bool border, const pair (&up)[kLaneWidth],
                                          const pair (&p)[kLaneWidth], const Place& place,
                                          Sides m_sides, RowWeights weights) {
    pair both[kLaneWidth], won[kLaneWidth];
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) both[x] = owner(up[x], p[x]);
    Rows<false> m, below;
    contest_right(won, both);
    m.add(true, won, weights);
    contest(won, up, p);
    below.add(true, won, weights);
    return place.steps(m.own(), m_sides, 16).taken(border ? kAll : below.own());
}

// The rows of a warp that its first step needs before those in the queue. Of the next image they wait
// in shared memory until the last one is done.
struct Start {
    static constexpr int kBytes = kBatch ? 3 * 32 * sizeof(Quad) : 0;
    Quad* lane;
    Quad up, low, high;

    __device__ __forceinline__ void ask(const Strip& strip, int y) {
        if (kBatch) {
            RowQueue::copy(lane, strip.row(y - 1), strip.columns);
            RowQueue::copy(lane + 32, strip.row(y), strip.columns);
            RowQueue::copy(lane + 64, strip.row(y + kPairRows8), strip.columns);
        } else {
            load_quad(up, strip.row(y - 1), strip.columns);
            load_quad(low, strip.row(y), strip.columns);
            load_quad(high, strip.row(y + kPairRows8), strip.columns);
        }
    }

    // Once only the rows in the queue may be on their way.
    __device__ __forceinline__ void take(const Encoder& encode, pair (&p)[kLaneWidth],
                                         pair (&row_up)[kLaneWidth], PairCheck& check) const {
        if (kBatch && kAsync) wait_for_copy<kCopies>();
        encode(kBatch ? lane + 32 : &low, kBatch ? lane + 64 : &high, p, check);
        encode(kBatch ? lane : &up, kBatch ? lane : &up, row_up, check);
    }
};

// The rows from `begin` to `end` of an image. `start`, `border` and the queue hold the first ones, and
// in the end those of the image at `after`.
__device__ __forceinline__ void march(const Strip& strip, int begin, int end, const Element* after,
                                      Start& start, BorderRow& border, const RowQueue& queue,
                                      const Encoder& encode, const PairCounter& count,
                                      PairCheck& check) {
    const Image& image = strip.image;
    pair p[kLaneWidth], row_up[kLaneWidth];
    start.take(encode, p, row_up, check);
    Trits above = {kNone, kNone};
    for (int row = begin; row < end; row += kPairRows) {
        const int x = strip.left + lane_again() * kLaneWidth;
        const Place place(lane_again(), x, image.width);
        const Border samples = beyond(border.codes(encode), Outside(strip.left, image.width));
        Strip next = strip;
        int then = row + kPairRows;
        if (kBatch && then >= end) {
            next.data = after, then = begin;
            start.ask(next, then);
        }
        next.load(border, then);
        const Sides g_sides = sides(samples), m_sides = sides(owner(samples, next_row(samples)));
        if (row == begin && (kDual || row > 0))
            above = given_to(row == 0, row_up, p, place, m_sides, RowWeights(strip.lane));
        const Planes2 w = compare(strip, row, p, next, then, queue, encode, count, check);
        const Steps g = place.steps(w.g, g_sides, 15), m = place.steps(w.m, m_sides, 15);
        const int rest = image.height - row;
        const plane below = force(w.below, row_bits(rest) & ~row_bits(rest - 1));
        const Trits given = m.taken(below);
        const Numbers3 c = sum(g, m.taken(~below),
                               {next_row(given.plus, above.plus), next_row(given.minus, above.minus)});
        above = {last_row(given.plus), last_row(given.minus)};
        count(extend(c), column_bits(image.width - x) & row_bits(end - row));
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    constexpr int kWarpBytes = kStashBytes + RowQueue::kBytes + Start::kBytes;
    int index = blockIdx.x / result.blocks;
    const int block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    char* const room = (char*)memory + warp * kWarpBytes;
    const int unit = block * (blockDim.x >> 5) + warp;
    const int left = unit % tiling.across * kWarpWidth;
    const int begin = tiling.first + unit / tiling.across * tiling.chunk,
              end = min(begin + tiling.chunk, tiling.last);
    const Columns columns(lane, left, image.width);
    Strip strip = {image, image.data + index * image.batch + left, columns, left, lane};
    const RowQueue queue = {(Quad*)(room + kStashBytes) + lane};
    Start start;
    start.lane = (Quad*)(room + kStashBytes + RowQueue::kBytes) + lane;
    BorderRow border;
    if (begin < end) {  // on their way while counts are cleared
        strip.load(border, begin);
        start.ask(strip, begin);
        if (kBatch && kAsync) end_of_copy();
#pragma unroll
        for (int r = 1; r <= kCopies; ++r) strip.ask(queue, begin, r);
    }
    const PairBlock shared((char*)memory, kWarpBytes, bins, result, index, lane);
    __syncthreads();

    const Encoder encode(bins, shared.thresholds);
    const PairCounter count((const pair*)room + lane * kLaneWidth, shared.histogram);
    for (;;) {
        const int next = index + gridDim.x;
        const bool more = kBatch && next < tiling.images;
        const Element* const after = strip.data + (more ? gridDim.x * image.batch : 0);
        PairCheck check;
        if (begin < end)
            march(strip, begin, end, after, start, border, queue, encode, count, check);
        finish(shared.histogram, result, index, check.failed());
        if (!more) return;
        index = next;
        strip.data = after;
    }
}
