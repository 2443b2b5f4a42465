// The Euler characteristic curve of 2-D images.
//
// A warp owns 128 columns and marches down `chunk` rows, eight at a time; a lane owns four columns. Each comparison
// gives a bit, 32 of them a plane, and plane arithmetic gives the coefficients of 32 samples at once:
//   c(y, x) = e(X_y) - [X_y >= X_y+1] e(max(X_y, X_y+1)) - [X_y-1 < X_y] e(max(X_y-1, X_y)),
//   e(R)(x) = g(x) - g(x - 1),  g(x) = [R(x) < R(x + 1)].
#include "march.cuh"

struct Planes2 { plane g, g_left, m, m_left, below; };  // below: [X_y before X_y+1]

// Comparisons of the last `rows` rows of the word that starts at `row`. `p` holds the first of them on entry and the
// row after the word on return.
template <int rows>
__device__ __forceinline__ Planes2 compare(const Element* data, const unsigned char* mask, const Image& image,
                                           const Columns& columns, int left, int row, int lane, plane last_column,
                                           Key (&p)[kLaneWidth + 1], plane& present, FiniteCheck& check) {
    plane g = 0, m = 0, below = 0;
    present = 0;
    #pragma unroll
    for (int r = kLaneRows - rows; r < kLaneRows; ++r) {
        const int next = min(row + r + 1, image.height - 1);
        Key q[kLaneWidth + 1], both[kLaneWidth + 1];
        load_keys(data + next * image.row, mask + next * image.mask_row, columns, q);
        #pragma unroll
        for (int x = 0; x <= kLaneWidth; ++x) both[x] = later(p[x], q[x]);
        #pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            push(g, p[x], p[x + 1]);
            push(m, both[x], both[x + 1]);
            push(below, p[x], q[x]);
            if (kMask) present = present * 2 + (p[x] != never(p[x]));
            if (kNan == kNanReport && !(r & 1)) check.see(both[x]);
        }
        #pragma unroll
        for (int x = 0; x <= kLaneWidth; ++x) p[x] = q[x];
    }
    g = force(g, last_column);
    m = force(m, last_column);
    plane g_border = kDual ? ~0u : 0u, m_border = g_border;
    if (left) {
        const long long top = min(max(row + border_row(lane), 0), image.height - 1);
        const long long bottom = min(max(row + border_row(lane) + 1, 0), image.height - 1);
        const Element *upper = data + top * image.row, *lower = data + bottom * image.row;
        const unsigned char *upper_mask = mask + top * image.mask_row, *lower_mask = mask + bottom * image.mask_row;
        const Key a = load_key(upper, upper_mask, left - 1), b = load_key(upper, upper_mask, left);
        const Key c = load_key(lower, lower_mask, left - 1), d = load_key(lower, lower_mask, left);
        g_border = ballot_before(a, b);
        m_border = ballot_before(later(a, c), later(b, d));
    }
    below = force(below, row_bits(image.height - row) & ~row_bits(image.height - 1 - row));
    return {g, from_left(g, g_border, lane), m, from_left(m, m_border, lane), below};
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ unsigned long long memory[];
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31;
    Histogram histogram = {0, result.counts + (long long)index * (bins.count + 1), bins.count + 1, result.copies,
                           lane & (result.copies - 1)};
    const SharedLayout layout = lay_out(memory, bins, histogram.words());
    histogram.counts = layout.counts;
    histogram.clear();
    __syncthreads();

    const int unit = block * (blockDim.x >> 5) + (threadIdx.x >> 5);
    const int left = unit % tiling.across * kWarpWidth, x = left + lane * kLaneWidth;
    const int begin = tiling.first + unit / tiling.across * tiling.chunk, end = min(begin + tiling.chunk, tiling.last);
    if (begin < end) {
        const Element* data = image.data + index * image.batch;
        const unsigned char* mask = image.mask + index * image.mask_batch;
        const Columns columns(x, image.width);
        const plane own = column_bits(image.width - x);
        const plane last_column = own & ~column_bits(image.width - 1 - x);
        const Counter count = {bins, layout.thresholds, layout.table, histogram};
        FiniteCheck check;
        plane present;
        Key p[kLaneWidth + 1];
        const int start = max(begin - 1, 0);
        load_keys(data + start * image.row, mask + start * image.mask_row, columns, p);
        Trits above = {0, 0};  // what the row before takes from this one, in the low four bits
        if (begin > 0) {
            const Planes2 w = compare<1>(data, mask, image, columns, left, begin - kLaneRows, lane, last_column, p, present, check);
            above = taken(w.m, w.m_left, w.below);
        }
        for (int row = begin; row < end; row += kLaneRows) {
            const Planes2 w = compare<kLaneRows>(data, mask, image, columns, left, row, lane, last_column, p, present, check);
            if (kDual && row == 0) {
                const Trits outer = taken(w.g, w.g_left, ~0u);
                above = {outer.plus >> 28, outer.minus >> 28};
            }
            const Trits here = {w.g & ~w.g_left, ~w.g & w.g_left};
            const Trits kept = taken(w.m, w.m_left, ~w.below), given = taken(w.m, w.m_left, w.below);
            const Trits received = {next_row(given.plus, above.plus), next_row(given.minus, above.minus)};
            above = given;
            const Numbers3 c = sum(here, kept, received);
            const plane owned = own & row_bits(end - row) & (kMask ? present : ~0u);
            const LaneTile tile = {data + row * image.row, image.row, image.height - 1 - row, x};
            count(tile, columns, {c.b0, c.b1, c.b2, c.b2}, owned);
        }
        check.report(result.not_finite);
    }
    finish(histogram, result, index);
}
