// The Euler characteristic curve of 3-D images, with the codes of two samples in a register: those of a
// row and of the eighth below it. A lane owns four columns.
//
// A warp owns 128 columns and 16 rows and moves through some slices. What the row above gives to
// the first one is computed by both warps, so that they need not wait for each other. Images have at
// least 16 rows and 2 columns. With c2 the 2-D coefficients (pairs2d.cu) and N_s = max(X_s, X_s+1):
//   c(s) = c2(X_s) - [X_s >= X_s+1] c2(N_s) - [X_s-1 < X_s] c2(N_s-1).
#define ECC_PAIRS
#include "feed.cuh"

// Comparisons in a slice s. g, n, m and b compare with x + 1: the samples themselves, and their maxima over
// y and y + 1, over s and s + 1, and over both. `below` and `behind` compare with y + 1 and s + 1, and
// `m_below` the maxima m with y + 1. Planes named `_before` begin with the row above, without the last row.
struct PairPlanes3 {
    plane g, n, m, b, below, m_below, behind;
    plane n_before, b_before, below_before, m_below_before;
};

// Loads the columns beside a warp, a slice ahead. Lane i has row i - 1.
struct BorderFeed {
    const Element* next;  // The column left of the warp in the slice that is asked for.
    Element left, right;
    const unsigned char* mask;  // kMask: the mask at the place of `next`.
    bool left_shown, right_shown;
    long long slice;
    int width;   // Samples from `next` to the column right of the warp.
    int slices;  // The number of slices that may still be asked for.
    Outside outside;
    static constexpr int kApart = kChannels * kStep;  // Samples from column to column.

    // Where the image has no column on a side, another one is loaded, and its code is replaced by `beyond`.
    ECC_DEVICE BorderFeed(const Image& image, const PairUnit& unit, int index)
        : slice(image.slice), slices(image.depth - unit.start), outside(unit.left, image.width) {
        const int lane = min(lane_index(), kPairRows + 1);
        const int row = min(max(unit.y - 1 + lane, 0), image.height - 1);
        const int from = kApart * max(unit.left - 1, 0);
        next = unit.data(image, index) + row * image.row + from;
        if (kMask) mask = image.shown(next);
        width = kApart * min(unit.left + kWarpWidth, image.width - 1) - from;
    }

    ECC_DEVICE void ask() {
        left = next[0], right = next[width];
        if (kMask) left_shown = mask[0], right_shown = mask[width];
        const long long step = --slices > 0 ? slice : 0;  // It is chosen, as in Feed.
        next += step;
        if (kMask) mask += step;
    }

    // Returns the borders of the slice that has been asked for, and asks for the next one. `ends` are the
    // warp's first and last column.
    ECC_DEVICE Border take(pair ends, const Encoder& encode) {
        pair outer = encode(left, right);
        if (kMask) {
            const pair zero = kCodeZero * 0x10001u;
            if (!left_shown) outer = __byte_perm(outer, zero, 0x3254);
            if (!right_shown) outer = __byte_perm(outer, zero, 0x5410);
        }
        ask();
        return beyond({__byte_perm(outer, ends, 0x7610), __byte_perm(ends, outer, 0x7610)},
                      outside);
    }
};

// Passes on a warp's first and last column through shared memory: two lanes have them, and each lane gets
// one row. Loading them together with the columns beside them takes longer: these are eighteen rows, often
// in one bank of the cache.
struct Ends {
    static constexpr int kSide = 48, kBytes = 2 * kSide;
    static constexpr int kFree = kSide - 4;  // Offset of a word that is not used.
    // The shared address of the items of the first column; those of the last column follow.
    unsigned address;

    // Returns the first column in low halves, and the last one in high halves; lane i has row i - 1.
    ECC_DEVICE pair columns(const pair (&p)[kItems][kLaneWidth]) const {
        const int own = lane_index();
        const bool first = own < 16;
        const unsigned to = address + (first ? 0 : kSide);
        pair column[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) column[i] = first ? p[i][0] : p[i][kLaneWidth - 1];
        __syncwarp();  // All lanes have read the columns of the slice before.
        if (own % 31 == 0) {
            shared_store(to, {column[0], column[1], column[2], column[3]});
            shared_store(to + 16, {column[4], column[5], column[6], column[7]});
            shared_store(to + 32, {column[8], column[9]});
        }
        __syncwarp();
        const int lane = min(lane_index(), kPairRows + 1);
        const unsigned at = address + (lane < kItems ? 4 * lane : 4 * (lane - kPairRows8) + 2);
        return shared_short(at) | shared_short(at + kSide) << 16;
    }
};

// Comparisons across the two borders of a warp, for slices s and s + 1.
struct AllSides {
    Sides g, n, m, b;

    ECC_DEVICE AllSides(Border p, Border q) {
        const Border at_m = owner(p, q);
        g = sides(p);
        n = sides(owner(p, next_row(p)));
        m = sides(at_m);
        b = sides(owner(at_m, next_row(at_m)));
    }
};

