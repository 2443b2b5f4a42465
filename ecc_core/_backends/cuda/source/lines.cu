// The Euler characteristic curve of 1-D images, and of 2-D images of a few long rows, as in pairs2d.cu;
// but the sixteen rows of a warp are those of several tiles of 128 columns.
//
// Row r of a step is row r % kHeight of its tile r / kHeight. A step has as many tiles as fit.
#define ECC_PAIRS
#include "compare2d.cuh"
#include "sides2d.cuh"

constexpr int kHeight = ECC_HEIGHT;  // of the image
constexpr int kTiles = kPairRows / kHeight, kRows = kTiles * kHeight;  // of a step

// A bit for each row of a step, in both halves: the first rows of tiles, or the last ones.
__device__ constexpr unsigned rows_at(int place) {
    unsigned rows = 0;
    for (int r = 0; r < kPairRows; ++r)
        if (r % kHeight == place) rows |= 0x00010001u << r;
    return rows;
}
constexpr unsigned kFirstRows = rows_at(0), kLastRows = rows_at(kHeight - 1);
constexpr plane kFirst = {kFirstRows, kFirstRows}, kLast = {kLastRows, kLastRows};

struct Lines {
    const Image& image;
    const Element* data;
    int tiles;

    // The first column of row `r` in step `y / kPairRows`. Rows beyond the last tile repeat its last row.
    __device__ __forceinline__ int left(int y, int r) const {
        return min(y / kPairRows * kTiles + min(r, kRows - 1) / kHeight, tiles - 1) * kWarpWidth;
    }
    __device__ __forceinline__ const Element* row(int r) const {
        return data + (long long)(min(r, kRows - 1) % kHeight) * image.row;
    }

    __device__ __forceinline__ void copy(Quad* to, int y, int r) const {
        const Element* const from = row(r);
        const unsigned first = left(y, r) + lane_index() * kLaneWidth, last = image.width - 1;
        if (kVector) {
            copy_lane_ahead(to, from + min(first, last + 1 - kLaneWidth));
        } else {
            Quad samples;
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) samples.v[x] = from[min(first + x, last)];
            write_lane(to, samples);
        }
    }

    // Rows r and r + 8 of the step from row `y` on.
    __device__ __forceinline__ void ask(const RowQueue& queue, int y, int r) const {
        copy(queue.slot(r), y, r);
        copy(queue.slot(r, 1), y, r + kPairRows8);
        if (kVector) end_of_copy();
    }

    // Puts a code where the image has no column.
    __device__ __forceinline__ void fill(int y, int r, pair code, pair (&p)[kLaneWidth]) const {
        const int low = columns(y, r), high = columns(y, r + kPairRows8);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x)
            p[x] = __byte_perm(p[x], code, (x < low ? 0x10 : 0x54) | (x < high ? 0x3200 : 0x7600));
    }
    // For comparisons; row 8 is the first of the next step.
    __device__ __forceinline__ void close(int y, int r, pair (&p)[kLaneWidth]) const {
        if (r == kPairRows8) y += kPairRows, r = 0;
        if (!whole(y)) fill(y, r, kOutside, p);
    }
    // Puts codes where events find them: outside the image, code 0, which has a count.
    __device__ __forceinline__ void put(const PairCounter& count, int y, int r,
                                        const pair (&p)[kLaneWidth]) const {
        pair kept[kLaneWidth] = {p[0], p[1], p[2], p[3]};
        if (!whole(y)) fill(y, r, kCodeZero * 0x10001u, kept);
        count.put(r, kept);
    }
    // Whether the image has all columns of all tiles of a step.
    __device__ __forceinline__ bool whole(int y) const {
        return (y / kPairRows + 1) * (long long)(kTiles * kWarpWidth) <= image.width;
    }
    // Columns of the lane, and those to the right, that the image has.
    __device__ __forceinline__ int columns(int y, int r) const {
        return image.width - left(y, r) - lane_index() * kLaneWidth;
    }

    // Beside the warp, in the lane's row.
    __device__ __forceinline__ int beside(int y) const {
        const int r = lane_index() & 15, first = left(y, r);
        return on_the_left() ? first - 1 : first + kWarpWidth;
    }
    __device__ __forceinline__ Element outer(int y) const {
        return row(lane_index() & 15)[max(0, min(beside(y), image.width - 1))];
    }
    __device__ __forceinline__ pair outer_code(int y, Element sample, const Encoder& encode) const {
        const int x = beside(y);
        return x < 0 || x >= image.width ? kOutside : encode(sample, sample);
    }

    // The samples of a step that lie in the image.
    __device__ __forceinline__ plane own(int y) const {
        if (whole(y)) return row_bits(kRows);
        plane found = kNone;
        const int left = y / kPairRows * kTiles;
#pragma unroll
        for (int k = 0; k < kTiles; ++k) {
            const plane rows = row_bits((k + 1) * kHeight) & ~row_bits(k * kHeight);
            if (left + k < tiles) found = found | (rows & column_bits(columns(y, k * kHeight)));
        }
        return found;
    }
};

