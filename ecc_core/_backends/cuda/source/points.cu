// The coefficient of every sample. It owns the cells of which it is the last corner, where the first of
// equal samples in C order counts as the last one. Samples that never enter, and those of other regions,
// are treated as if they were outside the image.
//
// A warp takes some rows, and goes from slice to slice. Each lane has a column, and compares every pair of
// neighbours once: its own samples with those of the column to the right. The lane there gets the results,
// which are bits, one for each row, so that logical operations act on all rows of a lane at once.
#include "histogram.cuh"
#include "samples.cuh"

enum Output { kCoefficients = 0, kCounts = 1 };
constexpr int kOutput = ECC_OUTPUT;
constexpr bool kRegions = kOutput == kCounts;
constexpr bool kFlat = ECC_FLAT;  // images of one slice
constexpr int kRows = ECC_ROWS, kAround = kRows + 2;  // rows of a lane; and those beside them
constexpr unsigned kOwnRows = (1u << kRows) - 1 << 1;  // bit r is for row r, of which the first is 0
constexpr unsigned kAll = 0xFFFFFFFFu, kWarp = kAll;
constexpr int kOwnColumns = 30;  // of a warp, whose first and last lane only serve their neighbours

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

// What a sample is compared with outside the image. V has no cells there; T gives the outer faces to
// the samples at the border.
__device__ __forceinline__ Point nothing() {
    constexpr Ordinal most = (Ordinal)(~0ull >> (65 - 8 * sizeof(Ordinal)));
    return {kCubes ? (Ordinal)~most : most, 0};
}

// Loads the samples of a column of each slice in turn. Rows count from the first one of the lane.
struct Feeder {
    const Samples& samples;
    const Points& points;
    const Element* sample;  // of the slice that is loaded next, in the first row
    const unsigned char* mask;
    const Label* label;
    const int index, top, x;

