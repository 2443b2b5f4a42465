// The Euler characteristic curve of 2-D images, with the codes of two samples in a register.
//
// Each comparison gives a bit, 64 of them a plane, and plane arithmetic gives the coefficients of 64
// samples at once:
//   c(y, x) = e(X_y) - [X_y >= X_y+1] e(max(X_y, X_y+1)) - [X_y-1 < X_y] e(max(X_y-1, X_y)),
//   e(R)(x) = g(x) - g(x - 1),  g(x) = [R(x) < R(x + 1)].
// A warp owns 128 columns and moves down `chunk` rows, sixteen at a time. A lane owns four columns, and
// holds a row and the eighth below it in one register. The grid is (blocks, images).
//
// kLines: images of a few long rows are cut into tiles of 128 columns, and the sixteen rows are those of as
// many tiles as fit. Row r of a step is row r % kHeight of its tile r / kHeight. Samples behind the last
// whole tile are counted one by one.
#define ECC_PAIRS
#include "rows2d.cuh"

// Comparisons across the left and right borders of a warp. Lanes 0 to 15 have the left border in the
// sixteen rows of a step, lanes 16 to 31 the right one; codes are in low halves.

// For warps that have no columns beside them.
constexpr Sides kNoSides = {kCubes ? ~0u : 0u, kCubes ? 0u : ~0u};

ECC_DEVICE bool on_the_left() { return lane_index() < 16; }

// Returns the warp's own first or last column, once all its rows are in shared memory.
ECC_DEVICE pair inner_code(const PairCounter& count) {
    const int lane = lane_index();
    const unsigned warp = count.cache - lane * (kLaneWidth * sizeof(pair));
    const unsigned column = on_the_left() ? 0 : kCacheRow - sizeof(pair);
    __syncwarp();
    return shared_short(warp + (lane & 7) * kCacheRow + (lane >> 3 & 1) * 2 + column);
}

// Returns the code of the row below. That of the last row is the first one of `next`, in lanes 0 and 16.
ECC_DEVICE pair code_below(pair code, pair next) {
    const int lane = lane_index();
    return __shfl_sync(kWarp, lane & 15 ? code : next, (lane & 16) | ((lane + 1) & 15));
}

// Compares across the sides; bit i of each is row i.
ECC_DEVICE Sides sides(pair outer, pair inner) {
    const pair owned = on_the_left() ? owns_shared(outer, inner) : owns_shared(inner, outer);
    const unsigned both = __ballot_sync(kWarp, owned & 0xFFFFu);
    return {both, both >> 16};
}

// A sample beside a warp, and whether the mask shows it.
struct Outer {
    Element sample;
    bool shown;
};

// The columns of a warp.
struct PairStrip {
    const Image& image;
    const Element* data;  // The lane's first column of row 0 of its image.
    const Columns& columns;
    int left, lane;

    // kLines: returns the tile of row `r` of the step at `y`, at most the last one.
    ECC_DEVICE int tile(int y, int r) const {
        const int tile = (y / kPairRows + r / kPairRows) * kTiles + r % kPairRows / kHeight;
        return min(min(tile, (y / kPairRows + r / kPairRows + 1) * kTiles - 1), tiles() - 1);
    }
    // Returns the number of whole tiles.
    ECC_DEVICE int tiles() const { return image.width / kWarpWidth; }

    // Returns row `r` of the step at `y`. The host ensures that the bytes between rows fit in 32 bits.
    ECC_DEVICE const Element* row(int y, int r) const {
        if (kLines) {
            const long long own = min(r % kPairRows, kTiles * kHeight - 1) % kHeight;
            return data + own * image.row + (long long)tile(y, r) * (kWarpWidth * kStep);
        }
        const int bytes = (int)image.row * (int)sizeof(Element);
        return (const Element*)((const char*)data + product(min(y + r, image.height - 1), bytes));
    }

