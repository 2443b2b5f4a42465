// The Euler characteristic curve of 3-D images.
//
// A block of W warps owns 128 columns and 8 W rows and marches through `chunk` slices; a lane owns four columns and
// eight rows, 32 samples, so a plane is one word. With c2 the 2-D coefficients (curve2d.cu), N_s = max(X_s, X_s+1):
//   c(s) = c2(X_s) - [X_s >= X_s+1] c2(N_s) - [X_s-1 < X_s] c2(N_s-1).
// Slices s - 1 live on as planes in registers. What the last row of a warp gives to the first row of the next goes
// through shared memory. Every block but the first along y repeats the last row of the block before it.
#include "march.cuh"

// Comparisons of a slice s with the samples at x + 1, y + 1 and s + 1. n: maxima over y; m: over s; b: over both.
struct Planes3 { plane g, n, m, b, below, m_below, behind; };

struct Border { Key v[2][2]; };  // two rows, two columns across the first column of the warp

__device__ __forceinline__ Border load_border(const Element* slice, const unsigned char* mask, const Image& image,
                                              int row, int column) {
    Border border;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        const long long y = min(row + r, image.height - 1);
        #pragma unroll
        for (int x = 0; x < 2; ++x) border.v[r][x] = load_key(slice + y * image.row, mask + y * image.mask_row, column + x);
    }
    return border;
}

// `p` holds slice s on entry and slice s + 1 on return.
__device__ __forceinline__ Planes3 compare(const Element* next, const unsigned char* mask, const Image& image,
                                           const Columns& columns, int last_row, Key (&p)[kLaneRows + 1][kLaneWidth + 1],
                                           plane& present, FiniteCheck& check) {
    Planes3 w = {0, 0, 0, 0, 0, 0, 0};
    present = 0;
    Key q[kLaneWidth + 1], m[kLaneWidth + 1];
    load_keys(next, mask, columns, q);
    #pragma unroll
    for (int x = 0; x <= kLaneWidth; ++x) m[x] = later(p[0][x], q[x]);
    #pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
        const int y = min(r + 1, last_row);
        Key q_below[kLaneWidth + 1], m_below[kLaneWidth + 1], n[kLaneWidth + 1], b[kLaneWidth + 1];
        load_keys(next + y * image.row, mask + y * image.mask_row, columns, q_below);
        #pragma unroll
        for (int x = 0; x <= kLaneWidth; ++x) {
            m_below[x] = later(p[r + 1][x], q_below[x]);
            n[x] = later(p[r][x], p[r + 1][x]);
            b[x] = later(m[x], m_below[x]);
        }
        #pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            push(w.g, p[r][x], p[r][x + 1]);
            push(w.n, n[x], n[x + 1]);
            push(w.m, m[x], m[x + 1]);
            push(w.b, b[x], b[x + 1]);
            push(w.below, p[r][x], p[r + 1][x]);
            push(w.m_below, m[x], m_below[x]);
            push(w.behind, p[r][x], q[x]);
            if (kMask) present = present * 2 + (p[r][x] != never(p[r][x]));
            if (kNan == kNanReport && !(r & 1)) check.see(b[x]);
        }
        #pragma unroll
        for (int x = 0; x <= kLaneWidth; ++x) {
            p[r][x] = q[x];
            q[x] = q_below[x];
            m[x] = m_below[x];
        }
    }
    #pragma unroll
    for (int x = 0; x <= kLaneWidth; ++x) p[kLaneRows][x] = q[x];
    return w;
}

struct Lefts { plane g, n, m, b; };

__device__ __forceinline__ Lefts lefts(const Planes3& w, const Border& p, const Border& q, bool first, int lane) {
    Lefts border = {0, 0, 0, 0};
    if (first) {
        if (kDual) border = {~0u, ~0u, ~0u, ~0u};
    } else {
        Key m[2][2];
        #pragma unroll
        for (int i = 0; i < 4; ++i) m[i >> 1][i & 1] = later(p.v[i >> 1][i & 1], q.v[i >> 1][i & 1]);
        border = {ballot_before(p.v[0][0], p.v[0][1]),
                  ballot_before(later(p.v[0][0], p.v[1][0]), later(p.v[0][1], p.v[1][1])),
                  ballot_before(m[0][0], m[0][1]),
                  ballot_before(later(m[0][0], m[1][0]), later(m[0][1], m[1][1]))};
    }
    return {from_left(w.g, border.g, lane), from_left(w.n, border.n, lane), from_left(w.m, border.m, lane),
            from_left(w.b, border.b, lane)};
}

// The low four bits of four planes in one word, and back.
__device__ __forceinline__ plane pack(Trits a, Trits b) {
    return (a.plus & kLastRow) | (a.minus & kLastRow) << 4 | (b.plus & kLastRow) << 8 | (b.minus & kLastRow) << 12;
}

