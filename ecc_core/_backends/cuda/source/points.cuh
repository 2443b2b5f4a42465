// How points.cu reads samples with their labels, and how it counts regions.
#pragma once
#include "planes.cuh"
#include "regions.cuh"
#include "samples.cuh"

enum Output { kCoefficients = 0, kCounts = 1 };
constexpr int kOutput = ECC_OUTPUT;
constexpr bool kRegions = kOutput == kCounts;
constexpr bool kFlat = ECC_FLAT;                      // Images of one slice.
constexpr int kRows = ECC_ROWS, kAround = kRows + 2;  // Rows of a lane; with those above and below.
// The rows 1 to kRows, which the lane owns, as bits; bit r is for row r.
constexpr unsigned kOwnRows = ((1u << kRows) - 1) << 1;
constexpr int kOwnColumns = 30;  // Columns that a warp owns; two lanes have those beside them.

#if ECC_OUTPUT == 1
typedef ECC_LABEL Label;
typedef ECC_COUNT Count;
#else
typedef int Label, Count;
#endif

// The type in which labels are compared with the largest one that has a row, which is below 2^31.
typedef Either<(sizeof(Label) > 4), unsigned long long, unsigned>::type Unsigned;

struct Points {
    signed char* coefficients;    // (images, slices, rows, columns)
    Count* counts;                // (rows, bins); zero at launch
    long long* not_finite;        // kNanReport: whether a NaN was seen.
    unsigned long long* ticket;   // kNanReport: as `report` takes it, or null; kRegions: `reply`.
    const Label* labels;          // Only with kRegions.
    const int* rows_of;           // kRegions: the row of each label in `counts`, from 1 on, or 0;
                                  // null if it is the label itself.
    unsigned long long most;      // kRegions: the largest label that has a row.
    unsigned* marks;              // kRegions: a bit for each row that occurs; zero at launch.
    unsigned long long* largest;  // kRegions: the largest label beyond `most`; zero at launch.
    long long label_strides[3];   // Slice, row, column.
    int steps;                    // Slices of a warp.
    int rows;                     // kRegions: labels counted in shared memory, a power of two or 0.
    // kRegions: what `write_regions` writes, by the last block that finishes, after which all that is zero
    // at launch is zero again, as is `ticket`. Null if another kernel writes it.
    volatile long long* reply;
    Label* ids;
    long long* values;
    long long room;
};

// Whether samples have groups, which tell whether there is a sample; else its rank alone does.
constexpr bool kGroups = kRegions || !kSpareOrdinals;

struct Point {
    Ordinal rank;  // A cell belongs to its sample of the largest rank.
    int group;     // kGroups: 0 where there is no sample, else its label or 1.
};

// Returns what stands for samples that do not exist. In V it has the largest rank, and owns cells that are
// not counted. In T it has the smallest rank, as outer faces belong to the samples at the border.
ECC_DEVICE Point nothing() {
    constexpr Ordinal most = (Ordinal)(~0ull >> (65 - 8 * sizeof(Ordinal)));
    return {kCubes ? (Ordinal)~most : most, 0};
}

// Loads the samples of a column of each slice in turn. Rows count from the first one of the lane.
struct Feeder {
    const Samples& samples;
    const Points& points;
    const Element* sample;  // The first row in the slice that is loaded next.
    const unsigned char* mask;
    const Label* label;
    const int index, top, x;
    unsigned within;   // The rows that are in the image; none if the column is not.
    Unsigned largest;  // kRegions: the largest label so far, where negative ones exceed all others.

    ECC_DEVICE Feeder(const Samples& samples, const Points& points, int index, int slice, int top,
                      int x)
        : samples(samples), points(points), index(index), top(top), x(x), largest(0) {
        const auto place = [&](const long long* strides) {
            return slice * strides[0] + top * strides[1] + x * strides[2];
        };
        sample = samples.data + index * samples.strides[0] + place(samples.strides + 1);
        mask = samples.mask + index * samples.mask_strides[0] + place(samples.mask_strides + 1);
        label = points.labels + place(points.label_strides);
        within = (1u << min(samples.height - top, kAround)) - (top < 0 ? 2u : 1u);
        if (x < 0 || x >= samples.width) within = 0;
    }

