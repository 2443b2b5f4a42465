// The coefficient of every sample: which of its neighbours it comes after, and so which cells it
// owns. Ties go to the first sample in C order. Samples that never enter, and those of another
// region, are as if they lay outside the image.
//
// A block has a tile of columns (and rows) and goes through some slices; a thread keeps the 27
// samples around its own. Images of one slice have none of the rows: they go row by row, so what is
// called a slice below is a row.
#include "histogram.cuh"
#include "samples.cuh"

enum Output { kCoefficients = 0, kCounts = 1 };
constexpr int kOutput = ECC_OUTPUT;
constexpr bool kRegions = kOutput == kCounts;
constexpr bool kFlat = ECC_FLAT;

#if ECC_OUTPUT == 1
typedef ECC_LABEL Label;
typedef ECC_COUNT Count;
#else
typedef int Label, Count;
#endif

struct Points {
    signed char* coefficients;       // (images, slices, rows, columns)
    Count* counts;                   // (regions, bins); zero at launch
    long long* not_finite;           // kNanReport: whether a NaN was seen
    const Label* labels;             // kRegions
    const int* regions;              // kRegions: of each label its number, from 1 on, or 0
    unsigned long long most;         // kRegions: the largest label that `regions` has
    long long label_strides[3];      // slice, row, column
    int steps;                       // slices of a block
};

constexpr int kTileRows = kFlat ? 1 : 8, kTileColumns = ECC_THREADS / kTileRows;
constexpr int kAround = kFlat ? 0 : 1;  // rows above the tile, and below
constexpr int kRow = kTileColumns + 2, kTile = (kTileRows + 2 * kAround) * kRow;
constexpr int kLoads = 2;  // of a thread
static_assert(kTile <= kLoads * ECC_THREADS, "a tile is loaded at once");

// With these a comparison alone does not tell whether there is a sample.
constexpr bool kGroups = kRegions || !kSpareOrdinals;

struct Point {
    Ordinal rank;  // increases in the order in which cells find their owner
    int group;     // kGroups: 0 where there is none, else its region
};

// What a sample is compared with where the image has none: V has no cells there; T gives outer
// faces to the border.
__device__ __forceinline__ Point nothing() {
    constexpr Ordinal most = (Ordinal)(~0ull >> (65 - 8 * sizeof(Ordinal)));
    return {kCubes ? (Ordinal)~most : most, 0};
}

// The sample of each slice that a thread brings to one place of the tile.
struct Feeder {
    const Samples& samples;
    const Points& points;
    long long at, mask_at, label_at;  // of slice 0
    int index, y, x;
    bool inside;

    __device__ __forceinline__ Feeder(const Samples& samples, const Points& points, int index,
                                      int top, int left, int place)
        : samples(samples), points(points), index(index) {
        const int row = place / kRow;
        y = kFlat ? 0 : top + row - kAround, x = left + place - row * kRow - 1;
        inside = place < kTile && y >= 0 && y < samples.height && x >= 0 && x < samples.width;
        at = index * samples.strides[0] + y * samples.strides[2] + x * samples.strides[3];
        mask_at = index * samples.mask_strides[0] + y * samples.mask_strides[2] +
                  x * samples.mask_strides[3];
        label_at = y * points.label_strides[1] + x * points.label_strides[2];
    }

    // As they are in memory: nothing waits for them yet.
    struct Loaded {
        Element sample;
        unsigned char shown;
        unsigned long long label;
    };

    __device__ __forceinline__ bool has(int slice) const {
        return inside && slice >= 0 && slice < (kFlat ? samples.height : samples.depth);
    }

    __device__ __forceinline__ void load(int slice, Loaded& to) const {
        if (!has(slice)) return;
        to.sample = samples.data[at + slice * samples.strides[kFlat ? 2 : 1]];
        if (kMask) to.shown = samples.mask[mask_at + slice * samples.mask_strides[kFlat ? 2 : 1]];
        // Read once: another stream may change it meanwhile.
        if (kRegions)
            to.label = (unsigned long long)*(const volatile Label*)(
                points.labels + label_at + slice * points.label_strides[kFlat ? 1 : 0]);
    }

    __device__ __forceinline__ Point point(int slice, const Loaded& from, bool& nan) const {
        if (!has(slice)) return nothing();
        bool present = !kMask || from.shown;
        int group = 1;
        if (kRegions) {
            group = from.label <= points.most ? points.regions[from.label] : 0;
            present = present && group > 0;
        }
        const SampleRow row(samples, index, kFlat ? 0 : slice, kFlat ? slice : y);
        const Key own = row.key(from.sample, x);
        if (kNan == kNanReport) nan |= present && is_nan(own);
        if (kNan == kNanOmit) present = present && !is_nan(own);
        if (!present) return nothing();
        return {kDown ? (Ordinal)~ordinal(own) : ordinal(own), group};
    }
};

__device__ __forceinline__ void add(int* count, int amount) { atomicAdd(count, amount); }
__device__ __forceinline__ void add(long long* count, int amount) {
    atomicAdd((unsigned long long*)count, (unsigned long long)(long long)amount);
}