// Computes the coefficients of one slice after the other.
struct Combiner {
    const Image& image;
    const PairUnit& unit;
    Numbers3 given_behind;  // What slice s - 1 gives to slice s.

    ECC_DEVICE Combiner(const Image& image, const PairUnit& unit)
        : image(image), unit(unit), given_behind(zeros()) {}

    ECC_DEVICE Numbers4 operator()(PairPlanes3 w, const AllSides& side, int s) {
        const int here = lane_of_row();
        const Place place(here, unit.left + here * kLaneWidth, image.width);
        const int y = unit.y;
        const bool below = y + kPairRows < image.height;  // Whether there are rows below.
        const plane last_rows = below ? kNone : ~row_bits(kPairRows - 1);
        w.below = force(w.below, last_rows);
        w.m_below = force(w.m_below, last_rows);
        if (kCubes && y == 0) {  // The first row is its own row above.
            w.below_before = w.below_before | row_bits(1);
            w.m_below_before = w.m_below_before | row_bits(1);
        }
        if (s == image.depth - 1) w.behind = kCubes ? kNone : kAll;
        const Numbers3 flat =
            sum(place.steps(w.g, side.g, 15), place.steps(w.n, side.n, 15).taken(~w.below),
                place.steps(w.n_before, side.n, 16).taken(w.below_before));
        const Numbers3 deep =
            sum(place.steps(w.m, side.m, 15), place.steps(w.b, side.b, 15).taken(~w.m_below),
                place.steps(w.b_before, side.b, 16).taken(w.m_below_before));
        if (kCubes && s == 0) given_behind = flat;
        const Numbers4 c = subtract(flat, only(deep, ~w.behind), given_behind);
        given_behind = only(deep, w.behind);
        return c;
    }

    // Returns the samples that the warp counts.
    ECC_DEVICE plane own() const {
        return Place::columns(unit.left + lane_of_row() * kLaneWidth, image.width) &
               ~row_bits(unit.rows_before - unit.y);
    }
};

// Notices the same as PairCheck, and stores it at once: the compiler would put off a sum over many rows,
// and keep their samples until then, for which there are too few registers.
struct VolumeCheck {
    unsigned seen;  // Shared address of a word of the warp: not zero once something was noticed.

    ECC_DEVICE explicit VolumeCheck(char* word) : seen(shared_address(word)) {
        *(unsigned*)word = 0;
        __syncwarp();
    }
    // The encoder calls this for each pair, but `take` checks four at once.
    ECC_DEVICE void see(Element, Element) const {}
    ECC_DEVICE void see(const Quad& low, const Quad& high) const {
        if (kNan != kNanReport) return;
        float a[kLaneWidth], b[kLaneWidth];
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x)
            a[x] = (float)to_key(low.v[x]), b[x] = (float)to_key(high.v[x]);
        const float left = multiply_add(a[0], b[0], a[1]), right = multiply_add(b[1], a[2], b[2]);
        shared_store_unless_finite(seen, add_floats(multiply_add(a[3], b[3], left), right));
    }
    ECC_DEVICE bool failed() const { return shared_word(seen) != 0; }
};

ECC_DEVICE void take(Feed& feed, int i, const Encoder& encode, pair (&out)[kLaneWidth],
                     VolumeCheck check) {
    const Quad* const rows = feed.take(i);
    const Quad* const low = rows + (i < kItems - 1 ? 0 : kRowQuads);
    const Quad* const high = rows + (i > 0 ? kRowQuads : 0);
    if (kStep == 1) {
        encode(low, high, out, check);
    } else {
        const Quad a = samples_of(low), b = samples_of(high);
        encode(&a, &b, out, check);
    }
    if (kMask)
        mask_codes(out, *feed.shown(i, i < kItems - 1 ? 0 : 32), *feed.shown(i, i > 0 ? 32 : 0));
    if (i > 0 && i < kItems - 1)  // Other warps check the other rows.
        check.see(samples_of(low), samples_of(high));
}

ECC_DEVICE void take(ChannelFeed& feed, int i, const Encoder&, pair (&out)[kLaneWidth],
                     PairCheck&) {
    feed.take(i, out);
}

// Adds the two rows of a register, r and r + 8, to a plane that begins with row -1, the row above. The call
// with r = 7 adds them one after the other, and in between sets `before`, which lacks the last row only.
ECC_DEVICE void add_rows(Rows<true>& rows, plane& before, int r, const pair (&owned)[kLaneWidth],
                         RowWeights weights) {
    if (r < kPairRows8 - 1) {
        (r < 0 ? weights.low() : weights).add(rows.column, owned);
        return;
    }
    weights.low().add(rows.column, owned);
    before = rows.before();
    weights.high().add(rows.column, owned);
}