    // Starts to copy rows r and r + 8 of the step at `y`.
    ECC_DEVICE void ask(const RowQueue& queue, int y, int r) const {
        queue.ask(r, row(y, r), row(y, r + kPairRows8), columns, image);
    }
    // Returns whether the image has no sample beside the warp in row `r`, on the side of this lane.
    ECC_DEVICE bool ends(int y, int r) const {
        if (kLines) {
            const bool last = tile(y, r) + 1 == tiles() && image.width % kWarpWidth == 0;
            return on_the_left() ? tile(y, r) == 0 : last;
        }
        return on_the_left() ? left == 0 : left + kWarpWidth >= image.width;
    }
    // Returns the sample beside the warp in row `r`, or if there is none another one.
    ECC_DEVICE Outer outer(int y, int r) const {
        const int inner = on_the_left() ? 0 : min(kWarpWidth, image.width - left) - 1;
        const int beside = inner + (ends(y, r) ? 0 : on_the_left() ? -1 : 1);
        const Element* const at = row(y, r) + (beside - (int)columns.first) * kStep;
        return {*at, !kMask || *image.shown(at)};
    }
    // Returns the same of the rows of the step at `y`, of which each lane takes one.
    ECC_DEVICE Outer outer_rows(int y) const { return outer(y, lane_index() & 15); }
    // Returns the code of the sample beside the warp.
    ECC_DEVICE pair code(Outer outer, const Encoder& encode, int y, int r) const {
        const bool outside = ends(y, r);
        const pair code = outside ? kOutside : encode(outer.sample, outer.sample);
        return outside || outer.shown ? code : kCodeZero * 0x10001u;
    }
    ECC_DEVICE pair code_of_rows(Outer outer, const Encoder& encode, int y) const {
        return code(outer, encode, y, lane_index() & 15);
    }
    // Returns the samples of the step at `y` that count, of rows up to `end`.
    ECC_DEVICE plane own(int y, int end) const {
        if (!kLines) return column_bits(image.width - left - lane * kLaneWidth) & row_bits(end - y);
        return row_bits(min(kTiles, tiles() - y / kPairRows * kTiles) * kHeight);
    }
};

// Comparisons of a step: `g` and `m` of samples and of the maxima of two rows with their right neighbours,
// and `below` where the row below owns the cells that both rows share.
struct PairPlanes2 {
    plane g, m, below;
};

// Compares sixteen rows from row `y` on. `p` holds rows y and y + 8 on entry and rows y + 16 and y + 24 on
// return; the queue holds the rows after these. The next step is at row `y_after` of `after`.
ECC_DEVICE PairPlanes2 compare(const PairStrip& strip, int y, pair (&p)[kLaneWidth],
                               const PairStrip& after, int y_after, const RowQueue& queue,
                               const Encoder& encode, const PairCounter& count, PairCheck& check) {
    Rows<false> g, m, below;
    RowWeights weights(lane_index());
    pair first[kLaneWidth], next[kLaneWidth];
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) first[x] = p[x];
#pragma unroll
    for (int r = 0; r < kPairRows8; ++r) {
        pair q[kLaneWidth], both[kLaneWidth], owned[kLaneWidth];
        queue.take(r + 1, encode, next, check);
        const int coming = r + 1 + kCopies;
        if (coming < kPairRows8)
            strip.ask(queue, y, coming);
        else if (coming == kPairRows8)
            strip.ask(queue, y + kPairRows, 0);
        else
            after.ask(queue, y_after, coming - kPairRows8);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            q[x] = r < kPairRows8 - 1 ? next[x] : between(first[x], next[x]);
            both[x] = owner(p[x], q[x]);
        }
        owned_right(owned, p);
        weights.add(g.column, owned);
        if (!kLines || kHeight > 1) {
            owned_right(owned, both);
            weights.add(m.column, owned);
            owns_shared(owned, p, q);
            weights.add(below.column, owned);
        }
        weights.next();
        count.put(r, p);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) p[x] = next[x];
    }
    return {g.own(), m.own(), below.own()};
}

