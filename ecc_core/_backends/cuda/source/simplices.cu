// Simplicial complexes: simplices with increasing points, without repetitions, and their faces.
//
// Simplices of a dimension are rows of indices. A hash table holds the numbers of distinct rows, so
// that repeated rows and missing faces are found without sorting.
#include "common.cuh"

typedef ECC_NUMBER Number;       // The type of numbers of points that are given.
constexpr int kSize = ECC_SIZE;  // Points of a simplex.
constexpr int kEmpty = -1;       // An entry of a table.
constexpr unsigned kNear = 8;    // Entries of a sector of memory.

struct Row {
    int points[kSize];
};

ECC_DEVICE Row read(const int* rows, long long index) {
    Row row;
#pragma unroll
    for (int j = 0; j < kSize; ++j) row.points[j] = rows[index * kSize + j];
    return row;
}

ECC_DEVICE bool is_same(const Row& a, const Row& b) {
    bool same = true;
#pragma unroll
    for (int j = 0; j < kSize; ++j) same = same && a.points[j] == b.points[j];
    return same;
}

// The places in a table, whose entries are a power of two, that a row may take, one after another. The
// first ones are near those of rows with neighbouring first points, which kernels read at about the same
// time. If these are taken, as for a point of many simplices, the others are anywhere.
struct Places {
    unsigned near, far, mask;
    int tried = 0;

    // A group of kNear entries belongs to a first point; there are `mask` / kNear groups.
    ECC_DEVICE Places(const Row& row, unsigned mask) : mask(mask) {
        unsigned hash = 0;
#pragma unroll
        for (int j = 0; j < kSize; ++j) {
            hash = (hash ^ (unsigned)row.points[j]) * 0x9E3779B1u;
            hash ^= hash >> 15;
        }
        near = (unsigned)row.points[0] * kNear + hash % kNear;
        far = hash;
    }

    ECC_DEVICE unsigned next() {
        const int step = tried++;
        const unsigned in_group = (near & ~(kNear - 1u)) | ((near + step) & (kNear - 1u));
        return (step < (int)kNear ? in_group : far + step) & mask;
    }
};

// The items of a thread: `step` threads take turns.
struct Items {
    long long at, step;

    ECC_DEVICE Items()
        : at((long long)blockIdx.x * blockDim.x + threadIdx.x),
          step((long long)gridDim.x * blockDim.x) {}
};

// Reads a row with increasing points. Returns what is wrong with it: kind 0 has a point outside, and kind 1
// one that is repeated; -1 if nothing is.
ECC_DEVICE int read_ordered(const Number* given, long long points, Row& row) {
    int kind = -1;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
        const Number number = given[j];
        const bool outside = number < 0 || number >= points;
        int own = outside ? 0 : (int)number;
        bool repeated = false;
#pragma unroll
        for (int k = 0; k < j; ++k) {
            repeated = repeated || row.points[k] == own;
            const int other = row.points[k];
            row.points[k] = min(other, own);
            own = max(other, own);
        }
        row.points[j] = own;
        if (kind < 0 && (outside || repeated)) kind = outside ? 0 : 1;
    }
    return kind;
}

// Writes rows with increasing points. `wrong` becomes the least 2 * i + kind of the rows i that are no
// simplices of a complex of `points` points: kind 0 has a point outside, and kind 1 a repeated point.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    order_points(const Number* given, long long count, long long points, int* rows,
                 unsigned long long* wrong) {
    for (Items item; item.at < count; item.at += item.step) {
        Row row;
        const int kind = read_ordered(given + item.at * kSize, points, row);
        if (kind >= 0) atomicMin(wrong, 2ull * (unsigned long long)item.at + kind);
#pragma unroll
        for (int j = 0; j < kSize; ++j) rows[item.at * kSize + j] = row.points[j];
    }
}

// Writes rows with increasing points, and enters them in a table as `keep_distinct` does. `wrong` becomes 0
// if a row is no simplex of a complex of `points` points, or is repeated.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    enter_rows(const Number* given, long long count, long long points, int* rows, int* table,
               unsigned mask, unsigned long long* wrong) {
    for (Items item; item.at < count; item.at += item.step) {
        Row row;
        if (read_ordered(given + item.at * kSize, points, row) >= 0) atomicMin(wrong, 0ull);
#pragma unroll
        for (int j = 0; j < kSize; ++j) rows[item.at * kSize + j] = row.points[j];
        __threadfence();  // The row is written before other threads find it in the table.
        for (Places places(row, mask);;) {
            const int other = atomicCAS(table + places.next(), kEmpty, (int)item.at);
            if (other == kEmpty) break;
            bool same = true;
#pragma unroll
            for (int j = 0; j < kSize; ++j)
                same = same &&
                       row.points[j] == *(const volatile int*)(rows + (long long)other * kSize + j);
            if (same) {
                atomicMin(wrong, 0ull);
                break;
            }
        }
    }
}

// Writes the faces of rows, each of which lacks one point.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_faces(const int* rows, long long count, int* faces) {
    for (Items item; item.at < count; item.at += item.step) {
        const Row row = read(rows, item.at);
#pragma unroll
        for (int left_out = 0; left_out < kSize; ++left_out) {
            int* face = faces + (item.at * kSize + left_out) * (kSize - 1);
#pragma unroll
            for (int j = 0; j < kSize - 1; ++j) face[j] = row.points[j + (j >= left_out)];
        }
    }
}

// Enters rows in a table of `mask` + 1 entries that are empty at first, more than there are rows, and
// writes the distinct ones to `kept`, whose number is added to `kept_count`.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    keep_distinct(const int* rows, long long count, int* table, unsigned mask, int* kept,
                  unsigned long long* kept_count) {
    for (Items item; item.at - threadIdx.x % 32 < count; item.at += item.step) {
        const bool given = item.at < count;
        bool first = false;
        Row row = {};
        if (given) {
            row = read(rows, item.at);
            for (Places places(row, mask);;) {
                const int other = atomicCAS(table + places.next(), kEmpty, (int)item.at);
                first = other == kEmpty;
                if (first || is_same(row, read(rows, other))) break;
            }
        }
        // A warp takes places for all its rows at once.
        const unsigned lanes = __ballot_sync(kWarp, first);
        const int lane = threadIdx.x & 31;
        unsigned long long start = 0;
        if (lane == 0 && lanes) start = atomicAdd(kept_count, (unsigned long long)__popc(lanes));
        start = __shfl_sync(kWarp, start, 0);
        if (!first) continue;
        const long long own = (long long)start + __popc(lanes & ((1u << lane) - 1));
#pragma unroll
        for (int j = 0; j < kSize; ++j) kept[own * kSize + j] = row.points[j];
    }
}

// Finds faces that are missing: `missing` becomes the least (kSize + 1) * i + j for which the larger row i
// without its point j is not among the rows of a table.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    find_faces(const int* larger, long long count, const int* rows, const int* table, unsigned mask,
               unsigned long long* missing) {
    for (Items item; item.at < count * (kSize + 1); item.at += item.step) {
        const long long index = item.at / (kSize + 1);
        const int left_out = (int)(item.at - index * (kSize + 1));
        Row face;
#pragma unroll
        for (int j = 0; j < kSize; ++j)
            face.points[j] = larger[index * (kSize + 1) + j + (j >= left_out)];
        for (Places places(face, mask);;) {
            const int other = table[places.next()];
            if (other == kEmpty) {
                atomicMin(missing, (unsigned long long)item.at);
                break;
            }
            if (is_same(face, read(rows, other))) break;
        }
    }
}