// Compares slice s with its neighbours. `p` holds slice s on entry and slice s + 1 on return, from the
// row above the warp's rows to the row below.
template <class Feed, class Check>
ECC_DEVICE PairPlanes3 compare(pair (&p)[kItems][kLaneWidth], Feed& feed, const Encoder& encode,
                               const PairCounter& count, Check& check) {
    Rows<false> g, m, behind;
    Rows<true> n, b, below, m_below;
    PairPlanes3 w;
    RowWeights weights(lane_index(), true);
    pair q_before[kLaneWidth], m_row[kLaneWidth], owned[kLaneWidth];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {  // Item i comes in, item i - 1 is compared.
        pair q[kLaneWidth], m_next[kLaneWidth];
        take(feed, i, encode, q, check);
        if (i == kItems - 1) {
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) q[x] = between(p[1][x], q[x]);
        }
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
            owned_right(owned, n_row);
            add_rows(n, w.n_before, r, owned, weights);
            owned_right(owned, b_row);
            add_rows(b, w.b_before, r, owned, weights);
            owns_shared(owned, p[i - 1], p[i]);
            add_rows(below, w.below_before, r, owned, weights);
            owns_shared(owned, m_row, m_next);
            add_rows(m_below, w.m_below_before, r, owned, weights);
            if (r >= 0) {
                owned_right(owned, p[i - 1]);
                weights.add(g.column, owned);
                owned_right(owned, m_row);
                weights.add(m.column, owned);
                owns_shared(owned, p[i - 1], q_before);
                weights.add(behind.column, owned);
                if (kChannels == 1) count.put(r, p[i - 1]);
            }
            weights.next();
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
    w.g = g.own(), w.n = n.own(), w.m = m.own(), w.b = b.own();
    w.below = below.own(), w.m_below = m_below.own(), w.behind = behind.own();
    return w;
}

// Counts the slices of a unit.
template <class Feed, class Check>
ECC_DEVICE void scan(const Image& image, const PairUnit& unit, Feed& feed, BorderFeed& borders,
                     Ends ends, const Encoder& encode, PairCounter count, Check& check) {
    pair p[kItems][kLaneWidth];
#pragma unroll
    for (int i = 0; i < kItems; ++i) take(feed, i, encode, p[i], check);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) p[kItems - 1][x] = between(p[1][x], p[kItems - 1][x]);
    Border border_p = borders.take(ends.columns(p), encode);
    Combiner combine(image, unit);
    for (int s = unit.start; s < unit.end; ++s) {
        const PairPlanes3 w = compare(p, feed, encode, count, check);
        const Border border_q = borders.take(ends.columns(p), encode);
        const AllSides side(border_p, border_q);
        border_p = border_q;
        const Numbers4 c = combine(w, side, s);
        if (s >= unit.begin) count(c, combine.own());
        if (kChannels > 1) count.cache += ChannelFeed::kSlice;
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins given, const Result result) {
    const Bins bins = with_line(given);
    extern __shared__ uint4 memory[];
    alignas(16) __shared__ char ends_of[ECC_THREADS / 32][Ends::kBytes];
    constexpr int kWarpBytes = kChannels > 1 ? ChannelFeed::kBytes : kCacheBytes + Feed::kBytes;
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5), warps = blockDim.x >> 5;
    char* const room = (char*)memory + warp * kWarpBytes;
    const Ends ends = {shared_address(ends_of[warp])};
#if ECC_CHANNELS > 1
    PairCheck check;
    const BlockCounts shared(memory, kWarpBytes, bins, result, index);
    const Encoder encode(bins, shared.layout);
    const PairCounter count((const pair*)(room + kCacheRow) + lane * kLaneWidth, shared.histogram);
    // Warps take several units, one after the other. Those of the last turn, which may be few, are
    // spread over all blocks.
    int i = warp * result.blocks + block;
    for (PairUnit unit(image, tiling, i); unit.some(); unit = PairUnit(image, tiling, i)) {
        BorderFeed borders(image, unit, index);
        borders.ask();
        ChannelFeed feed(image, unit, index, shared_address(room), encode, check);
        scan(image, unit, feed, borders, ends, encode, count, check);
        i += warps * result.blocks;
    }
#else
    const PairUnit unit(image, tiling, block * warps + warp);
    const Columns columns(lane_of_row(), unit.left, image.width);
    Feed feed(image, unit, index, room + kCacheBytes, columns);
    if (unit.some()) feed.begin();  // The copies run while counts are cleared.
    const BlockCounts shared(memory, kWarpBytes, bins, result, index);
    const VolumeCheck check(ends_of[warp] + Ends::kFree);
    if (unit.some()) {
        const Encoder encode(bins, shared.layout);
        const PairCounter count((const pair*)room + lane * kLaneWidth, shared.histogram);
        BorderFeed borders(image, unit, index);
        borders.ask();
        scan(image, unit, feed, borders, ends, encode, count, check);
    }
#endif
    finish(shared.histogram, result, index, check.failed());
}