// Returns what the row above gives to the first row, both in low halves. At the upper `border` of the
// image, which matters for T only, the first row is also the row above, and gives everything.
ECC_DEVICE Trits given_to(bool border, const pair (&up)[kLaneWidth], const pair (&p)[kLaneWidth],
                          const Place& place, Sides m_sides, RowWeights weights) {
    pair both[kLaneWidth], owned[kLaneWidth];
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) both[x] = owner(up[x], p[x]);
    Rows<false> m, below;
    owned_right(owned, both);
    weights.add(m.column, owned);
    owns_shared(owned, up, p);
    weights.add(below.column, owned);
    return place.steps(m.own(), m_sides, 16).taken(border ? kAll : below.own());
}

// The rows that the first step of a warp needs before those in the queue, and the samples beside them.
// The rows of the next image wait in shared memory until the present image is done.
struct Start {
    static constexpr int kBytes = kBatch ? 3 * 32 * sizeof(Quad) : 0;
    char* rows;         // They are in shared memory.
    Quad loaded[3];     // The row above, the first one and the eighth below it.
    unsigned shown[3];  // Only with kMask.
    Outer outer_up, outer;

    // kBatch: returns a row of the lane in shared memory.
    ECC_DEVICE Quad* waiting(int row) const {
        return of_lane(rows + row * 32 * (int)sizeof(Quad), lane_index());
    }

    ECC_DEVICE void ask(const PairStrip& strip, int y) {
        const int up = max(y - 1, 0);
        if (!kBatch) outer_up = strip.outer(up, 0), outer = strip.outer_rows(y);
        const Element* const from[3] = {strip.row(up, 0), strip.row(y, 0),
                                        strip.row(y, kPairRows8)};
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            if (kBatch)
                RowQueue::copy(waiting(k), from[k], strip.columns);
            else
                load_quad(loaded[k], from[k], strip.columns);
            if (kMask) shown[k] = *(const unsigned*)strip.image.shown(from[k]);
        }
    }

    // Takes the rows. Only the kCopies groups of the queue, which were asked for later, may still be
    // copied.
    ECC_DEVICE void take(const Encoder& encode, pair (&p)[kLaneWidth], pair (&row_up)[kLaneWidth],
                         PairCheck& check) const {
        if (kBatch && kVector) wait_for_copy<kCopies>();
        Quad taken[3];
#pragma unroll
        for (int k = 0; k < 3; ++k) taken[k] = kBatch ? read_lane(waiting(k)) : loaded[k];
        encode(&taken[1], &taken[2], p, check);
        encode(&taken[0], &taken[0], row_up, check);
        if (kMask) mask_codes(p, shown[1], shown[2]), mask_codes(row_up, shown[0], shown[0]);
    }
};

// Returns the sides of the maxima of the row above (`up`) and the first row (`p`), as lanes 0 and 31 see
// them.
ECC_DEVICE Sides sides_above(const pair (&up)[kLaneWidth], const pair (&p)[kLaneWidth],
                             pair outer_up, pair outer) {
    constexpr int end = kLaneWidth - 1;
    const pair first = __shfl_sync(kWarp, outer, lane_index() & 16);
    const pair inner = on_the_left() ? owner(up[0], p[0]) : owner(up[end], p[end]);
    const Sides found = sides(owner(outer_up, first), inner);
    return {found.left, found.right >> 15};
}