// Coefficients of a step from its comparisons. In T, the first row of a tile is also the row above it,
// and the last row the one below it.
__device__ __forceinline__ Numbers4 combine(const PairPlanes2& w, PairSides g_sides,
                                            PairSides m_sides) {
    const Place place(lane_index(), 0, 1 << 30);
    const Steps g = place.steps(w.g, g_sides, 16);
    const Trits none = {kNone, kNone};
    if (kHeight == 1) return extend(sum(kCubes ? g.taken(kAll) : Trits(g), none, none));
    plane m_bits = w.m;
    if (kCubes) {
        m_bits = (m_bits & ~kLast) | (w.g & kLast);
        m_sides.left = (m_sides.left & ~kLastRows) | (g_sides.left & kLastRows);
        m_sides.right = (m_sides.right & ~kLastRows) | (g_sides.right & kLastRows);
    }
    const Steps m = place.steps(m_bits, m_sides, 16);
    const plane below = w.below & ~kLast;
    const Trits given = m.taken(below);
    Trits got = {next_row(given.plus, kNone), next_row(given.minus, kNone)};
    if (kCubes) {
        const Trits own = g.taken(kFirst);
        got = {got.plus | own.plus, got.minus | own.minus};
    }
    return extend(sum(g, m.taken(kCubes ? ~below : ~(below | kLast)), got));
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins given, const Result result) {
    const Bins bins = with_line(given);
    extern __shared__ uint4 memory[];
    constexpr int kWarpBytes = kCacheBytes + RowQueue::kBytes;
    const int index = blockIdx.y, lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    char* const room = (char*)memory + warp * kWarpBytes;
    const int unit = blockIdx.x * (blockDim.x >> 5) + warp;
    const int tiles = (image.width - 1) / kWarpWidth + 1;
    const int rows = ((tiles - 1) / kTiles + 1) * kPairRows;
    const int begin = unit * tiling.chunk, end = min(begin + tiling.chunk, rows);
    const Lines lines = {image, image.data + index * image.batch, tiles};
    const RowQueue queue = {of_lane(room + kCacheBytes, lane)};
    const bool some = begin < end;
    if (some) {  // on their way while counts are cleared
#pragma unroll
        for (int r = 0; r < kCopies; ++r) lines.ask(queue, begin, r);
    }
    const PairBlock shared((char*)memory, kWarpBytes, bins, result, index, lane);
    __syncthreads();

    const Encoder encode(bins, shared.layout);
    const PairCounter count((const pair*)room + lane * kLaneWidth, shared.histogram);
    PairCheck check;
    if (some) {
        pair p[kLaneWidth];
        Element coming = lines.outer(begin);
        queue.take(0, encode, p, check);
        lines.close(begin, 0, p);
        lines.ask(queue, begin, kCopies);
        for (int y = begin; y < end; y += kPairRows) {
            const pair outer = lines.outer_code(y, coming, encode);
            coming = lines.outer(y + kPairRows);
            const PairPlanes2 w =
                compare(lines, y, p, lines, y + kPairRows, queue, encode, count, check);
            const pair inner = inner_code(count);
            PairSides m_sides = kNoSides;
            if (kHeight > 1)
                m_sides = sides(owner(outer, code_below(outer, outer)),
                                owner(inner, code_below(inner, inner)));
            count(combine(w, sides(outer, inner), m_sides), lines.own(y));
        }
    }
    finish(shared.histogram, result, index, check.failed());
}
