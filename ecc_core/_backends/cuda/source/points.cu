// The coefficient of every sample. A sample is compared with its 26 neighbours; it owns the cells
// of which it is the last corner, where the first of equal samples in C order counts as the last one.
// Samples that never enter, and those of other regions, are treated as if they were outside the image.
//
// A block processes a tile of columns (and rows) slice by slice. Each thread keeps the nine samples
// around its own of the last slice in registers, and what its own one owns there. Images of one slice are processed row by row instead: below, "slice"
// then means a row, and the tile is a single row of columns.
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

// Labels as they are compared with the largest one that has a number, which is below 2^31.
template <bool large>
struct Compared {
    typedef unsigned type;
};
template <>
struct Compared<true> {
    typedef unsigned long long type;
};
typedef Compared<(sizeof(Label) > 4)>::type Unsigned;

struct Points {
    signed char* coefficients;       // (images, slices, rows, columns)
    Count* counts;                   // (regions, bins); zero at launch
    long long* not_finite;           // kNanReport: whether a NaN was seen
    const Label* labels;             // kRegions
    const int* regions;              // kRegions: the number of each label's region, from 1 on, or 0
    unsigned long long most;         // kRegions: the largest label that `regions` has
    long long label_strides[3];      // slice, row, column
    int steps;                       // slices of a block
    int rows;                        // kRegions: labels counted in shared memory, a power of two or 0
};

constexpr int kTileRows = kFlat ? 1 : 8, kTileColumns = ECC_THREADS / kTileRows;
constexpr int kAround = kFlat ? 0 : 1;  // rows above the tile, and below
constexpr int kRow = kTileColumns + 2, kTile = (kTileRows + 2 * kAround) * kRow;
constexpr int kLoads = 2;  // samples that a thread loads of each slice
static_assert(kTile <= kLoads * ECC_THREADS, "a tile is loaded at once");

// Whether samples have groups: a comparison alone does not tell then whether there is a sample.
constexpr bool kGroups = kRegions || !kSpareOrdinals;

struct Point {
    Ordinal rank;  // increases in the order in which cells find their owner
    int group;     // kGroups: 0 where there is no sample, else its label or 1
};

// A point in shared memory, which takes one access.
template <bool groups>
struct __align__(2 * sizeof(Ordinal)) Stored {
    Ordinal rank;
    int group;

    static __device__ __forceinline__ Stored of(const Point& p) { return {p.rank, p.group}; }
    __device__ __forceinline__ Point point() const { return {rank, group}; }
};
template <>
struct Stored<false> {
    Ordinal rank;

    static __device__ __forceinline__ Stored of(const Point& p) { return {p.rank}; }
    __device__ __forceinline__ Point point() const { return {rank, 0}; }
};

// What a sample is compared with outside the image. V has no cells there; T gives the outer faces to
// the samples at the border.
__device__ __forceinline__ Point nothing() {
    constexpr Ordinal most = (Ordinal)(~0ull >> (65 - 8 * sizeof(Ordinal)));
    return {kCubes ? (Ordinal)~most : most, 0};
}

// Loads one sample of each slice in turn, for one place of the tile.
struct Feeder {
    const Samples& samples;
    const Points& points;
    const Element* sample;  // of the slice that is loaded next
    const unsigned char* mask;
    const Label* label;
    int index, y, x;
    bool inside;

    __device__ __forceinline__ Feeder(const Samples& samples, const Points& points, int index,
                                      int top, int left, int place, int slice)
        : samples(samples), points(points), index(index) {
        const int row = place / kRow;
        y = kFlat ? 0 : top + row - kAround, x = left + place - row * kRow - 1;
        inside = place < kTile && y >= 0 && y < samples.height && x >= 0 && x < samples.width;
        const int z = kFlat ? 0 : slice, v = kFlat ? slice : y;
        sample = samples.data + index * samples.strides[0] + z * samples.strides[1] +
                 v * samples.strides[2] + x * samples.strides[3];
        mask = samples.mask + index * samples.mask_strides[0] + z * samples.mask_strides[1] +
               v * samples.mask_strides[2] + x * samples.mask_strides[3];
        label = points.labels + z * points.label_strides[0] + v * points.label_strides[1] +
                x * points.label_strides[2];
    }

    // Values as they are in memory; nothing waits for their arrival yet.
    struct Loaded {
        Element sample;
        unsigned char shown;
        Label label;
    };

    __device__ __forceinline__ bool has(int slice) const {
        return inside && slice >= 0 && slice < (kFlat ? samples.height : samples.depth);
    }

    __device__ __forceinline__ void load(int slice, Loaded& to) {
        if (has(slice)) {
            to.sample = *sample;
            if (kMask) to.shown = *mask;
            // Read once, as another stream may write to it.
            if (kRegions) to.label = load_once(label);
        }
        sample += samples.strides[kFlat ? 2 : 1];
        if (kMask) mask += samples.mask_strides[kFlat ? 2 : 1];
        if (kRegions) label += points.label_strides[kFlat ? 1 : 0];
    }

    __device__ __forceinline__ Point point(int slice, const Loaded& from, unsigned& nan) const {
        if (!has(slice)) return nothing();
        bool present = !kMask || from.shown;
        int group = 1;
        if (kRegions) {
            group = (Unsigned)from.label <= (Unsigned)points.most ? (int)from.label : 0;
            present = present && group > 0;
        }
        const SampleRow row(samples, index, kFlat ? 0 : slice, kFlat ? slice : y);
        const Key own = row.key(from.sample, x);
        if (kNan == kNanReport && present && is_nan(own)) nan = 1;
        if (kNan == kNanOmit) present = present && !is_nan(own);
        if (!present) return nothing();
        return {kDown ? (Ordinal)~ordinal(own) : ordinal(own), group};
    }
};

