// Histograms of the codes at which groups of neighbouring points enter, for an image that has been
// recoded (recode.cu). A group is a set of corners of a unit cube, a bit for each corner; corners
// are numbered by the sum of 1 for a step along the columns, 2 along the rows, 4 along the slices.
//
// A thread takes four places of the cube and moves from slice to slice. It adds 1 without using the
// result, which the compiler turns into an instruction that combines lanes of the same address.
#include "device.cuh"

typedef ECC_CODE Code;
typedef ECC_LABEL Label;
typedef unsigned long long Count;

constexpr bool kLast = ECC_LAST;      // groups enter with the last of their points, or the first
constexpr bool kSuper = ECC_SUPER;    // the largest codes enter first
constexpr bool kShared = ECC_COPIES;  // whether counts are in shared memory
constexpr bool kLabelled = ECC_LABELLED;
constexpr int kPlaces = 4;

struct Cells {
    const Code* data;
    Count* counts;  // (images or regions, kinds, bins)
    const Label* labels;
    const int* regions;        // the number of each label's region, from 1 on, or 0
    unsigned long long most;   // the largest label in `regions`
    long long batch, slice, row, labels_slice;  // steps between codes, and between slices of labels
    int depth, height, width;
    // Range of places of the highest corner of the cube, along slices, rows and columns.
    int first[3], last[3];
    int wraps, bins, never_enters, chunk, across, blocks;
};

template <unsigned... groups>
struct Groups {
    static constexpr int kinds = sizeof...(groups);
    static constexpr unsigned all = (0u | ... | groups);

    template <class Visit>
    __device__ __forceinline__ static void each(const Visit& visit) {
        int kind = 0;
        (visit.template operator()<groups>(kind++), ...);
    }
};
typedef Groups<ECC_GROUPS> All;

constexpr bool kRows = All::all & 0xCC, kSlices = All::all & 0xF0;
constexpr int kPitch = (All::kinds | 1) * ECC_COPIES;  // words from bin to bin

__device__ __forceinline__ int later(int a, int b) { return kSuper ? min(a, b) : max(a, b); }
__device__ __forceinline__ int owner(int a, int b) {
    return kLast ? later(a, b) : kSuper ? max(a, b) : min(a, b);
}

// The first corner of a group.
__device__ __forceinline__ constexpr int lowest(unsigned group) {
    int i = 0;
    while (!(group >> i & 1)) ++i;
    return i;
}

struct Corners {
    int code[8], region[kLabelled ? 8 : 1];
};

// Codes of four places of a row, and of the column before them.
struct Row {
    int code[kPlaces + 1], region[kLabelled ? kPlaces + 1 : 1];
};

// The index of a place, or -1 outside the image.
__device__ __forceinline__ int index_of(const Cells& cells, int place, int size) {
    if (cells.wraps && place == size) return 0;
    return place < size ? place : -1;
}

struct alignas(kPlaces * sizeof(Code)) Quad {
    Code v[kPlaces];
};

// Where a thread reads: the rows at one height, from column `x - 1` on.
struct Line {
    const Code* codes;  // of slice 0
    const Label* labels;
    int x;
    bool inside;

    __device__ __forceinline__ Line(const Cells& cells, int image, int y, int x) : x(x) {
        y = index_of(cells, y, cells.height);
        inside = y >= 0;
        codes = cells.data + image * cells.batch + y * cells.row;
        labels = cells.labels + (long long)y * cells.width;
    }

