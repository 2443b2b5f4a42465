// Histograms of the codes at which groups of neighbouring points enter, for an image that has been
// recoded (recode.cu). A group is a set of corners of a unit cube, a bit for each corner; corners
// are numbered by the sum of 1 for a step along the columns, 2 along the rows, 4 along the slices.
//
// A thread takes four neighbouring cubes of a row and moves from slice to slice. It adds 1 without using
// the result, which the compiler turns into an instruction that combines lanes of the same address.
//
// kPaired: boxes of one or two points along each axis come in pairs of kinds, with one point and with two
// along the columns. Of the rows of a box, of which there are up to four, the greater (T: smaller) codes
// form one row, in which the boxes are points and pairs of neighbours. A pair belongs to the point by which
// it enters, so that one addition counts a point in the low half of a word, and its pairs in the high half.
#include "codes.cuh"
#include "device.cuh"

typedef ECC_LABEL Label;
typedef unsigned long long Count;

constexpr bool kLast = ECC_LAST;      // Groups enter with the last of their points, else the first.
constexpr bool kSuper = ECC_SUPER;    // The largest codes enter first.
constexpr bool kShared = ECC_COPIES;  // Whether counts are in shared memory.
constexpr bool kLabelled = ECC_LABELLED;
constexpr bool kPaired = ECC_PAIRED;  // Whether words have two kinds.
constexpr int kShift = ECC_SHIFT;     // Added to values in memory, which gives codes.
constexpr int kPlaces = 4;

struct Cells {
    const Code* data;
    Count* counts;  // (images or regions, kinds, bins)
    const Label* labels;
    const int* regions;       // The number of each label's region, from 1 on, or 0.
    unsigned long long most;  // The largest label in `regions`.
    long long batch, slice, row, labels_slice;  // Steps between codes, and slices of labels.
    int depth, height, width;
    // The range of the highest corner of the cube, along slices, rows and columns.
    int first[3], last[3];
    int wraps[3];  // Whether opposite sides touch, along the same axes.
    int bins, never_enters, chunk, across, blocks;
    int spill;  // kPaired: number of units after which a word may overflow.
};

template <unsigned... groups>
struct Groups {
    static constexpr int kinds = sizeof...(groups);
    static constexpr unsigned all = (0u | ... | groups);

    template <class Visit>
    ECC_DEVICE static void each(const Visit& visit) {
        int kind = 0;
        (visit.template operator()<groups>(kind++), ...);
    }
};
typedef Groups<ECC_GROUPS> All;

constexpr bool kRows = All::all & 0xCC, kSlices = All::all & 0xF0;
constexpr int kWords = kPaired ? All::kinds / 2 : All::kinds;  // Words of a bin.
constexpr int kPitch = (kWords | 1) * ECC_COPIES;              // Words from bin to bin.

ECC_DEVICE int later(int a, int b) { return kSuper ? min(a, b) : max(a, b); }
ECC_DEVICE int owner(int a, int b) { return kLast ? later(a, b) : kSuper ? max(a, b) : min(a, b); }

// Returns the first corner of a group.
ECC_DEVICE constexpr int lowest(unsigned group) {
    int i = 0;
    while (!(group >> i & 1)) ++i;
    return i;
}

struct Corners {
    int code[8], region[kLabelled ? 8 : 1];
};

// Codes of four columns of a row, and of the column after them.
struct CellRow {
    int code[kPlaces + 1], region[kLabelled ? kPlaces + 1 : 1];
};

// Returns the index of a place along an axis, or -1 outside the image.
ECC_DEVICE int index_of(int wraps, int place, int size) {
    if (wraps && place == size) return 0;
    return place < size ? place : -1;
}

// Reads a row in one slice after another, from column `x` on.
struct Line {
    const Code* codes;  // The first column of the row in the next slice.
    const Label* labels;
    int x, place;        // place: the index of the next slice.
    bool inside, whole;  // Whether the row is in the image; whether four codes are read at once.

    ECC_DEVICE Line(const Cells& cells, int image, int y, int x, int place) : x(x), place(place) {
        y = index_of(cells.wraps[1], y, cells.height);
        inside = y >= 0;
        whole = !kLabelled && x >= 0 && x % kPlaces == 0 && x + kPlaces <= cells.width;
        codes = cells.data + image * cells.batch + y * cells.row + place * cells.slice;
        labels = cells.labels + (long long)y * cells.width + place * cells.labels_slice;
    }