    // Values as they are in memory. They are not used until later, so that loading them does not wait.
    struct Loaded {
        Element sample;
        unsigned char shown;
        Label label;
    };

    ECC_DEVICE unsigned rows_in(int slice) const {
        return slice >= 0 && slice < samples.depth ? within : 0;
    }

    ECC_DEVICE void load(int slice, Loaded (&to)[kAround]) {
        const unsigned rows = rows_in(slice);
        const Element* from = sample;
        const unsigned char* shown = mask;
        const Label* own = label;
#pragma unroll
        for (int r = 0; r < kAround; ++r) {
            const bool has = rows >> r & 1;
            if (has) to[r].sample = *from;
            if (kMask && has) to[r].shown = *shown;
            to[r].label = 0;
            // The label is read only once, as another stream may write to it.
            if (kRegions && has) to[r].label = load_once(own);
            from += samples.strides[2], shown += samples.mask_strides[2];
            own += points.label_strides[1];
        }
        sample += samples.strides[1];
        if (kMask) mask += samples.mask_strides[1];
        if (kRegions) label += points.label_strides[0];
    }

    ECC_DEVICE Point point(int slice, int row, const Loaded& from, unsigned& nan) {
        int group = 1;
        bool present = true;
        if (kRegions) {
            const Unsigned own = (Unsigned)from.label;
            largest = own > largest ? own : largest;
            group = own <= (Unsigned)points.most ? (int)own : 0;
            present = group > 0;
        } else {
            present = rows_in(slice) >> row & 1 && (!kMask || from.shown);
        }
        if (kDirectional && !present) return nothing();
        const SampleRow along(samples, index, slice, top + row);
        const Key own = along.key(from.sample, x);
        if (kNan == kNanReport && present && is_nan(own)) nan = 1;
        if (kNan == kNanOmit) present = present && !is_nan(own);
        if (!present) return nothing();
        return {kDown ? (Ordinal)~ordinal(own) : ordinal(own), group};
    }

    ECC_DEVICE void report() const {
        if (kRegions && largest > (Unsigned)points.most)
            atomicMax(points.largest, (unsigned long long)largest);
    }
};

ECC_DEVICE void add(int* count, int amount) { atomicAdd(count, amount); }
ECC_DEVICE void add(long long* count, int amount) {
    atomicAdd((unsigned long long*)count, (unsigned long long)(long long)amount);
}

extern __shared__ uint4 memory[];

// The counts of a block. A label takes one of a few rows of bins in shared memory when it is first
// counted; labels that find no free row are counted in global memory.
struct RegionCounts {
    static constexpr int kMostRows = 64, kTries = 2;
    static constexpr int kWordsAtOnce = 4;  // Words of marks that a lane reads at a time.
    const Points& points;
    const int bins;
    int* const owners;  // The label of each row, or 0.
    int* const rows;

    ECC_DEVICE RegionCounts(const Points& points, int bins, int* owners)
        : points(points), bins(bins), owners(owners), rows((int*)memory) {}

    ECC_DEVICE void clear() const {
        for (int i = threadIdx.x; i < points.rows; i += ECC_THREADS) owners[i] = 0;
        const int quads = (points.rows * bins + 3) / 4;
        for (int i = threadIdx.x; i < quads; i += ECC_THREADS) memory[i] = uint4{0, 0, 0, 0};
    }

    ECC_DEVICE void add_to(int label, int bin, int amount) const {
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
        Count* const counts = of(label);
        if (!counts) return;
        if (points.reply) mark(label);
        add(counts + bin, amount);
    }

