// The Euler characteristic curve of 2-D images.
//
// A warp owns 128 columns and moves down `chunk` rows, eight at a time; a lane owns four columns.
// Each comparison gives a bit, 32 of them a plane, and plane arithmetic gives the coefficients of
// 32 samples at once:
//   c(y, x) = e(X_y) - [X_y >= X_y+1] e(max(X_y, X_y+1)) - [X_y-1 < X_y] e(max(X_y-1, X_y)),
//   e(R)(x) = g(x) - g(x - 1),  g(x) = [R(x) < R(x + 1)].
#include "sides.cuh"

struct Planes2 {
    plane g, g_left, m, m_left, below;
};  // below: [X_y before X_y+1]

// The columns of a warp and the image they are in.
struct Strip {
    const Image& image;
    const Element* data;  // column 0 of row 0
    const Columns& columns;
    int left, lane;
    plane last_column, last_lane;

    __device__ __forceinline__ Walk walk(int y) const {
        return Walk(data + y * image.row + left, columns);
    }

    __device__ __forceinline__ Key side(int y, int column) const {
        const long long at = min(max(y, 0), image.height - 1);
        return admit(data[at * image.row + min(column, image.width - 1)]);
    }
};

// Compares the last `rows` rows of the word that begins at row `y`. `p` holds the first of these rows on
// entry, and the row after the word on return. `ahead` holds the rows after `p`, the last of which is at
// `walk`; after a whole word, it holds those of the next word.
template <int rows>
__device__ __forceinline__ Planes2 compare(const Strip& strip, int y, Key (&p)[kLaneWidth],
                                           Row (&ahead)[kLaneRows], Walk& walk, const Cache& cache,
                                           FiniteCheck& check) {
    plane g = 0, m = 0, below = 0;
    const int column = side_column(strip.lane, strip.left, strip.image.width),
              row = y + side_row(strip.lane);
    const Key a = strip.side(row, column), b = strip.side(row, column + 1);
    const Key c = strip.side(row + 1, column), d = strip.side(row + 1, column + 1);
#pragma unroll
    for (int r = kLaneRows - rows; r < kLaneRows; ++r) {
        Key q[kLaneWidth], both[kLaneWidth];
        ahead[r].keys(q);
        if (rows == kLaneRows) {
            walk.advance(strip.image, y + r + 1 + kLaneRows < strip.image.height);
            ahead[r].load(walk, strip.columns);
        }
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) both[x] = later(p[x], q[x]);
        const Key p_right = from_right(p[0]), both_right = from_right(both[0]);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            push(g, p[x], x < kLaneWidth - 1 ? p[(x + 1) % kLaneWidth] : p_right);
            push(m, both[x], x < kLaneWidth - 1 ? both[(x + 1) % kLaneWidth] : both_right);
            push(below, p[x], q[x]);
            if (kNan == kNanReport && !(r & 1)) check.see(both[x]);
        }
        if (rows == kLaneRows) cache.put(r, p);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) p[x] = q[x];
    }
    const Sides g_sides = sides(ballot_before(a, b), strip.left == 0);
    const Sides m_sides = sides(ballot_before(later(a, c), later(b, d)), strip.left == 0);
    g = complete(g, g_sides, strip.last_lane, strip.last_column);
    m = complete(m, m_sides, strip.last_lane, strip.last_column);
    below = force(below, row_bits(strip.image.height - y) & ~row_bits(strip.image.height - 1 - y));
    return {g, from_left(g, g_sides, strip.lane), m, from_left(m, m_sides, strip.lane), below};
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    Histogram histogram = {0, result.counts_of(index, bins.count + 1), bins.count + 1, result.copies,
                           lane & (result.copies - 1)};
    Key* caches = (Key*)memory;  // (warps, rows, columns)
    const SharedLayout layout =
        lay_out(caches + (blockDim.x >> 5) * kLaneRows * kCacheWidth, bins);
    histogram.counts = layout.counts;
    histogram.clear();
    __syncthreads();

    const int unit = block * (blockDim.x >> 5) + warp;
    const int left = unit % tiling.across * kWarpWidth, x = left + lane * kLaneWidth;
    const int begin = tiling.first + unit / tiling.across * tiling.chunk,
              end = min(begin + tiling.chunk, tiling.last);
    FiniteCheck check;
    if (begin < end) {
        const Columns columns(lane, left, image.width);
        const plane own = column_bits(image.width - x);
        const Strip strip = {image,
                             image.data + index * image.batch,
                             columns,
                             left,
                             lane,
                             own & ~column_bits(image.width - 1 - x),
                             lane == 31 ? kLastColumn : 0u};
        const Cache cache = {caches + warp * kLaneRows * kCacheWidth + lane * kLaneWidth};
        const Counter count(bins, layout, histogram);
        Row first, before[kLaneRows],
            ahead[kLaneRows];  // `before`: its last row is the one at `begin`
        Key p[kLaneWidth];
        Walk walk = strip.walk(max(begin - 1, 0));
        first.load(walk, columns);
        first.keys(p);
        walk.advance(image, begin > 0);
        before[kLaneRows - 1].load(walk, columns);
#pragma unroll
        for (int r = 0; r < kLaneRows; ++r) {
            walk.advance(image, begin + r + 1 < image.height);
            ahead[r].load(walk, columns);
        }
        // What the row before takes from this one, in the low four bits. The first row is compared with
        // itself: a value set under a condition must not be spilled.
        const Planes2 w = compare<1>(strip, begin - kLaneRows, p, before, walk, cache, check);
        Trits above = taken(w.m, w.m_left, begin > 0 ? w.below : 0u);
        for (int row = begin; row < end; row += kLaneRows) {
            const Planes2 w = compare<kLaneRows>(strip, row, p, ahead, walk, cache, check);
            if (kCubes && row == 0) {
                const Trits outer = taken(w.g, w.g_left, ~0u);
                above = {outer.plus >> 28, outer.minus >> 28};
            }
            const Trits here = {w.g & ~w.g_left, ~w.g & w.g_left};
            const Trits kept = taken(w.m, w.m_left, ~w.below),
                        given = taken(w.m, w.m_left, w.below);
            const Trits received = {next_row(given.plus, above.plus),
                                    next_row(given.minus, above.minus)};
            above = given;
            const Numbers3 c = sum(here, kept, received);
            const plane owned = own & row_bits(end - row);
            count(cache, extend(c), owned);
        }
    }
    finish(histogram, result, index, check.failed());
}
