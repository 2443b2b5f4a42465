// Reduction of the boundary matrix of tunnels (tunnels.cu) over Z/2: columns are added to later ones until
// no two have the same pivot, their first row.

#include "columns.cuh"

constexpr int kMerged = ECC_MERGED;  // The most rows of a sum of columns in local memory.

// The rows of a column, which do not change once they are in memory. Reads are volatile, since other
// processors write next to them.
struct Listed {
    const volatile int* rows;
    int count;

    __device__ Listed(const Columns& columns, int column) {
        const Word span = ((volatile Word*)columns.spans)[column];
        rows = columns.rows + (span >> kSpanBits);
        count = span & kMostRows;
    }
};

// Writes the symmetric difference of two increasing lists. Returns its size, or -1 if there is no room.
__device__ int add_rows(const volatile int* a, int size, Listed b, int* sum, int room) {
    int i = 0, k = 0, count = 0;
    while (i < size || k < b.count) {
        const int first = i < size ? a[i] : 0x7FFFFFFF,
                  second = k < b.count ? b.rows[k] : 0x7FFFFFFF;
        i += first <= second;
        k += second <= first;
        if (first == second) continue;
        if (count == room) return -1;
        sum[count++] = min(first, second);
    }
    return count;
}

// A column that is reduced, and its rows: those in memory, or `changed` ones that are not yet there.
struct Reduced {
    int column;
    const volatile int* rows;
    int count;
    bool changed;

    __device__ Reduced(const Columns& columns, int column) : column(column), changed(false) {
        const Listed given(columns, column);
        rows = given.rows, count = given.count;
    }

    // Writes the rows to memory. Returns whether there is room.
    __device__ bool publish(const Columns& columns) {
        if (!changed) return true;
        const long long begin = atomicAdd(columns.taken, (Word)count);
        if (begin + count > columns.room) return false;
        volatile int* const to = columns.rows + begin;
        for (int i = 0; i < count; ++i) to[i] = rows[i];
        ((volatile Word*)columns.spans)[column] = (Word)begin << kSpanBits | (unsigned)count;
        rows = to;
        changed = false;
        return true;
    }
};

