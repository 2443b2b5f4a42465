// The coefficient of every sample (points2d.cu, points3d.cu). A sample is compared with its neighbours;
// it owns the cells of which it is the last corner, where the first of equal samples in C order counts
// as the last one. Samples that never enter, and those of other regions, are treated as if they were
// outside the image.
#pragma once
#include "histogram.cuh"
#include "samples.cuh"

enum Output { kCoefficients = 0, kCounts = 1 };
constexpr int kOutput = ECC_OUTPUT;
constexpr bool kRegions = kOutput == kCounts;
constexpr bool kFlat = ECC_FLAT;  // images of one slice

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
    Count* counts;                   // (rows, bins); zero at launch
    long long* not_finite;           // kNanReport: whether a NaN was seen
    const Label* labels;             // kRegions
    const int* rows_of;              // kRegions: the row of each label in `counts`, from 1 on, or 0;
                                     // null if it is the label itself
    unsigned long long most;         // kRegions: the largest label that has a row
    unsigned* marks;                 // kRegions: a bit for each row that occurs; zero at launch
    unsigned long long* largest;     // kRegions: the largest label beyond `most`; zero at launch
    long long label_strides[3];      // slice, row, column
    int steps;                       // slices of a block
    int rows;                        // kRegions: labels counted in shared memory, a power of two or 0
};

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

// Loads one sample of each slice in turn, at one row and column (kFlat: of each row, at one column).
struct Feeder {
    const Samples& samples;
    const Points& points;
    const Element* sample;  // of the slice that is loaded next
    const unsigned char* mask;
    const Label* label;
    int index, y, x;
    bool inside;

    __device__ __forceinline__ Feeder(const Samples& samples, const Points& points, int index, int y,
                                      int x, bool used, int slice)
        : samples(samples), points(points), index(index), y(y), x(x) {
        inside = used && y >= 0 && y < samples.height && x >= 0 && x < samples.width;
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

    // Negative labels are beyond all others. Most of them are not the largest so far.
    __device__ __forceinline__ void report(unsigned long long label) const {
        if (label > *(volatile unsigned long long*)points.largest) atomicMax(points.largest, label);
    }

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
            const Unsigned label = (Unsigned)from.label;
            group = label <= (Unsigned)points.most ? (int)label : 0;
            if (label > (Unsigned)points.most) report(label);
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

    // The counts of a label in global memory; null for labels that have no row.
    __device__ __forceinline__ Count* of(int label) const {
        const int row = points.rows_of ? points.rows_of[label] : label;
        return row ? points.counts + (long long)(row - 1) * bins : nullptr;
    }

    // Marks the row of a sample unless the one before it, or the one above it, has the same label: the
    // first sample of a region has neither.
    __device__ __forceinline__ void mark(const Point& own, const Point& left, const Point& above) const {
        if (!own.group || own.group == left.group || own.group == above.group) return;
        const int row = points.rows_of ? points.rows_of[own.group] : own.group;
        if (!row) return;
        unsigned* const word = points.marks + ((row - 1) >> 5);
        const unsigned bit = 1u << ((row - 1) & 31);
        if (!(*(volatile unsigned*)word & bit)) atomicOr(word, bit);
    }
};

// Whether a sample owns the cells that it shares with another one, before or after it in C order.
template <bool after>
__device__ __forceinline__ bool owns(const Point& own, const Point& other) {
    const bool wins = after ? own.rank >= other.rank : own.rank > other.rank;
    return kGroups && other.group != own.group ? kCubes : wins;
}

__device__ __forceinline__ bool is_sample(const Point& own) {
    return kGroups ? own.group != 0 : own.rank != nothing().rank;
}

// Signed number of the cells at the middle one of nine samples of a slice, all of whose corners are
// in a set.
__device__ __forceinline__ int cells_of(unsigned set) {
    const auto has = [set](int corners) { return (set & corners) == corners ? 1 : 0; };
    if (!has(1 << 4)) return 0;
    return 1 - has(1 << 1) - has(1 << 3) - has(1 << 5) - has(1 << 7) + has(0x00B) + has(0x026) +
           has(0x0C8) + has(0x1A0);
}

// What each of the 512 sets of owned samples around one, in a slice, gives.
__device__ __forceinline__ void fill(signed char* table) {
    for (int i = threadIdx.x; i < 512; i += ECC_THREADS) table[i] = (signed char)cells_of(i);
}

// Counts a coefficient that is not zero.
__device__ __forceinline__ void count(const Counts& counts, const Bins& bins, const Point& own, int c) {
    const Ordinal rank = kDown ? (Ordinal)~own.rank : own.rank;
    counts.add_to(own.group, bin_of(key_of(rank, Key()), bins, bins.thresholds, bins.table), c);
}