// kLines: returns the coefficients of a step. In T, the first row of a tile is also the row above it, and
// the last row is also the row below it.
ECC_DEVICE Numbers4 coefficients_of_tiles(const PairPlanes2& w, const Place& place, Sides g_sides,
                                          Sides m_sides) {
    constexpr plane first = {kFirstRows, kFirstRows}, last = {kLastRows, kLastRows};
    const Steps g = place.steps(w.g, g_sides, 16);
    const Trits none = {kNone, kNone};
    if (kHeight == 1) return extend(sum(kCubes ? g.taken(kAll) : Trits(g), none, none));
    plane m_bits = w.m;
    if (kCubes) {
        m_bits = (m_bits & ~last) | (w.g & last);
        m_sides.left = (m_sides.left & ~kLastRows) | (g_sides.left & kLastRows);
        m_sides.right = (m_sides.right & ~kLastRows) | (g_sides.right & kLastRows);
    }
    const Steps m = place.steps(m_bits, m_sides, 16);
    const plane below = w.below & ~last;
    const Trits given = m.taken(below);
    Trits got = {next_row(given.plus, kNone), next_row(given.minus, kNone)};
    if (kCubes) {
        const Trits own = g.taken(first);
        got = {got.plus | own.plus, got.minus | own.minus};
    }
    return extend(sum(g, m.taken(kCubes ? ~below : ~(below | last)), got));
}

// Processes rows `begin` to `end` of an image. `start` and the queue hold its first rows on entry, and
// those of the image at `after` on return.
ECC_DEVICE void scan(const PairStrip& strip, int begin, int end, const Element* after, Start& start,
                     const RowQueue& queue, const Encoder& encode, const PairCounter& count,
                     PairCheck& check) {
    const Image& image = strip.image;
    pair p[kLaneWidth], row_up[kLaneWidth];
    start.take(encode, p, row_up, check);
    Trits above = {kNone, kNone};
    pair outer, outer_up;
    if (!kBatch)
        outer = strip.code_of_rows(start.outer, encode, begin),
        outer_up = strip.code(start.outer_up, encode, begin - 1, 0);
    for (int row = begin; row < end; row += kPairRows) {
        const int x = strip.left + lane_index() * kLaneWidth;
        const Place place(lane_index(), x, image.width);
        PairStrip next = strip;
        int then = row + kPairRows;
        const bool last = kBatch && then >= end;
        if (last) {
            next.data = after, then = begin;
            start.ask(next, then);
        }
        Outer coming;  // Samples beside the rows of the next step.
        if (!kBatch) coming = next.outer_rows(then);
        if (!kLines && row == begin && (kCubes || row > 0)) {
            const Sides side = kBatch ? kNoSides : sides_above(row_up, p, outer_up, outer);
            above = given_to(row == 0, row_up, p, place, side, RowWeights(strip.lane));
        }
        const PairPlanes2 w = compare(strip, row, p, next, then, queue, encode, count, check);
        Sides g_sides = kNoSides, m_sides = kNoSides;
        if (!kBatch) {
            const pair inner = inner_code(count),
                       outer_next = strip.code_of_rows(coming, encode, then);
            const pair outer_below = code_below(outer, outer_next);
            pair inner_below = code_below(inner, p[0]);
            if (lane_index() == 31) inner_below = p[kLaneWidth - 1];
            g_sides = sides(outer, inner);
            m_sides = sides(owner(outer, outer_below), owner(inner, inner_below));
            outer = outer_next;
        }
        if (kLines) {
            count(coefficients_of_tiles(w, place, g_sides, m_sides), strip.own(row, end));
            continue;
        }
        const Steps g = place.steps(w.g, g_sides, 16);
        const Steps m = place.steps(w.m, m_sides, 16);
        const int rest = image.height - row;
        const plane below = force(w.below, row_bits(rest) & ~row_bits(rest - 1));
        const Trits given = m.taken(below);
        const Trits got = {next_row(given.plus, above.plus), next_row(given.minus, above.minus)};
        const Numbers3 c = sum(g, m.taken(~below), got);
        above = {last_row(given.plus), last_row(given.minus)};
        count(extend(c), strip.own(row, end));
    }
}

// kLines: counts the samples behind the last whole tile of an image, one by one, by the threads of a block.
struct Remainder {
    const Image& image;
    const Element* data;
    const Encoder& encode;