// Reduces columns over Z/2 by adding earlier ones, until no other column has the same pivot, its first
// row (D. Morozov and A. Nigmetov, Towards lockfree persistent homology, 2020). A column that enters
// before the owner of its pivot takes its place, and the other one is reduced further. Columns for which
// there is no room are listed as late.
__device__ void reduce(const Columns& columns, int* owners, int first, int* sum, int* other,
                       int room) {
    Reduced own(columns, first);
    while (own.count > 0) {
        const int pivot = own.rows[0], owner = ((volatile int*)owners)[pivot];
        __threadfence();  // The owner's rows are read after its number.
        const bool earlier = owner >= 0 && owner < own.column;
        if (earlier) {
            own.count = add_rows(own.rows, own.count, Listed(columns, owner), sum, room);
            own.rows = sum;
            own.changed = true;
            sum = other;
            other = (int*)own.rows;
        }
        if (own.count < 0 || (!earlier && !own.publish(columns))) {
            add_late(columns, own.column);
            return;
        }
        if (earlier) continue;
        __threadfence();  // The rows are in memory before the column owns its pivot.
        if (atomicCAS(owners + pivot, owner, own.column) != owner) continue;
        if (owner < 0) return;
        own = Reduced(columns, owner);
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    reduce_columns(const Columns columns, int* owners) {
    int sums[2][kMerged];
    const long long column = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    if (column < columns.count) reduce(columns, owners, column, sums[0], sums[1], kMerged);
}

// The rows of a column as bits in memory. All bits are 0 between columns. Called by all threads of a block.
struct RowSet {
    unsigned* words;
    int low, high;  // The words before `low` and those after `high` are 0.

    // Adds the rows of a column, or removes those that are there.
    __device__ void toggle(const Listed& other) {
        for (int i = threadIdx.x; i < other.count; i += ECC_THREADS)
            atomicXor(words + (other.rows[i] >> 5), 1u << (other.rows[i] & 31));
        low = min(low, other.rows[0] >> 5);
        high = max(high, other.rows[other.count - 1] >> 5);
        __syncthreads();
    }

    __device__ unsigned word(int index) const {
        return index <= high ? ((volatile unsigned*)words)[index] : 0;
    }

    // Returns the first row, or -1, and sets `low` to its word.
    __device__ int first_row() {
        __shared__ int found;
        for (; low <= high; low += ECC_THREADS) {
            const int index = low + threadIdx.x;
            const unsigned bits = word(index);
            if (threadIdx.x == 0) found = 0x7FFFFFFF;
            __syncthreads();
            if (bits) atomicMin(&found, index << 5 | (__ffs(bits) - 1));
            __syncthreads();
            const int row = found;
            __syncthreads();
            if (row == 0x7FFFFFFF) continue;
            low = row >> 5;
            return row;
        }
        return -1;
    }

    // Writes the rows to memory in their order and removes them. Returns whether there was room.
    __device__ bool take_out(const Columns& columns, int column) {
        __shared__ int counts[ECC_THREADS / 32];
        __shared__ long long begin;
        int count = 0;
        for (int first = low; first <= high; first += ECC_THREADS)
            count += __popc(word(first + threadIdx.x));
        const int all = block_sum(count, counts);
        if (threadIdx.x == 0) begin = atomicAdd(columns.taken, (Word)all);
        __syncthreads();
        const bool fits = begin + all <= columns.room && all <= kMostRows;
        volatile int* to = columns.rows + begin;
        for (int first = low; first <= high; first += ECC_THREADS) {
            const int index = first + threadIdx.x;
            const unsigned bits = word(index);
            if (bits) words[index] = 0;
            const int own = __popc(bits), end = running_sum(own, threadIdx.x & 31);
            if ((threadIdx.x & 31) == 31) counts[threadIdx.x >> 5] = end;
            __syncthreads();
            int before = end - own, here = 0;
            for (int i = 0; i < ECC_THREADS / 32; ++i) {
                before += i < (int)(threadIdx.x >> 5) ? counts[i] : 0;
                here += counts[i];
            }
            for (unsigned rest = bits; fits && rest; rest &= rest - 1)
                to[before++] = index << 5 | (__ffs(rest) - 1);
            to += here;
            __syncthreads();
        }
        __threadfence();
        if (fits && threadIdx.x == 0)
            ((volatile Word*)columns.spans)[column] = (Word)begin << kSpanBits | (unsigned)all;
        __threadfence();
        __syncthreads();
        return fits;
    }

    __device__ static int block_sum(int value, int* counts) {
        const int end = running_sum(value, threadIdx.x & 31);
        if ((threadIdx.x & 31) == 31) counts[threadIdx.x >> 5] = end;
        __syncthreads();
        int sum = 0;
        for (int i = 0; i < ECC_THREADS / 32; ++i) sum += counts[i];
        __syncthreads();
        return sum;
    }
};

// Reduces columns that need more memory, each by a block, as `reduce` does. `columns.memory` has
// `own_room` words of zeros for each block.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    reduce_late(const Columns columns, int* owners) {
    __shared__ int owner_seen;
    unsigned* const words = (unsigned*)(columns.memory + blockIdx.x * columns.own_room);
    for (int i = blockIdx.x; i < columns.count; i += gridDim.x) {
        int column = columns.chosen[i];
        for (;;) {
            RowSet set = {words, 0x7FFFFFFF, -1};
            const Listed given(columns, column);
            if (!given.count) break;
            set.toggle(given);
            int pivot, owner;
            bool changed = false;
            for (;;) {  // It ends when no earlier column has the pivot.
                pivot = set.first_row();
                if (threadIdx.x == 0 && pivot >= 0) owner_seen = ((volatile int*)owners)[pivot];
                __syncthreads();
                owner = pivot < 0 ? -1 : owner_seen;
                __threadfence();
                __syncthreads();
                if (owner < 0 || owner > column) break;
                set.toggle(Listed(columns, owner));
                changed = true;
            }
            if (pivot < 0) break;
            if (!changed) {
                set.toggle(given);
            } else if (!set.take_out(columns, column)) {
                if (threadIdx.x == 0) add_late(columns, column);
                break;
            }
            if (threadIdx.x == 0) owner_seen = atomicCAS(owners + pivot, owner, column);
            __syncthreads();
            const int found = owner_seen;
            __syncthreads();
            if (found != owner) continue;
            if (owner < 0) break;
            column = owner;
        }
        __syncthreads();
    }
}