    // Reads the row in the slice at a place.
    __device__ __forceinline__ Row read(const Cells& cells, int place) const {
        Row row;
#pragma unroll
        for (int i = 0; i <= kPlaces; ++i) {
            row.code[i] = cells.never_enters;
            if (kLabelled) row.region[i] = 0;
        }
        const int z = index_of(cells, place, cells.depth);
        if (z < 0 || !inside) return row;
        const Code* const from = codes + z * cells.slice;
        if (!kLabelled && x + kPlaces <= cells.width) {
            const Quad quad = *(const Quad*)(from + x);
            if (x > 0) row.code[0] = from[x - 1];
#pragma unroll
            for (int i = 0; i < kPlaces; ++i) row.code[i + 1] = quad.v[i];
            return row;
        }
#pragma unroll
        for (int i = 0; i <= kPlaces; ++i) {
            const int column = index_of(cells, x - 1 + i, cells.width);
            if (column < 0) continue;
            row.code[i] = from[column];
            if (kLabelled) row.region[i] = region(cells, labels[z * cells.labels_slice + column]);
        }
        return row;
    }

    __device__ __forceinline__ static int region(const Cells& cells, Label label) {
        const auto number = (unsigned long long)label;
        return number <= cells.most ? cells.regions[number] : 0;
    }
};

struct Counter {
    unsigned shared;  // address of the lane's copy
    Count* counts;
    int bins, never_enters;

    __device__ __forceinline__ void add(int kind, int code, int region) const {
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
    const Counter& counter;
    const Corners& corners;

    template <unsigned group>
    __device__ __forceinline__ void operator()(int kind) const {
        if (kLabelled) {
            by_region<group>(kind);
            return;
        }
        int code = corners.code[lowest(group)];
#pragma unroll
        for (int i = lowest(group) + 1; i < 8; ++i)
            if (group >> i & 1) code = owner(code, corners.code[i]);
        counter.add(kind, code, 0);
    }

    // A group that enters with its last point must lie in one region. A group that enters with its
    // first point counts once for each region that it meets.
    template <unsigned group>
    __device__ __forceinline__ void by_region(int kind) const {
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

__device__ __forceinline__ void count(const Cells& cells, const Counter& counter, int x,
                                      const Row (&before)[2], const Row (&after)[2]) {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
        if (x + i < cells.first[2] || x + i >= cells.last[2]) continue;
        Corners corners;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const Row& row = (k & 4 ? after : before)[k >> 1 & 1];
            corners.code[k] = row.code[i + (k & 1)];
            if (kLabelled) corners.region[k] = row.region[i + (k & 1)];
        }
        All::each(Visit{counter, corners});
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
    const Counter counter = {kShared ? shared_address(shared + copy) : 0, counts, cells.bins,
                             cells.never_enters};
    const int down = cells.last[1] - cells.first[1];
    const int chunks = (cells.last[0] - cells.first[0] + cells.chunk - 1) / cells.chunk;
    const long long units = (long long)cells.across * down * chunks;
    for (long long unit = (long long)block * ECC_THREADS + threadIdx.x; unit < units;
         unit += (long long)cells.blocks * ECC_THREADS) {
        const long long line = unit / cells.across;
        const int x = (int)(unit - line * cells.across) * kPlaces;
        const int y = cells.first[1] + (int)(line % down);
        const int begin = cells.first[0] + (int)(line / down) * cells.chunk;
        const int end = min(begin + cells.chunk, cells.last[0]);
        const Line low(cells, image, y - 1, x), high(cells, image, y, x);
        Row before[2], after[2];
        before[0] = low.read(cells, begin - 1);
        if (kRows) before[1] = high.read(cells, begin - 1);
        for (int z = begin; z < end; ++z) {
            if (kSlices) after[0] = low.read(cells, z);
            if (kSlices && kRows) after[1] = high.read(cells, z);
            count(cells, counter, x, before, after);
            before[0] = after[0], before[1] = after[1];
        }
    }
    if (!kShared) return;
    __syncthreads();
    for (int i = threadIdx.x; i < All::kinds * cells.bins; i += ECC_THREADS) {
        const int kind = i / cells.bins, bin = i - kind * cells.bins;
        Count sum = 0;
        for (int k = 0; k < ECC_COPIES; ++k)
            sum += shared[bin * kPitch + kind * ECC_COPIES + ((k + bin) & (ECC_COPIES - 1))];
        if (sum) atomicAdd(counts + i, sum);
    }
}
