// The Euler characteristic curve of 3-D images.
//
// A block of W warps owns 128 columns and 8 W rows and moves through `chunk` slices; a lane owns
// four columns and eight rows, 32 samples, so a plane is one word. With c2 the 2-D coefficients
// (curve2d.cu), N_s = max(X_s, X_s+1):
//   c(s) = c2(X_s) - [X_s >= X_s+1] c2(N_s) - [X_s-1 < X_s] c2(N_s-1).
// What slice s - 1 gives to slice s is kept as planes in registers. What the last row of a warp gives to
// the first row of the next warp goes through shared memory. Every block but the first along y repeats
// the last row of the block before it.
#include "sides.cuh"

// Comparisons of a slice s with the samples at x + 1, y + 1 and s + 1. n: maxima over y; m: over s;
// b: over both.
struct Planes3 {
    plane g, n, m, b, below, m_below, behind;
};

// Samples of a slice beside the warp, in two rows and two columns.
struct Side {
    Key v[2][2];
};

// The samples of a warp and the volume they are in.
struct Column {
    const Image& image;
    const Element* data;  // row 0 of the warp, column 0, slice 0
    const Columns& columns;
    int left, lane, last_row;
    plane last_column, last_lane, last_rows;

    __device__ __forceinline__ Walk walk(int s) const {
        const long long slice = min(s, image.depth - 1);
        return Walk(data + slice * image.slice + left, columns);
    }

    __device__ __forceinline__ Side side(int s) const {
        Side side;
        const long long slice = min(s, image.depth - 1);
        const int column = side_column(lane, left, image.width);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const long long at = min(side_row(lane) + r, last_row);
            const Element* row = data + slice * image.slice + at * image.row;
#pragma unroll
            for (int x = 0; x < 2; ++x)
                side.v[r][x] = admit(row[min(column + x, image.width - 1)]);
        }
        return side;
    }
};

constexpr int kAhead =
    3;  // rows copied ahead; divides kLaneRows + 1, so that every slice finds its own in place

// Samples on their way to a lane through shared memory.
struct QuadQueue {
    Quad* lane;

    __device__ __forceinline__ void ask(int row, const Walk& walk, const Columns& columns) const {
        Quad* slot = lane + row % kAhead * 32;
        if (kVector) {
            constexpr int bytes = sizeof(Quad) < 16 ? sizeof(Quad) : 16;
#pragma unroll
            for (int i = 0; i < (int)sizeof(Quad); i += bytes)
                copy_ahead<bytes>((char*)slot + i, walk.data + i);
            end_of_copy();
        } else {
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x)
                slot->v[x] = ((const Element*)walk.data)[columns.at[x]];
        }
    }

    __device__ __forceinline__ void take(int row, Key (&out)[kLaneWidth]) const {
        if (kVector) wait_for_copy<kAhead - 1>();
        const Quad quad = lane[row % kAhead * 32];
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) out[x] = admit(quad.v[x]);
    }
};