// Bit 3 i + j: whether a sample owns what it shares with neighbour (i, j) of a slice.
template <int slice>
__device__ __forceinline__ unsigned owned_in(const Point (&other)[3][3], const Point& own) {
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            if (kFlat && i != 1) continue;
            constexpr int self = 4;
            const int place = 3 * i + j;
            if (slice == 0 && place == self) continue;
            const bool after = slice > 0 || (slice == 0 && place > self);  // in C order
            bool wins = after ? own.rank >= other[i][j].rank : own.rank > other[i][j].rank;
            if (kGroups && other[i][j].group != own.group) wins = kCubes;
            bits |= (unsigned)wins << place;
        }
    }
    return bits;
}

// The sum over the cells at a sample in one slice of which all corners are in a set of nine, itself
// in the middle.
__device__ __forceinline__ int cells_of(unsigned set) {
    const auto has = [set](int corners) { return (set & corners) == corners ? 1 : 0; };
    if (!has(1 << 4)) return 0;
    return 1 - has(1 << 1) - has(1 << 3) - has(1 << 5) - has(1 << 7) + has(0x00B) + has(0x026) +
           has(0x0C8) + has(0x1A0);
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    points(const Samples samples, const Points points, const Bins bins) {
    __shared__ Ordinal ranks[2][kTile];
    __shared__ int groups[2][kGroups ? kTile : 1];
    __shared__ signed char table[512];
    for (int i = threadIdx.x; i < 512; i += ECC_THREADS) table[i] = (signed char)cells_of(i);
    const int slices = kFlat ? samples.height : samples.depth;
    const int across = (samples.width + kTileColumns - 1) / kTileColumns;
    const int down = kFlat ? 1 : (samples.height + kTileRows - 1) / kTileRows;
    const int chunks = (slices + points.steps - 1) / points.steps;
    const long long unit = blockIdx.x, rest = unit / across;
    const int left = (int)(unit - rest * across) * kTileColumns;
    const long long above = rest / down;
    const int top = (int)(rest - above * down) * kTileRows;
    const int index = (int)(above / chunks), begin = (int)(above - (long long)index * chunks) * points.steps;
    const int end = min(begin + points.steps, slices);
    const int row = threadIdx.x / kTileColumns, column = threadIdx.x % kTileColumns;
    const int x = left + column, y = kFlat ? 0 : top + row;
    const bool inside = x < samples.width && y < samples.height;

    const long long apart = kFlat ? samples.width : (long long)samples.height * samples.width;
    signed char* out = points.coefficients + ((long long)index * slices + begin) * apart +
                       (kFlat ? 0 : (long long)y * samples.width) + x;
    bool nan = false;
    constexpr int kAhead = kGroups ? 1 : kFlat ? 4 : 2;  // slices on their way
    Feeder::Loaded coming[kAhead][kLoads] = {};
    Point p[3][3][3];  // of the slices before, own and after
    const Feeder first(samples, points, index, top, left, threadIdx.x);
    const Feeder second(samples, points, index, top, left, threadIdx.x + ECC_THREADS);
    const auto ask = [&](int slice, Feeder::Loaded (&to)[kLoads]) {
        first.load(slice, to[0]);
        second.load(slice, to[1]);
    };
    const auto put = [&](int slice, int place, const Feeder& feeder, const Feeder::Loaded& from) {
        if (place >= kTile) return;
        const Point point = feeder.point(slice, from, nan);
        ranks[slice & 1][place] = point.rank;
        if (kGroups) groups[slice & 1][place] = point.group;
    };
    const auto step = [&](int slice, Feeder::Loaded (&now)[kLoads]) {
        put(slice, threadIdx.x, first, now[0]);
        put(slice, threadIdx.x + ECC_THREADS, second, now[1]);
        ask(slice + kAhead, now);
        __syncthreads();  // one for each of two tiles: no thread is two slices ahead
#pragma unroll
        for (int i = 0; i < 3; ++i) {
#pragma unroll
            for (int j = 0; j < 3; ++j) {
                p[0][i][j] = p[1][i][j];
                p[1][i][j] = p[2][i][j];
                if (kFlat && i != 1) continue;
                const int place = (kFlat ? 0 : row + i) * kRow + column + j;
                p[2][i][j] = {ranks[slice & 1][place], kGroups ? groups[slice & 1][place] : 0};
            }
        }
        if (slice <= begin || !inside) return;
        const int z = slice - 1;
        const Point own = p[1][1][1];
        const bool present = kGroups ? own.group != 0 : own.rank != nothing().rank;
        int c = 0;
        if (present) {
            const unsigned before = owned_in<-1>(p[0], own), same = owned_in<0>(p[1], own) | 1 << 4,
                           after = owned_in<1>(p[2], own);
            if (kFlat)
                c = table[(before >> 3 & 7) | (same & 0x38) | (after >> 3 & 7) << 6];
            else
                c = table[same] - table[same & before] - table[same & after];
            if (kCubes && !kFlat) c = -c;
        }
        if (kOutput == kCoefficients) {
            *out = (signed char)c;
            out += apart;
        } else if (c) {
            const int v = kFlat ? z : y, s = kFlat ? 0 : z;
            const SampleRow line(samples, index, s, v);
            const int bin = bin_of(line.key(line.load(x), x), bins, bins.thresholds, bins.table);
            add(points.counts + (long long)(own.group - 1) * (bins.count + 1) + bin, c);
        }
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ask(begin - 1 + k, coming[k]);
    for (int slice = begin - 1; slice <= end; slice += kAhead) {
#pragma unroll
        for (int k = 0; k < kAhead; ++k)
            if (slice + k <= end) step(slice + k, coming[k]);
    }
    if (kNan == kNanReport && nan) *points.not_finite = 1;
}