    __device__ __forceinline__ Feeder(const Samples& samples, const Points& points, int index, int slice,
                                      int top, int x)
        : samples(samples), points(points), index(index), top(top), x(x) {
        const auto place = [&](const long long* strides) {
            return slice * strides[0] + top * strides[1] + x * strides[2];
        };
        sample = samples.data + index * samples.strides[0] + place(samples.strides + 1);
        mask = samples.mask + index * samples.mask_strides[0] + place(samples.mask_strides + 1);
        label = points.labels + place(points.label_strides);
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

    __device__ __forceinline__ bool has(int slice, int row) const {
        return slice >= 0 && slice < samples.depth && top + row >= 0 && top + row < samples.height &&
               x >= 0 && x < samples.width;
    }

    __device__ __forceinline__ void load(int slice, Loaded (&to)[kAround]) {
#pragma unroll
        for (int r = 0; r < kAround; ++r) {
            if (!has(slice, r)) continue;
            to[r].sample = sample[r * samples.strides[2]];
            if (kMask) to[r].shown = mask[r * samples.mask_strides[2]];
            // Read once, as another stream may write to it.
            if (kRegions) to[r].label = load_once(label + r * points.label_strides[1]);
        }
        sample += samples.strides[1];
        if (kMask) mask += samples.mask_strides[1];
        if (kRegions) label += points.label_strides[0];
    }

    __device__ __forceinline__ Point point(int slice, int row, const Loaded& from,
                                           unsigned& nan) const {
        if (!has(slice, row)) return nothing();
        bool present = !kMask || from.shown;
        int group = 1;
        if (kRegions) {
            const Unsigned label = (Unsigned)from.label;
            group = label <= (Unsigned)points.most ? (int)label : 0;
            if (label > (Unsigned)points.most) report(label);
            present = present && group > 0;
        }
        const SampleRow along(samples, index, slice, top + row);
        const Key own = along.key(from.sample, x);
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

    // Marks the row of a label. In some order the first sample of each region is enough.
    __device__ __forceinline__ void mark(int label) const {
        const int row = points.rows_of ? points.rows_of[label] : label;
        if (!row) return;
        unsigned* const word = points.marks + ((row - 1) >> 5);
        const unsigned bit = 1u << ((row - 1) & 31);
        if (!(*(volatile unsigned*)word & bit)) atomicOr(word, bit);
    }
};

__device__ __forceinline__ bool is_sample(const Point& own) {
    return kGroups ? own.group != 0 : own.rank != nothing().rank;
}

// The point of another lane.
__device__ __forceinline__ Point from(const Point& own, int lane) {
    return {__shfl_sync(kWarp, own.rank, lane), kGroups ? __shfl_sync(kWarp, own.group, lane) : 0};
}

// Counts a coefficient that is not zero.
__device__ __forceinline__ void count(const Counts& counts, const Bins& bins, const Point& own, int c) {
    const Ordinal rank = kDown ? (Ordinal)~own.rank : own.rank;
    counts.add_to(own.group, bin_of(key_of(rank, Key()), bins, bins.thresholds, bins.table), c);
}

__device__ __forceinline__ unsigned majority(unsigned a, unsigned b, unsigned c) {
    return (a & b) | (c & (a | b));
}

// Pairs of samples by the row of their upper one. The first sample of a pair comes first in C order.
struct Pairs {
    unsigned bits;  // the low half: whether they have one group; the upper: whether the first one wins

    __device__ __forceinline__ void see(int row, const Point& first, const Point& second) {
        if (!kGroups || first.group == second.group) bits |= 1u << row;
        if (first.rank >= second.rank) bits |= 0x10000u << row;
    }
    // Whether the first (second) sample owns the cells that it shares with the other one.
    __device__ __forceinline__ unsigned first() const {
        return kCubes ? ~bits | bits >> 16 : bits & bits >> 16;
    }
    __device__ __forceinline__ unsigned second() const {
        return kCubes ? ~(bits & bits >> 16) : bits & ~(bits >> 16);
    }
    __device__ __forceinline__ Pairs of_left() const { return {__shfl_up_sync(kWarp, bits, 1)}; }
};

// The samples of a lane in a slice, and those to the right of them.
struct Neighbourhood {
    Point own[kAround], right[kAround];
};

// Which of the nine samples of a slice around one, 3 * row + column, share cells with it that it owns.
struct Around {
    unsigned at[9];
};

// In the same slice. `fresh` gets the samples whose right, upper and last neighbours are in other regions,
// where `last` has those of the same region in the last slice.
__device__ __forceinline__ Around beside(const Neighbourhood& s, unsigned last, unsigned& fresh) {
    Pairs across = {0}, down = {0}, falling = {0}, rising = {0};
#pragma unroll
    for (int r = 0; r <= kRows; ++r) {
        if (r > 0) across.see(r, s.own[r], s.right[r]);
        down.see(r, s.own[r], s.own[r + 1]);
        falling.see(r, s.own[r], s.right[r + 1]);
        rising.see(r, s.right[r], s.own[r + 1]);
    }
    fresh = ~(across.bits | down.bits << 1 | last);
    const Pairs from_left = across.of_left(), from_above = falling.of_left(),
                to_below = rising.of_left();
    return {from_above.second() << 1, down.second() << 1, rising.second() << 1,
            from_left.second(),       kAll,               across.first(),
            to_below.first(),         down.first(),       falling.first()};
}

// Samples of a slice and those of the next one: what the first ones own in the next slice, and what these
// own in the slice before. `alike` gets those that have the same group as the sample behind them.
__device__ __forceinline__ void between(const Neighbourhood& s, const Neighbourhood& next, Around& after,
                                        Around& before, unsigned& alike) {
    Pairs here[3] = {}, right[3] = {}, left[3] = {};  // of the same row, to the one below, from there
#pragma unroll
    for (int r = 0; r <= kRows; ++r) {
        if (r > 0) {
            here[0].see(r, s.own[r], next.own[r]);
            right[0].see(r, s.own[r], next.right[r]);
            left[0].see(r, s.right[r], next.own[r]);
        }
        here[1].see(r, s.own[r], next.own[r + 1]);
        right[1].see(r, s.own[r], next.right[r + 1]);
        left[1].see(r, s.right[r], next.own[r + 1]);
        here[2].see(r, s.own[r + 1], next.own[r]);
        right[2].see(r, s.own[r + 1], next.right[r]);
        left[2].see(r, s.right[r + 1], next.own[r]);
    }
    alike = here[0].bits;
    Pairs from[3], to[3];  // those of the lane to the left
#pragma unroll
    for (int k = 0; k < 3; ++k) from[k] = right[k].of_left(), to[k] = left[k].of_left();
    after = {to[2].first() << 1, here[2].first() << 1, right[2].first() << 1,
             to[0].first(),      here[0].first(),      right[0].first(),
             to[1].first(),      here[1].first(),      right[1].first()};
    before = {from[1].second() << 1, here[1].second() << 1, left[1].second() << 1,
              from[0].second(),      here[0].second(),      left[0].second(),
              from[2].second(),      here[2].second(),      left[2].second()};
}

// The lowest digit of the sum of an odd number of bits, in each place, and the carries.
template <int n>
__device__ __forceinline__ unsigned add(const unsigned (&bits)[n], unsigned (&carries)[n / 2]) {
    unsigned queue[n + n / 2];
#pragma unroll
    for (int i = 0; i < n; ++i) queue[i] = bits[i];
#pragma unroll
    for (int k = 0; k < n / 2; ++k) {
        const unsigned a = queue[3 * k], b = queue[3 * k + 1], c = queue[3 * k + 2];
        queue[n + k] = a ^ b ^ c;
        carries[k] = majority(a, b, c);
    }
    return queue[n + n / 2 - 1];
}

// Four digits of a number in two's complement, in each place.
struct Digits {
    unsigned b0, b1, b2, b3;

    __device__ __forceinline__ int at(int row) const {
        const unsigned number = (b0 >> row & 1) | (b1 >> row & 1) << 1 | (b2 >> row & 1) << 2;
        return (int)number - (int)((b3 >> row & 1) << 3);
    }
};

__device__ constexpr int kSides[4] = {1, 3, 5, 7}, kCorners[4] = {0, 2, 6, 8};  // of Around
__device__ constexpr int kBeside[4][2] = {{0, 1}, {0, 2}, {3, 1}, {3, 2}};  // the sides of a corner

// The sum of the signs of the cells that samples own, for V: vertices, squares with them in one slice, and
// so on. A cell in two slices has the sign of its part in the sample's slice, reversed. Negative terms are
// inverted, so 14 is added for them; with three bits that are set, the sum is 16 more than the number.
__device__ __forceinline__ Digits coefficients(const Around& before, const Around& same,
                                               const Around& after) {
    unsigned ones[27], twos[15], fours[7], eights[3], rest[1];
    unsigned faces[3][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int side = kSides[i];
        faces[0][i] = same.at[side];
        faces[1][i] = same.at[side] & before.at[side] & before.at[4];
        faces[2][i] = same.at[side] & after.at[side] & after.at[4];
        ones[i] = ~faces[0][i], ones[4 + i] = faces[1][i], ones[8 + i] = faces[2][i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int corner = kCorners[i], a = kBeside[i][0], b = kBeside[i][1];
        ones[12 + i] = same.at[corner] & faces[0][a] & faces[0][b];
        ones[16 + i] = ~(same.at[corner] & before.at[corner] & faces[1][a] & faces[1][b]);
        ones[20 + i] = ~(same.at[corner] & after.at[corner] & faces[2][a] & faces[2][b]);
    }
    ones[24] = ~before.at[4], ones[25] = ~after.at[4], ones[26] = kAll;
    unsigned carries[13];
    Digits digits;
    digits.b0 = add(ones, carries);
#pragma unroll
    for (int i = 0; i < 13; ++i) twos[i] = carries[i];
    twos[13] = kAll, twos[14] = 0;
    digits.b1 = add(twos, fours);
    digits.b2 = add(fours, eights);
    digits.b3 = add(eights, rest);
    return digits;
}

// The same for images of one slice.
__device__ __forceinline__ Digits coefficients(const Around& same) {
    unsigned ones[9], twos[5], fours[3], eights[1], carries[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        ones[i] = ~same.at[kSides[i]];
        ones[4 + i] = same.at[kCorners[i]] & same.at[kSides[kBeside[i][0]]] & same.at[kSides[kBeside[i][1]]];
    }
    ones[8] = kAll;  // with the bits below, the sum is 16 more than the number
    Digits digits;
    digits.b0 = add(ones, carries);
#pragma unroll
    for (int i = 0; i < 4; ++i) twos[i] = carries[i];
    twos[4] = 0;
    unsigned high[2];
    digits.b1 = add(twos, high);
    fours[0] = high[0], fours[1] = high[1], fours[2] = kAll;
    digits.b2 = add(fours, eights);
    digits.b3 = ~eights[0];
    return digits;
}

// What has been found about a slice, and what is done with it.
struct Sink {
    const Samples& samples;
    const Points& points;
    const Bins& bins;
    const Counts& counts;
    const unsigned rows;  // of the lane, within the image
    signed char* out;     // of the next slice, in the first row

    __device__ __forceinline__ void finish(const Digits& digits, const Neighbourhood& slice) {
        const unsigned some = (digits.b0 | digits.b1 | digits.b2 | digits.b3) & rows;
#pragma unroll
        for (int r = 1; r <= kRows; ++r) {
            const Point& own = slice.own[r];
            if (kOutput == kCoefficients) {
                if (rows >> r & 1) out[r * samples.width] = is_sample(own) ? coefficient(digits, r) : 0;
            } else if (some >> r & 1 && is_sample(own)) {
                count(counts, bins, own, coefficient(digits, r));
            }
        }
        out += (long long)samples.height * samples.width;
    }

    __device__ __forceinline__ void mark(unsigned fresh, const Neighbourhood& slice) const {
        fresh &= rows;
        if (!kRegions || !fresh) return;
#pragma unroll
        for (int r = 1; r <= kRows; ++r)
            if (fresh >> r & 1 && slice.own[r].group) counts.mark(slice.own[r].group);
    }

    __device__ __forceinline__ static signed char coefficient(const Digits& digits, int row) {
        return (signed char)(kCubes && !kFlat ? -digits.at(row) : digits.at(row));
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    points(const Samples samples, const Points points, const Bins bins) {
    __shared__ int owners[kRegions ? Counts::kMostRows : 1];
    const Counts counts(points, bins.count + 1, owners);
    if (kRegions) {
        counts.clear();
        __syncthreads();
    }
    const int lane = threadIdx.x & 31;
    const int across = (samples.width + kOwnColumns - 1) / kOwnColumns;
    const int down = (samples.height + kRows - 1) / kRows;
    const int chunks = (samples.depth + points.steps - 1) / points.steps;
    const long long unit = (long long)blockIdx.x * (ECC_THREADS / 32) + (threadIdx.x >> 5);
    const long long rest = quotient(unit, across), above = quotient(rest, down);
    const int top = (int)(rest - above * down) * kRows - 1;
    const int index = (int)quotient(above, chunks);
    const int begin = (int)(above - (long long)index * chunks) * points.steps;
    const int end = index < samples.images ? min(begin + points.steps, samples.depth) : begin - 2;
    const int x = (int)(unit - rest * across) * kOwnColumns + lane - 1;
    const bool inside = lane > 0 && lane < 31 && x < samples.width;
    const unsigned rows = inside ? kOwnRows & ~(kAll << 1 << min(samples.height - 1 - top, kRows)) : 0;
    const long long first = (((long long)index * samples.depth + begin) * samples.height + top) *
                                samples.width + x;
    Sink sink = {samples, points, bins, counts, rows, points.coefficients + first};
    Feeder feeder(samples, points, index, kFlat ? 0 : begin - 1, top, x);
    Feeder::Loaded coming[kAround] = {};
    unsigned nan = 0, fresh;
    const auto take = [&](int slice, Neighbourhood& to) {
#pragma unroll
        for (int r = 0; r < kAround; ++r) to.own[r] = feeder.point(slice, r, coming[r], nan);
        if (slice < end && !kFlat) feeder.load(slice + 1, coming);
#pragma unroll
        for (int r = 0; r < kAround; ++r) to.right[r] = from(to.own[r], (lane + 1) & 31);
    };
    if (kFlat && end > 0) {
        Neighbourhood now;
        feeder.load(0, coming);
        take(0, now);
        const Around same = beside(now, 0, fresh);
        sink.mark(fresh, now);
        sink.finish(coefficients(same), now);
    }
    if (!kFlat) {
        unsigned alike = 0;
        Neighbourhood last = {};
        Around before = {}, same = {};
        feeder.load(begin - 1, coming);
        for (int slice = begin - 1; slice <= end; ++slice) {
            Neighbourhood now;
            take(slice, now);
            Around after, next;
            between(last, now, after, next, alike);
            if (slice > begin) sink.finish(coefficients(before, same, after), last);
            before = next;
            same = beside(now, alike, fresh);
            if (slice >= begin && slice < end) sink.mark(fresh, now);
            last = now;
        }
    }
    if (kNan == kNanReport && nan) *points.not_finite = 1;
    if (!kRegions) return;
    __syncthreads();
    counts.finish();
}