// Compares slice s with its neighbours. On entry `p` holds slice s, and the queue the first rows of slice
// s + 1; on return these are s + 1 and s + 2. `walk` is at the last row in the queue.
__device__ __forceinline__ Planes3 compare(const Column& own, int s,
                                           Key (&p)[kLaneRows + 1][kLaneWidth], const QuadQueue& queue,
                                           Walk& walk, const Cache& cache, FiniteCheck& check) {
    Planes3 w = {0, 0, 0, 0, 0, 0, 0};
    Key q[kLaneWidth], m[kLaneWidth];
#pragma unroll
    for (int r = -1; r < kLaneRows;
         ++r) {  // r: the row that is compared; r + 1: the row that comes in
        Key q_below[kLaneWidth], m_below[kLaneWidth], n[kLaneWidth], b[kLaneWidth];
        queue.take(r + 1, q_below);
        const int coming = (r + 1 + kAhead) % (kLaneRows + 1);
        if (coming == 0)
            walk = own.walk(s + 2);
        else
            walk.advance(own.image, coming <= own.last_row);
        queue.ask(r + 1, walk, own.columns);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            m_below[x] = later(p[r + 1][x], q_below[x]);
            if (r >= 0) {
                n[x] = later(p[r][x], p[r + 1][x]);
                b[x] = later(m[x], m_below[x]);
            }
        }
        if (r >= 0) {
            const Key p_right = from_right(p[r][0]), n_right = from_right(n[0]);
            const Key m_right = from_right(m[0]), b_right = from_right(b[0]);
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) {
                const bool last = x == kLaneWidth - 1;
                const int next = (x + 1) % kLaneWidth;
                push(w.g, p[r][x], last ? p_right : p[r][next]);
                push(w.n, n[x], last ? n_right : n[next]);
                push(w.m, m[x], last ? m_right : m[next]);
                push(w.b, b[x], last ? b_right : b[next]);
                push(w.below, p[r][x], p[r + 1][x]);
                push(w.m_below, m[x], m_below[x]);
                push(w.behind, p[r][x], q[x]);
                if (kNan == kNanReport && !(r & 1)) check.see(b[x]);
            }
        }
        if (r >= 0) cache.put(r, p[r]);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            if (r >= 0) p[r][x] = q[x];
            q[x] = q_below[x];
            m[x] = m_below[x];
        }
    }
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) p[kLaneRows][x] = q[x];
    return w;
}

struct Lefts {
    plane g, n, m, b;
};

// Adds what the warp cannot see of its right side to the planes, and returns the planes seen from
// the right.
__device__ __forceinline__ Lefts complete(Planes3& w, const Column& own, const Side& p,
                                          const Side& q) {
    Key m[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) m[i >> 1][i & 1] = later(p.v[i >> 1][i & 1], q.v[i >> 1][i & 1]);
    const bool first = own.left == 0;
    const Sides g = sides(ballot_before(p.v[0][0], p.v[0][1]), first);
    const Sides n =
        sides(ballot_before(later(p.v[0][0], p.v[1][0]), later(p.v[0][1], p.v[1][1])), first);
    const Sides at_m = sides(ballot_before(m[0][0], m[0][1]), first);
    const Sides b = sides(ballot_before(later(m[0][0], m[1][0]), later(m[0][1], m[1][1])), first);
    w.g = complete(w.g, g, own.last_lane, own.last_column);
    w.n = complete(w.n, n, own.last_lane, own.last_column);
    w.m = complete(w.m, at_m, own.last_lane, own.last_column);
    w.b = complete(w.b, b, own.last_lane, own.last_column);
    w.below = force(w.below, own.last_rows);
    w.m_below = force(w.m_below, own.last_rows);
    return {from_left(w.g, g, own.lane), from_left(w.n, n, own.lane),
            from_left(w.m, at_m, own.lane), from_left(w.b, b, own.lane)};
}

// The low four bits of four planes in one word, and back.
__device__ __forceinline__ plane pack(Trits a, Trits b) {
    return (a.plus & kLastRow) | (a.minus & kLastRow) << 4 | (b.plus & kLastRow) << 8 |
           (b.minus & kLastRow) << 12;
}