    ECC_DEVICE CellRow read(const Cells& cells) {
        CellRow row;
        const bool again = place == cells.depth;  // The first slice of a periodic image.
        const bool there = inside && place >= 0 && place < cells.depth + cells.wraps[0];
        const Code* const from = again ? codes - cells.depth * cells.slice : codes;
        const Label* const own = again ? labels - cells.depth * cells.labels_slice : labels;
        ++place, codes += cells.slice;
        if (kLabelled) labels += cells.labels_slice;
        if (there && whole) {
            const FourCodes quad = *(const FourCodes*)(from + x);
            const int next = index_of(cells.wraps[2], x + kPlaces, cells.width);
            row.code[kPlaces] = next < 0 ? cells.never_enters : (int)from[next] + kShift;
#pragma unroll
            for (int i = 0; i < kPlaces; ++i) row.code[i] = (int)quad.v[i] + kShift;
            return row;
        }
#pragma unroll
        for (int i = 0; i <= kPlaces; ++i) {
            row.code[i] = cells.never_enters;
            if (kLabelled) row.region[i] = 0;
            const int column = there ? index_of(cells.wraps[2], x + i, cells.width) : -1;
            if (column < 0) continue;
            row.code[i] = (int)from[column] + kShift;
            if (kLabelled) row.region[i] = region(cells, own[column]);
        }
        return row;
    }

    ECC_DEVICE static int region(const Cells& cells, Label label) {
        const auto number = (unsigned long long)label;
        return number <= cells.most ? cells.regions[number] : 0;
    }
};

struct CellCounter {
    unsigned shared;  // Address of the lane's copy.
    Count* counts;
    int bins, never_enters;

    ECC_DEVICE void add(int kind, int code, int region) const {
        if (kShared) {
            shared_increment(shared + 4u * (code * kPitch + kind * ECC_COPIES));
        } else if (code != never_enters) {
            const long long row = (long long)region * All::kinds + kind;
            atomicAdd(counts + row * bins + code, (Count)1);
        }
    }
};

// Adds the groups of a cube.
struct Visit {
    const CellCounter& counter;
    const Corners& corners;

    template <unsigned group>
    ECC_DEVICE void operator()(int kind) const {
        if (!kLabelled) {
            int code = corners.code[lowest(group)];
#pragma unroll
            for (int i = lowest(group) + 1; i < 8; ++i)
                if (group >> i & 1) code = owner(code, corners.code[i]);
            counter.add(kind, code, 0);
            return;
        }
        // A group that enters with its last point must lie in one region. A group that enters with its
        // first point counts once for each region that it meets.
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (!(group >> i & 1)) continue;
            const int region = corners.region[i];
            int code = corners.code[i];
            bool counts = region > 0;
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                if (k == i || !(group >> k & 1)) continue;
                const bool same = corners.region[k] == region;
                if (same || kLast) code = owner(code, corners.code[k]);
                counts = counts && (kLast ? same : !same || k > i);
            }
            if (counts) counter.add(kind, code, region - 1);
            if (kLast) return;
        }
    }
};

// Adds two kinds of boxes at four places, or unless `every` only at those that count.
constexpr int kPair = 0x10000;
template <bool every>
struct VisitBoxes {
    const CellCounter& counter;
    const CellRow (&before)[2], (&after)[2];
    const bool (&counts)[kPlaces];
    const int before_first;  // kPair if the first point has a pair with the column before it.

    template <unsigned group>
    ECC_DEVICE void operator()(int kind) const {
        if constexpr (!(group & 0xAAu)) {
            int codes[kPlaces + 1];
#pragma unroll
            for (int i = 0; i <= kPlaces; ++i) {
                codes[i] = before[0].code[i];
#pragma unroll
                for (int k = 2; k < 8; k += 2)
                    if (group >> k & 1)
                        codes[i] = owner(codes[i], (k & 4 ? after : before)[k >> 1 & 1].code[i]);
            }
            const unsigned word = counter.shared + kind / 2 * (4u * ECC_COPIES);
            int right = before_first;  // The last pair, if it belongs to its right point.
#pragma unroll
            for (int i = 0; i < kPlaces; ++i) {
                constexpr bool up = kLast != kSuper;
                const int a = codes[i], b = codes[i + 1], next = (up ? a < b : b < a) ? kPair : 0;
                const unsigned at = word + 4u * kPitch * a;
                if (every) {
                    shared_add(at, right - next + (kPair + 1));
                    right = next;
                } else {
                    const int own = counts[i] ? kPair + 1 - next : 0;
                    shared_add(at, own + right);
                    right = counts[i] ? next : 0;
                }
            }
            shared_add(word + 4u * kPitch * codes[kPlaces], right);
        }
    }
};