    ECC_DEVICE pair code(int y, int x) const {
        if (x >= image.width) return kOutside;
        const Element* const at = data + y * image.row + (long long)x * kStep;
        return !kMask || *image.shown(at) ? encode(*at, *at) : kCodeZero * 0x10001u;
    }
    // Returns the code of a sample, or with `shared` that of the owner of what it shares with the row
    // below.
    ECC_DEVICE pair code(int y, int x, bool shared) const {
        return shared ? owner(code(y, x), code(y + 1, x)) : code(y, x);
    }
    ECC_DEVICE static int owns_second(pair a, pair b) { return (owns_shared(a, b) & 0xFFFFu) != 0; }

    // Returns the coefficient of a sample in its row by itself.
    ECC_DEVICE int alone(int y, int x, bool shared) const {
        const pair own = code(y, x, shared);
        return owns_second(own, code(y, x + 1, shared)) - owns_second(code(y, x - 1, shared), own);
    }
    ECC_DEVICE int coefficient(int y, int x) const {
        int found = alone(y, x, false);
        const bool first = y == 0, last = y == kHeight - 1;
        if (last ? kCubes : !owns_second(code(y, x), code(y + 1, x))) found -= alone(y, x, !last);
        if (first ? kCubes : owns_second(code(y - 1, x), code(y, x)))
            found -= alone(first ? y : y - 1, x, !first);
        return found;
    }

    ECC_DEVICE void operator()(const PairCounter& count, PairCheck& check) const {
        const int rest = image.width % kWarpWidth;
        for (int i = threadIdx.x; i < kHeight * rest; i += blockDim.x) {
            const int y = i / rest, x = image.width - rest + i % rest;
            const Element sample = data[y * image.row + (long long)x * kStep];
            check.see(sample, sample);
            const unsigned half = code(y, x) & 0xFFFFu;
            shared_add(count.counts + half * count.step, 16 * coefficient(y, x));
        }
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins given, const Result result) {
    const Bins bins = with_line(given);
    extern __shared__ uint4 memory[];
    constexpr int kWarpBytes = kCacheBytes + RowQueue::kBytes + Start::kBytes;
    int index = blockIdx.y;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5);
    char* const room = (char*)memory + warp * kWarpBytes;
    const unsigned unit = blockIdx.x * (blockDim.x >> 5) + warp, across = tiling.across;
    const unsigned down = unit / across;
    const unsigned column = unit - down * across;
    const int left = column * kWarpWidth;
    const int begin = tiling.first + down * tiling.chunk;
    const int end = min(begin + tiling.chunk, tiling.last);
    const Columns columns(lane, left, image.width);
    const Element* const data = image.data + index * image.batch;
    const Element* const first = data + (left + (int)columns.first) * kStep;
    PairStrip strip = {image, first, columns, left, lane};
    const RowQueue queue = {of_lane(room + kCacheBytes, lane)};
    Start start;
    start.rows = room + kCacheBytes + RowQueue::kBytes;
    if (begin < end) {  // The copies run while counts are cleared.
        start.ask(strip, begin);
        if (kBatch && kVector) end_of_copy();
        __syncwarp();  // Keeps the compiler from asking for the rows of the queue first.
#pragma unroll
        for (int r = 1; r <= kCopies; ++r) strip.ask(queue, begin, r);
    }
    const BlockCounts shared(memory, kWarpBytes, bins, result, index);
    const Encoder encode(bins, shared.layout);
    const PairCounter count((const pair*)room + lane * kLaneWidth, shared.histogram);
    for (;;) {
        const int next = index + gridDim.y;
        const bool more = kBatch && next < tiling.images;
        const Element* const after = strip.data + (more ? gridDim.y * image.batch : 0);
        PairCheck check;
        if (begin < end) scan(strip, begin, end, after, start, queue, encode, count, check);
        if (kLines && blockIdx.x == 0) Remainder{image, data, encode}(count, check);
        finish(shared.histogram, result, index, check.failed());
        if (!more) return;
        index = next;
        strip.data = after;
    }
}