__device__ __forceinline__ Trits receive(Trits given, plane packed) {
    return {next_row(given.plus, packed), next_row(given.minus, packed >> 4)};
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.x / result.blocks, unit = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5), warps = blockDim.x >> 5;
    Histogram histogram = {0, result.counts_of(index, bins.count + 1), bins.count + 1, result.copies,
                           lane & (result.copies - 1)};
    Key* caches = (Key*)memory;                                        // (warps, rows, columns)
    Quad* queues = (Quad*)(caches + warps * kLaneRows * kCacheWidth);  // (warps, kAhead, lanes)
    plane* exchange = (plane*)(queues + warps * kAhead * 32);           // (2, warps, lanes)
    const SharedLayout layout = lay_out(exchange + 2 * warps * 32, bins);
    histogram.counts = layout.counts;
    histogram.clear();

    const int left = unit % tiling.across * kWarpWidth, x = left + lane * kLaneWidth;
    const int tile_y = unit / tiling.across % tiling.down,
              y = tile_y * (warps * kLaneRows - 1) + warp * kLaneRows;
    const int begin = tiling.first + unit / (tiling.across * tiling.down) * tiling.chunk;
    const int end = min(begin + tiling.chunk, tiling.last);
    const int last_row = image.height - 1 - y;  // of the warp; negative where it is outside
    const bool repeats = tile_y > 0 && warp == 0;

    const Columns columns(lane, left, image.width);
    const plane columns_in = column_bits(image.width - x), rows_in = row_bits(last_row + 1);
    const Column own = {image,
                        image.data + index * image.batch + y * image.row,
                        columns,
                        left,
                        lane,
                        last_row,
                        columns_in & ~column_bits(image.width - 1 - x),
                        lane == 31 ? kLastColumn : 0u,
                        rows_in & ~row_bits(last_row)};
    const plane owned = columns_in & rows_in & (repeats ? ~row_bits(1) : ~0u);
    const Cache cache = {caches + warp * kLaneRows * kCacheWidth + lane * kLaneWidth};
    const QuadQueue queue = {queues + warp * kAhead * 32 + lane};
    const Counter count(bins, layout, histogram);
    FiniteCheck check;

    const int start = max(begin - 1, 0);
    Key p[kLaneRows + 1][kLaneWidth];
    Walk walk = own.walk(0);
    Side side_p, side_q;
    if (last_row >= 0) {
        walk = own.walk(start);
#pragma unroll
        for (int r = 0; r <= kLaneRows; ++r) {
            walk.advance(image, r > 0 && r <= last_row);
            Row row;
            row.load(walk, columns);
            row.keys(p[r]);
        }
        walk = own.walk(start + 1);
#pragma unroll
        for (int r = 0; r < kAhead; ++r) {
            walk.advance(image, r > 0 && r <= last_row);
            queue.ask(r, walk, columns);
        }
        side_p = own.side(start);
        side_q = own.side(start + 1);
    }
    Numbers3 given_behind = zeros();  // what slice s - 1 gives to slice s
    __syncthreads();
    for (int s = start; s < end; ++s) {
        Planes3 w;
        Lefts l;
        Trits n_given, b_given;
        plane* slot = exchange + ((s & 1) * warps + warp) * 32 + lane;
        if (last_row >= 0) {
            const Side side_ahead = own.side(s + 2);
            prefetch(own.data + (long long)min(s + 3, image.depth - 1) * image.slice +
                     min(lane >> 2, last_row) * image.row +
                     min(left + (lane & 3) * 32, image.width - 1));
            w = compare(own, s, p, queue, walk, cache, check);
            l = complete(w, own, side_p, side_q);
            side_p = side_q;
            side_q = side_ahead;
            if (s == image.depth - 1) w.behind = kCubes ? 0u : ~0u;
            n_given = taken(w.n, l.n, w.below);
            b_given = taken(w.b, l.b, w.m_below);
            *slot = pack(n_given, b_given);
        }
        __syncthreads();
        if (last_row >= 0) {
            plane above = 0;
            if (warp > 0) {
                above = slot[-32];
            } else if (kCubes && tile_y == 0) {
                const Trits n_outer = taken(w.g, l.g, ~0u), b_outer = taken(w.m, l.m, ~0u);
                above = pack({n_outer.plus >> 28, n_outer.minus >> 28},
                             {b_outer.plus >> 28, b_outer.minus >> 28});
            }
            const Numbers3 flat =
                sum({w.g & ~l.g, ~w.g & l.g}, taken(w.n, l.n, ~w.below), receive(n_given, above));
            const Numbers3 deep = sum({w.m & ~l.m, ~w.m & l.m}, taken(w.b, l.b, ~w.m_below),
                                      receive(b_given, above >> 8));
            if (kCubes && s == 0) given_behind = flat;
            const Numbers4 c = subtract(flat, only(deep, ~w.behind), given_behind);
            given_behind = only(deep, w.behind);
            count(cache, c, s < begin ? 0u : owned);
        }
    }
    finish(histogram, result, index, check.failed());
}