    // Adds the counts in shared memory to those in global memory. Called after all threads have counted.
    ECC_DEVICE void finish() const {
        const int lane = threadIdx.x & 31;
        for (int row = threadIdx.x >> 5; row < points.rows; row += ECC_THREADS / 32) {
            Count* const counts = owners[row] ? of(owners[row]) : nullptr;
            if (!counts) continue;
            if (points.reply && lane == 0) mark(owners[row]);
            for (int bin = lane; bin < bins; bin += 32)
                if (const int amount = rows[row * bins + bin]) add(counts + bin, amount);
        }
    }

    // Writes the regions in the last block, which reads all counts, so that regions must be few; called by
    // all threads of all blocks after `finish`. Every row that was counted is marked, even if another
    // stream has written to the labels in between, so that all counts become zero again.
    ECC_DEVICE void write_regions() const {
        __shared__ bool is_last;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) is_last = atomicAdd(points.ticket, 1ull) == gridDim.x - 1;
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        const int lane = threadIdx.x & 31;
        const int words = (int)((points.most + 31) >> 5);
        long long count = 0;
        for (int start = 0; start < words; start += 32 * kWordsAtOnce) {
            unsigned read[kWordsAtOnce];
#pragma unroll
            for (int i = 0; i < kWordsAtOnce; ++i) {
                const int at = start + 32 * i + lane;
                read[i] = at < words ? *(const volatile unsigned*)(points.marks + at) : 0;
            }
#pragma unroll
            for (int i = 0; i < kWordsAtOnce; ++i)
                count += write_marked(read[i], start + 32 * i, count);
        }
        __syncthreads();  // All warps have read the marks.
        for (int i = threadIdx.x; i < words; i += ECC_THREADS) points.marks[i] = 0;
        if (threadIdx.x == 0) {
            reply_regions(points.reply, count, *(volatile unsigned long long*)points.largest,
                          *(volatile long long*)points.not_finite);
            *points.largest = 0;
            *points.not_finite = 0;
            *points.ticket = 0;
        }
    }

    // Writes the regions that are marked in one word of each lane, behind `before` regions of earlier
    // words. A warp writes some of them. Returns their number.
    ECC_DEVICE int write_marked(unsigned own, int first_word, long long before) const {
        const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
        const int through = running_sum(__popc(own), lane);
        for (unsigned some = __ballot_sync(kWarp, own != 0); some; some &= some - 1) {
            const int from = __ffs(some) - 1;
            unsigned marked = __shfl_sync(kWarp, own, from);
            long long rank = before + __shfl_sync(kWarp, through, from) - __popc(marked);
            for (; marked; marked &= marked - 1, ++rank)
                if (rank % (ECC_THREADS / 32) == warp)
                    write_region(32ll * (first_word + from) + __ffs(marked) - 1, rank);
        }
        return __shfl_sync(kWarp, through, 31);
    }

    ECC_DEVICE void write_region(long long row, long long rank) const {
        const int lane = threadIdx.x & 31;
        Count* const counts = points.counts + row * bins;
        if (rank < points.room) {
            if (lane == 0) points.ids[rank] = (Label)(row + 1);
            write_region_curve(counts, bins, points.values + rank * (bins - 1));
        }
        __syncwarp();
        for (int k = lane; k < bins; k += 32) counts[k] = 0;
    }

    // Returns the counts of a label in global memory, or null for labels that have no row.
    ECC_DEVICE Count* of(int label) const {
        const int row = points.rows_of ? points.rows_of[label] : label;
        return row ? points.counts + (long long)(row - 1) * bins : nullptr;
    }

    // Marks the row of a label. One sample of each region is enough, such as its first in some order.
    ECC_DEVICE void mark(int label) const {
        const int row = points.rows_of ? points.rows_of[label] : label;
        if (!row) return;
        unsigned* const word = points.marks + ((row - 1) >> 5);
        const unsigned bit = 1u << ((row - 1) & 31);
        if (!(*(volatile unsigned*)word & bit)) atomicOr(word, bit);
    }
};

ECC_DEVICE bool is_sample(const Point& own) {
    return kGroups ? own.group != 0 : own.rank != nothing().rank;
}
