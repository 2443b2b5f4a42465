// The coefficient of every sample of volumes (points.cuh). A block processes a tile of columns and rows
// slice by slice. Each thread keeps the nine samples around its own of the last slice in registers, and
// what its own one owns there.
#include "points.cuh"

constexpr int kTileRows = 8, kTileColumns = ECC_THREADS / kTileRows;
constexpr int kRow = kTileColumns + 2, kTile = (kTileRows + 2) * kRow;
constexpr int kLoads = 2;  // samples that a thread loads of each slice
static_assert(kTile <= kLoads * ECC_THREADS, "a tile is loaded at once");

// Bit 3 i + j tells whether a sample owns the cells that it shares with neighbour (i, j) of a slice.
template <int slice>
__device__ __forceinline__ unsigned owned_in(const Point (&other)[3][3], const Point& own) {
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            constexpr int self = 4;
            const int place = 3 * i + j;
            if (slice == 0 && place == self) continue;
            const bool wins = slice > 0 || (slice == 0 && place > self) ? owns<true>(own, other[i][j])
                                                                        : owns<false>(own, other[i][j]);
            bits |= (unsigned)wins << place;
        }
    }
    return bits;
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    points(const Samples samples, const Points points, const Bins bins) {
    __shared__ Stored<kGroups> tile[2][kTile];
    __shared__ signed char table[512];
    __shared__ int owners[kRegions ? Counts::kMostRows : 1];
    const Counts counts(points, bins.count + 1, owners);
    if (kRegions) counts.clear();
    fill(table);
    const int slices = samples.depth;
    const int across = (samples.width + kTileColumns - 1) / kTileColumns;
    const int down = (samples.height + kTileRows - 1) / kTileRows;
    const int chunks = (slices + points.steps - 1) / points.steps;
    const long long unit = blockIdx.x, rest = unit / across;
    const int left = (int)(unit - rest * across) * kTileColumns;
    const long long above = rest / down;
    const int top = (int)(rest - above * down) * kTileRows;
    const int index = (int)(above / chunks), begin = (int)(above - (long long)index * chunks) * points.steps;
    const int end = min(begin + points.steps, slices);
    const int row = threadIdx.x / kTileColumns, column = threadIdx.x % kTileColumns;
    const int x = left + column, y = top + row;
    const bool inside = x < samples.width && y < samples.height;

    const long long apart = (long long)samples.height * samples.width;
    signed char* out = points.coefficients + ((long long)index * slices + begin) * apart +
                       (long long)y * samples.width + x;
    unsigned nan = 0;
    constexpr int kAhead = 2;  // slices on their way
    Feeder::Loaded coming[kAhead][kLoads] = {};
    Point last[3][3] = {};           // samples of the last slice,
    unsigned before = 0, same = 0;  // and what the one in the middle owns up to that slice
    const auto feeder = [&](int place) {
        const int row = place / kRow;
        return Feeder(samples, points, index, top + row - 1, left + place - row * kRow - 1,
                      place < kTile, begin - 1);
    };
    Feeder first = feeder(threadIdx.x), second = feeder(threadIdx.x + ECC_THREADS);
    const auto ask = [&](int slice, Feeder::Loaded (&to)[kLoads]) {
        first.load(slice, to[0]);
        second.load(slice, to[1]);
    };
    const auto put = [&](int slice, int place, const Feeder& feeder, const Feeder::Loaded& from) {
        if (place >= kTile) return;
        tile[slice & 1][place] = Stored<kGroups>::of(feeder.point(slice, from, nan));
    };
    const auto step = [&](int slice, Feeder::Loaded (&now)[kLoads]) {
        put(slice, threadIdx.x, first, now[0]);
        put(slice, threadIdx.x + ECC_THREADS, second, now[1]);
        ask(slice + kAhead, now);
        __syncthreads();  // one is enough: of two tiles, the other one is written next
        Point p[3][3];
#pragma unroll
        for (int i = 0; i < 3; ++i) {
#pragma unroll
            for (int j = 0; j < 3; ++j) {
                const int place = (row + i) * kRow + column + j;
                p[i][j] = tile[slice & 1][place].point();
            }
        }
        const Point own = last[1][1];
        const unsigned after = owned_in<1>(p, own);
        int c = 0;
        if (is_sample(own)) {
            c = table[same] - table[same & before] - table[same & after];
            if (kCubes) c = -c;
        }
        before = owned_in<-1>(last, p[1][1]), same = owned_in<0>(p, p[1][1]) | 1 << 4;
        if (kRegions && inside && slice >= begin && slice < end && p[1][1].group != last[1][1].group)
            counts.mark(p[1][1], p[1][0], p[0][1]);
#pragma unroll
        for (int i = 0; i < 3; ++i)
#pragma unroll
            for (int j = 0; j < 3; ++j) last[i][j] = p[i][j];
        if (slice <= begin || !inside) return;
        if (kOutput == kCoefficients) {
            *out = (signed char)c;
            out += apart;
        } else if (c) {
            count(counts, bins, own, c);
        }
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ask(begin - 1 + k, coming[k]);
    const auto go_through = [&] {
        for (int slice = begin - 1;; slice += kAhead) {
#pragma unroll
            for (int k = 0; k < kAhead; ++k) {
                if (slice + k > end) return;
                step(slice + k, coming[k]);
            }
        }
    };
    go_through();
    if (kNan == kNanReport && nan) *points.not_finite = 1;
    if (!kRegions) return;
    __syncthreads();
    counts.finish();
}