__device__ __forceinline__ void add(int* count, int amount) { atomicAdd(count, amount); }
__device__ __forceinline__ void add(long long* count, int amount) {
    atomicAdd((unsigned long long*)count, (unsigned long long)(long long)amount);
}

extern __shared__ uint4 memory[];

// The counts of a block. A label takes one of a few rows of bins in shared memory when it is first
// counted; labels that find no free row are counted in global memory.
struct Counts {
    static constexpr int kMostRows = 64, kTries = 2;
    const Points& points;
    const int bins;
    int* const owners;  // the label of each row, or 0
    int* const rows;

    __device__ __forceinline__ Counts(const Points& points, int bins, int* owners)
        : points(points), bins(bins), owners(owners), rows((int*)memory) {}

    __device__ __forceinline__ void clear() const {
        for (int i = threadIdx.x; i < points.rows; i += ECC_THREADS) owners[i] = 0;
        const int quads = (points.rows * bins + 3) / 4;
        for (int i = threadIdx.x; i < quads; i += ECC_THREADS) memory[i] = uint4{0, 0, 0, 0};
    }

    __device__ __forceinline__ void add_to(int label, int bin, int amount) const {
        const unsigned hash = (unsigned)label * 0x9E3779B1u >> 16;
        for (int k = 0; k < (points.rows ? kTries : 0); ++k) {
            const int row = (int)(hash + k) & (points.rows - 1);
            int owner = *(volatile int*)(owners + row);
            if (!owner) owner = atomicCAS(owners + row, 0, label);
            if (!owner || owner == label) {
                atomicAdd(rows + row * bins + bin, amount);
                return;
            }
        }
        if (Count* const counts = of(label)) add(counts + bin, amount);
    }

    // After all threads have counted.
    __device__ __forceinline__ void finish() const {
        const int lane = threadIdx.x & 31;
        for (int row = threadIdx.x >> 5; row < points.rows; row += ECC_THREADS / 32) {
            Count* const counts = owners[row] ? of(owners[row]) : nullptr;
            if (!counts) continue;
            for (int bin = lane; bin < bins; bin += 32)
                if (const int amount = rows[row * bins + bin]) add(counts + bin, amount);
        }
    }

    // The counts of a label in global memory; null for labels that were not ranked.
    __device__ __forceinline__ Count* of(int label) const {
        const int region = points.regions[label];
        return region ? points.counts + (long long)(region - 1) * bins : nullptr;
    }
};

// Bit 3 i + j tells whether a sample owns the cells that it shares with neighbour (i, j) of a slice.
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

// Signed number of the cells at the middle one of nine samples of a slice, all of whose corners are
// in a set.
__device__ __forceinline__ int cells_of(unsigned set) {
    const auto has = [set](int corners) { return (set & corners) == corners ? 1 : 0; };
    if (!has(1 << 4)) return 0;
    return 1 - has(1 << 1) - has(1 << 3) - has(1 << 5) - has(1 << 7) + has(0x00B) + has(0x026) +
           has(0x0C8) + has(0x1A0);
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    points(const Samples samples, const Points points, const Bins bins) {
    __shared__ Stored<kGroups> tile[2][kTile];
    __shared__ signed char table[512];
    __shared__ int owners[kRegions ? Counts::kMostRows : 1];
    const Counts counts(points, bins.count + 1, owners);
    if (kRegions) counts.clear();
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
    unsigned nan = 0;
    constexpr int kAhead = kFlat ? 4 : 2;  // slices on their way
    Feeder::Loaded coming[kAhead][kLoads] = {};
    Point last[3][3] = {};           // samples of the last slice,
    unsigned before = 0, same = 0;  // and what the one in the middle owns up to that slice
    Feeder first(samples, points, index, top, left, threadIdx.x, begin - 1);
    Feeder second(samples, points, index, top, left, threadIdx.x + ECC_THREADS, begin - 1);
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
                if (kFlat && i != 1) continue;
                const int place = (kFlat ? 0 : row + i) * kRow + column + j;
                p[i][j] = tile[slice & 1][place].point();
            }
        }
        const Point own = last[1][1];
        const unsigned after = owned_in<1>(p, own);
        int c = 0;
        if (kGroups ? own.group != 0 : own.rank != nothing().rank) {
            if (kFlat)
                c = table[(before >> 3 & 7) | (same & 0x38) | (after >> 3 & 7) << 6];
            else
                c = table[same] - table[same & before] - table[same & after];
            if (kCubes && !kFlat) c = -c;
        }
        before = owned_in<-1>(last, p[1][1]), same = owned_in<0>(p, p[1][1]) | 1 << 4;
#pragma unroll
        for (int i = 0; i < 3; ++i)
#pragma unroll
            for (int j = 0; j < 3; ++j) last[i][j] = p[i][j];
        if (slice <= begin || !inside) return;
        if (kOutput == kCoefficients) {
            *out = (signed char)c;
            out += apart;
        } else if (c) {
            const Ordinal rank = kDown ? (Ordinal)~own.rank : own.rank;
            const int bin = bin_of(key_of(rank, Key()), bins, bins.thresholds, bins.table);
            counts.add_to(own.group, bin, c);
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