ECC_DEVICE void count(const Cells& cells, const CellCounter& counter, int x,
                      const CellRow (&before)[2], const CellRow (&after)[2]) {
    if constexpr (kPaired) {
        bool counts[kPlaces];
#pragma unroll
        for (int i = 0; i < kPlaces; ++i) counts[i] = x + i + 1 < cells.last[2];
        const int before_first = x == 0 && cells.first[2] == 0 ? kPair : 0;
        if (counts[kPlaces - 1])
            All::each(VisitBoxes<true>{counter, before, after, counts, before_first});
        else
            All::each(VisitBoxes<false>{counter, before, after, counts, before_first});
        return;
    }
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
        if (x + i + 1 >= cells.last[2]) continue;
        Corners corners;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const CellRow& row = (k & 4 ? after : before)[k >> 1 & 1];
            corners.code[k] = row.code[i + (k & 1)];
            if (kLabelled) corners.region[k] = row.region[i + (k & 1)];
        }
        All::each(Visit{counter, corners});
    }
}

// Adds the counts of a block to those of the image, and clears them. Called by all threads.
ECC_DEVICE void spill(const Cells& cells, int* shared, Count* counts) {
    __syncthreads();
    for (int i = threadIdx.x; i < kWords * cells.bins; i += ECC_THREADS) {
        const int word = i / cells.bins, bin = i - word * cells.bins;
        int* const copies = shared + bin * kPitch + word * ECC_COPIES;
        Count low = 0, high = 0;
        for (int k = 0; k < ECC_COPIES; ++k) {
            int& count = copies[(k + bin) & (ECC_COPIES - 1)];
            low += kPaired ? count & 0xFFFF : count;
            if (kPaired) high += (unsigned)count >> 16;
            count = 0;
        }
        Count* const to = counts + (kPaired ? 2 * word : word) * cells.bins + bin;
        if (low) atomicAdd(to, low);
        if (high) atomicAdd(to + cells.bins, high);
    }
    __syncthreads();
}

// Counts the cells of a unit of work: four places of a line, in some slices.
ECC_DEVICE void count_unit(const Cells& cells, const CellCounter& counter, int image,
                           long long unit) {
    const int down = cells.last[1] - cells.first[1];
    const long long line = unit / cells.across;
    const int x = (int)(unit - line * cells.across) * kPlaces + (kPaired ? 0 : cells.first[2] - 1);
    const int y = cells.first[1] + (int)(line % down);
    const int begin = cells.first[0] + (int)(line / down) * cells.chunk;
    const int end = min(begin + cells.chunk, cells.last[0]);
    Line low(cells, image, y - 1, x, begin - 1), high(cells, image, y, x, begin - 1);
    CellRow before[2], after[2];
    before[0] = low.read(cells);
    if (kRows) before[1] = high.read(cells);
#pragma unroll 2
    for (int z = begin; z < end; ++z) {
        if (kSlices) after[0] = low.read(cells);
        if (kSlices && kRows) after[1] = high.read(cells);
        count(cells, counter, x, before, after);
        before[0] = after[0], before[1] = after[1];
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, 1) count_cells(const Cells cells) {
    extern __shared__ uint4 memory[];
    int* const shared = (int*)memory;
    const int image = blockIdx.x / cells.blocks, block = blockIdx.x % cells.blocks;
    const int words = kShared ? cells.bins * kPitch : 0;
    for (int i = threadIdx.x; i < words; i += ECC_THREADS) shared[i] = 0;
    __syncthreads();
    const unsigned copy = kShared ? threadIdx.x % (ECC_COPIES + !kShared) : 0;
    Count* const counts =
        cells.counts + (kLabelled ? 0 : (long long)image * All::kinds * cells.bins);
    const CellCounter counter = {kShared ? shared_address(shared + copy) : 0, counts, cells.bins,
                                 cells.never_enters};
    const int chunks = (cells.last[0] - cells.first[0] + cells.chunk - 1) / cells.chunk;
    const long long units = (long long)cells.across * (cells.last[1] - cells.first[1]) * chunks;
    int waiting = 0;
    for (long long first = (long long)block * ECC_THREADS; first < units;
         first += (long long)cells.blocks * ECC_THREADS) {
        if (first + threadIdx.x < units) count_unit(cells, counter, image, first + threadIdx.x);
        if (!kPaired || ++waiting < cells.spill) continue;
        spill(cells, shared, counts);
        waiting = 0;
    }
    if (kShared) spill(cells, shared, counts);
}