__device__ __forceinline__ Trits receive(Trits given, plane packed) {
    return {next_row(given.plus, packed), next_row(given.minus, packed >> 4)};
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ unsigned long long memory[];
    const int index = blockIdx.x / result.blocks, unit = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    Histogram histogram = {0, result.counts + (long long)index * (bins.count + 1), bins.count + 1, result.copies,
                           lane & (result.copies - 1)};
    const SharedLayout layout = lay_out(memory, bins, histogram.words());
    histogram.counts = layout.counts;
    histogram.clear();
    plane* exchange = layout.rest;  // (2, warps, 32)

    const int left = unit % tiling.across * kWarpWidth, x = left + lane * kLaneWidth;
    const int tile_y = unit / tiling.across % tiling.down, top = tile_y * (warps * kLaneRows - 1);
    const int y = top + warp * kLaneRows;
    const int begin = tiling.first + unit / (tiling.across * tiling.down) * tiling.chunk;
    const int end = min(begin + tiling.chunk, tiling.last);
    const int last_row = image.height - 1 - y;  // of the lane; negative where the whole warp is outside
    const bool active = last_row >= 0;
    const bool first_rows = y == 0, repeats = tile_y > 0 && warp == 0;

    const long long corner = index * image.batch + y * image.row, mask_corner = index * image.mask_batch + y * image.mask_row;
    const Element* data = image.data + corner;
    const unsigned char* mask = image.mask + mask_corner;
    const Columns columns(x, image.width);
    const plane own_columns = column_bits(image.width - x);
    const plane last_column = own_columns & ~column_bits(image.width - 1 - x);
    const plane last_rows = row_bits(last_row + 1) & ~row_bits(last_row);
    const plane own = own_columns & row_bits(last_row + 1) & (repeats ? ~row_bits(1) : ~0u);
    const Counter count = {bins, layout.thresholds, layout.table, histogram};
    const int border_y = border_row(lane);
    FiniteCheck check;

    const int start = max(begin - 1, 0);
    Key p[kLaneRows + 1][kLaneWidth + 1];
    Border border_p, border_q;
    if (active) {
        #pragma unroll
        for (int r = 0; r <= kLaneRows; ++r) {
            const int row = min(r, last_row);
            load_keys(data + start * image.slice + row * image.row, mask + start * image.mask_slice + row * image.mask_row,
                      columns, p[r]);
        }
        if (left) {
            border_p = load_border(image.data + index * image.batch + start * image.slice,
                                   image.mask + index * image.mask_batch + start * image.mask_slice, image,
                                   y + border_y, left - 1);
        }
    }
    Numbers3 given_behind = {0, 0, 0};  // what slice s - 1 gives to slice s
    __syncthreads();
    for (int s = start; s < end; ++s) {
        Planes3 w;
        Lefts l;
        plane present = ~0u;
        Trits n_given, b_given;
        plane* slot = exchange + ((s & 1) * warps + warp) * 32 + lane;
        if (active) {
            const long long next = min(s + 1, image.depth - 1);
            const int ahead = min(s + 2, image.depth - 1);
            prefetch(data + ahead * image.slice + min(lane >> 2, last_row) * image.row
                     + min(left + (lane & 3) * 32, image.width - 1));
            w = compare(data + next * image.slice, mask + next * image.mask_slice, image, columns, last_row, p, present, check);
            if (left) {
                border_q = load_border(image.data + index * image.batch + next * image.slice,
                                       image.mask + index * image.mask_batch + next * image.mask_slice, image,
                                       y + border_y, left - 1);
            }
            w.g = force(w.g, last_column);
            w.n = force(w.n, last_column);
            w.m = force(w.m, last_column);
            w.b = force(w.b, last_column);
            w.below = force(w.below, last_rows);
            w.m_below = force(w.m_below, last_rows);
            if (s == image.depth - 1) w.behind = kDual ? 0u : ~0u;
            l = lefts(w, border_p, border_q, left == 0, lane);
            border_p = border_q;
            n_given = taken(w.n, l.n, w.below);
            b_given = taken(w.b, l.b, w.m_below);
            *slot = pack(n_given, b_given);
        }
        __syncthreads();
        if (active) {
            plane above = 0;
            if (warp > 0) {
                above = slot[-32];
            } else if (kDual && first_rows) {
                const Trits n_outer = taken(w.g, l.g, ~0u), b_outer = taken(w.m, l.m, ~0u);
                above = pack({n_outer.plus >> 28, n_outer.minus >> 28}, {b_outer.plus >> 28, b_outer.minus >> 28});
            }
            const Numbers3 flat = sum({w.g & ~l.g, ~w.g & l.g}, taken(w.n, l.n, ~w.below), receive(n_given, above));
            const Numbers3 deep = sum({w.m & ~l.m, ~w.m & l.m}, taken(w.b, l.b, ~w.m_below), receive(b_given, above >> 8));
            if (kDual && s == 0) given_behind = flat;
            const Numbers4 c = subtract(flat, only(deep, ~w.behind), given_behind);
            given_behind = only(deep, w.behind);
            const LaneTile tile = {data + s * image.slice, image.row, last_row, x};
            count(tile, columns, c, s < begin ? 0u : own & (kMask ? present : ~0u));
        }
    }
    if (active) check.report(result.not_finite);
    finish(histogram, result, index);
}
