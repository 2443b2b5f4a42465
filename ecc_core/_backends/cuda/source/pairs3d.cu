// The Euler characteristic curve of 3-D images, with the codes of two samples in a register: those of a
// row and of the eighth below it. A lane owns four columns.
#define ECC_PAIRS
#include "volume.cuh"

// Notices the same as PairCheck, and stores it at once: the compiler would put off a sum over many rows, and
// keep their samples until then, for which there are too few registers.
struct VolumeCheck {
    unsigned seen;  // shared address of a word of the warp: not zero once something was noticed

    ECC_DEVICE explicit VolumeCheck(char* word) : seen(shared_address(word)) {
        *(unsigned*)word = 0;
        __syncwarp();
    }
    ECC_DEVICE void see(Element, Element) const {}  // one by one
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
    const Quad* const low = feed.take(i);
    encode(low + (i < kItems - 1 ? 0 : 32), low + (i > 0 ? 32 : 0), out, check);
    if (kMask)
        mask_codes(out, *feed.shown(i, i < kItems - 1 ? 0 : 32), *feed.shown(i, i > 0 ? 32 : 0));
    if (i > 0 && i < kItems - 1) check.see(low[0], low[32]);  // other warps check the other rows
}

ECC_DEVICE void take(ChannelFeed& feed, int i, const Encoder&, pair (&out)[kLaneWidth],
                     PairCheck&) {
    feed.take(i, out);
}

// Adds the rows of a register, r and r + 8, to a plane that begins with row -1, the row above. Row 7 is
// left to the last call, r = 7, which sets `before` when only row 15 is missing.
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
    for (int i = 0; i < kItems; ++i) {  // item i comes in, item i - 1 is compared
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
            for (int x = 0; x < kLaneWidth; ++x)
                p[i - 1][x] = q_before[x];
        }
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            q_before[x] = q[x];
            m_row[x] = m_next[x];
        }
    }
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x)
        p[kItems - 1][x] = q_before[x];
    w.g = g.own(), w.n = n.own(), w.m = m.own(), w.b = b.own();
    w.below = below.own(), w.m_below = m_below.own(), w.behind = behind.own();
    return w;
}

// The slices of a unit.
template <class Feed, class Check>
ECC_DEVICE void scan(const Image& image, const PairUnit& unit, Feed& feed, BorderFeed& borders,
                     Ends ends, const Encoder& encode, PairCounter count, Check& check) {
    pair p[kItems][kLaneWidth];
#pragma unroll
    for (int i = 0; i < kItems; ++i) take(feed, i, encode, p[i], check);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x)
        p[kItems - 1][x] = between(p[1][x], p[kItems - 1][x]);
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
    if (unit.some()) feed.begin();  // on their way while counts are cleared
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
