// Curves of simplicial complexes for many orders of the same points: heights in directions, or values.
//
// A simplex enters at the largest bin of its points. Orders lie side by side: a lane has one of them, or
// two as the halves of a word, so that the codes of a point are read together, and every lane adds to a
// column of its own of the histogram in shared memory. Where there are fewer orders than lanes, a warp
// takes several simplices at a time.
#include "simplicial.cuh"

constexpr bool kShared = ECC_SHARED;  // Whether bins are counted in shared memory.
constexpr int kParts = ECC_PARTS;     // Integers of a sum: 2 of floats.
constexpr bool kWeighted = ECC_WEIGHTED;
typedef ECC_VALUE Value;                // The value of a point, of which curves are computed.
typedef ECC_WEIGHT Weight;              // The weight of a point.
constexpr int kColumns = 32 * kHalves;  // Columns of a histogram.
constexpr int kAtOnce = 32 / kLanes;    // Simplices that a warp takes at a time.

// A limit of the absolute values of coordinates, below which heights are finite.
constexpr double kMostReach = 1e150;

// Arrays that are given, and copies of those of the call before, which have been checked.
struct Copies {
    const int* given[8];
    const int* kept[8];
    long long words[8];
    int kinds;
};

// Results that begin with a kernel: words that are cleared, to which other kernels add, and facts that are
// copied.
struct Begun {
    Sum* cleared;
    const double* facts;
    double* copied;
    long long cleared_count, facts_count;
};

struct Threads {
    long long first, step;  // The first item that a thread takes, and the distance to its next one.

    ECC_DEVICE Threads()
        : first((long long)blockIdx.x * blockDim.x + threadIdx.x),
          step((long long)gridDim.x * blockDim.x) {}
};

ECC_DEVICE void begin_results(const Begun& begun) {
    const Threads own;
    for (long long at = own.first; at < begun.cleared_count; at += own.step) begun.cleared[at] = 0;
    for (long long at = own.first; at < begun.facts_count; at += own.step)
        begun.copied[at] = begun.facts[at];
}

// Returns whether the words that a thread compares are equal. Threads read four at a time where they can.
ECC_DEVICE bool are_equal(const int* given, const int* kept, long long words) {
    const Threads own;
    bool equal = true;
    long long done = 0;
    if (((size_t)given | (size_t)kept) % sizeof(uint4) == 0) {
        const uint4* const these = (const uint4*)given;
        const uint4* const those = (const uint4*)kept;
        done = words / 4 * 4;
#pragma unroll 4
        for (long long at = own.first; at < words / 4; at += own.step) {
            const uint4 a = these[at], b = those[at];
            equal &= ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0;
        }
    }
    for (long long at = done + own.first; at < words; at += own.step)
        equal &= given[at] == kept[at];
    return equal;
}

ECC_DEVICE bool equals_copies(const Copies& copies) {
    bool equal = true;
    for (int kind = 0; kind < copies.kinds; ++kind)
        equal &= are_equal(copies.given[kind], copies.kept[kind], copies.words[kind]);
    return equal;
}

// Returns the number of levels below a height. Evenly spaced levels are no further than `error` from their
// places, so that they are only read if a height is that close to one.
ECC_DEVICE int bin_of(double height, const Sampling& sampling, double error) {
    if (sampling.scale > 0) {
        const double measure = (height - sampling.origin) * sampling.scale;
        const int near = max(0, min(sampling.count - 1, __double2int_rn(measure)));
        const double off = measure - near;
        if (fabs(off) > error) return near + (off > 0 ? 1 : 0);
    }
    return place(height, sampling, sampling.levels);
}

// The directions of a lane, whose first components are in registers.
struct Directions {
    static constexpr int kKept = 3;
    const double* vectors;  // (axes, orders)
    int axes, orders, first;
    double components[kHalves][kKept];

    ECC_DEVICE Directions(const double* vectors, int axes, int orders, int first)
        : vectors(vectors), axes(axes), orders(orders), first(first) {
#pragma unroll
        for (int half = 0; half < kHalves; ++half)
#pragma unroll
            for (int axis = 0; axis < kKept; ++axis)
                components[half][axis] = axis < axes ? component(half, axis) : 0.0;
    }

    ECC_DEVICE double component(int half, int axis) const {
        return vectors[(long long)axis * orders + first + half * kLanes];
    }

    ECC_DEVICE double height(const Value* point, int half) const {
        double sum = __dmul_rn((double)point[0], components[half][0]);
#pragma unroll
        for (int axis = 1; axis < kKept; ++axis)
            if (axis < axes)
                sum = __dadd_rn(sum, __dmul_rn((double)point[axis], components[half][axis]));
        for (int axis = kKept; axis < axes; ++axis)
            sum = __dadd_rn(sum, __dmul_rn((double)point[axis], component(half, axis)));
        return sum;
    }
};

// Writes the bins of the heights of points, (groups, points, kLanes). Vectors are (axes, orders), the
// last one repeated to fill a group. Groups are the second axis of the grid. `wrong`, unless it is null,
// becomes `mark` if a coordinate is not finite or too large, or if what is given is not what was copied.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    encode_heights(const Value* points, long long count, int axes, const double* vectors,
                   const Sampling sampling, double error, unsigned* codes,
                   unsigned long long* wrong, unsigned long long mark, const Begun begun,
                   const Copies copies) {
    if (blockIdx.y == 0) {
        begin_results(begun);
        if (!equals_copies(copies)) *wrong = mark;
    }
    // A thread has the same orders of all its points.
    const Threads own;
    const int column = (int)(own.first % kLanes);
    const Directions directions(vectors, axes, (int)gridDim.y * kOrders,
                                (int)blockIdx.y * kOrders + column);
    unsigned* const out = codes + blockIdx.y * count * kLanes;
    for (long long at = own.first; at < count * kLanes; at += own.step) {
        const Value* const point = points + at / kLanes * axes;
        if (wrong && column == 0 && blockIdx.y == 0) {
            for (int axis = 0; axis < axes; ++axis)
                if (!(fabs((double)point[axis]) < kMostReach)) *wrong = mark;
        }
        unsigned word = 0;
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
            const double height = directions.height(point, half);
            word |= (unsigned)bin_of(height, sampling, error) << 16 * half;
        }
        out[at] = word;
    }
}

// Writes the numbers of levels at which values (orders, points) have not entered, (groups, points, kLanes).
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    encode_values(const Value* values, long long count, int orders, const Value* levels,
                  int levels_count, int superlevel, unsigned* codes) {
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count * kLanes;
         at += (long long)gridDim.x * blockDim.x) {
        unsigned word = 0;
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
            const int order = blockIdx.y * kOrders + half * kLanes + (int)(at % kLanes);
            if (order >= orders) continue;
            const Value value = values[order * count + at / kLanes];
            const auto passes = [&](int i) {
                return superlevel ? levels[i] <= value : levels[i] < value;
            };
            const int passed = first_failing(levels_count, passes);
            const int rank = superlevel ? levels_count - passed : passed;
            word |= (unsigned)rank << 16 * half;
        }
        codes[blockIdx.y * count * kLanes + at] = word;
    }
}

// Simplices by size, of one dimension after the other.
struct Simplices {
    const int* rows[8];
    long long counts[8];
    int sizes[8];
    int kinds;        // The number of sizes.
    int with_points;  // Whether the points count as well.
    int taken;  // Simplices that a warp takes at a time, a multiple of kAtOnce and at most 32.
    long long points;
    const unsigned* codes;  // (groups, points, kLanes)
    const Weight* weights;  // The weights of points.
    double first_scale, second_scale;
    // Arguments of `answer`, which tells the host whether something is wrong with the simplices.
    unsigned long long* wrong;
    unsigned long long right;
    volatile long long* reply;
};

ECC_DEVICE unsigned larger_code(unsigned a, unsigned b) {
    return ECC_PACKED ? __vmaxu2(a, b) : max(a, b);
}

// A sum, or a weight, as integers.
struct Parts {
    Sum part[kParts];
};

ECC_DEVICE Parts split(const Simplices&, long long weight) { return {(Sum)weight}; }

ECC_DEVICE Parts split(const Simplices& given, double weight) {
    const double scaled = weight * given.first_scale;
    const long long first = __double2ll_rn(scaled);
    Parts parts;
    parts.part[0] = (Sum)first;
    parts.part[kParts - 1] = (Sum)__double2ll_rn((scaled - (double)first) * given.second_scale);
    return parts;
}

// The columns of a lane. Each part of the histogram in shared memory is (bins, kColumns), of 32-bit
// numbers unless there are weights.
struct Bins {
    void* shared;
    const Histogram& histogram;
    int first_order;

    ECC_DEVICE void add(int half, int bin, const Parts& amount) const {
        if (bin >= histogram.bins) return;
        const int column = half * 32 + (threadIdx.x & 31);
        const int order = first_order + half * kLanes + (threadIdx.x & (kLanes - 1));
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const Sum sum = amount.part[i];
            if (!kShared) {
                const long long row = (long long)i * histogram.orders + order;
                if (order < histogram.orders && sum)
                    atomicAdd(histogram.values + row * histogram.bins + bin, sum);
                continue;
            }
            const int at = (i * histogram.bins + bin) * kColumns + column;
            if (!kWeighted) {
                atomicAdd((int*)shared + at, (int)sum);
                continue;
            }
            // Shared memory adds 32 bits at a time; the carry may be added after sums of other threads.
            unsigned* const words = (unsigned*)shared + 2 * at;
            const unsigned low = (unsigned)sum;
            const unsigned before = low ? atomicAdd(words, low) : 0;
            const unsigned high = (unsigned)(sum >> 32) + (before + low < low);
            if (high) atomicAdd(words + 1, high);
        }
    }

    ECC_DEVICE int size() const { return kParts * histogram.bins * kColumns; }

    ECC_DEVICE void clear() const {
        for (int i = threadIdx.x; i < size() * (kWeighted ? 2 : 1); i += ECC_THREADS)
            ((unsigned*)shared)[i] = 0;
    }

    // Adds the counts of a block to those of all blocks.
    ECC_DEVICE void flush() const {
        for (int i = threadIdx.x; i < size(); i += ECC_THREADS) {
            const Sum sum = kWeighted ? ((Sum*)shared)[i] : (Sum)(long long)((int*)shared)[i];
            const int column = i % kColumns, line = i / kColumns;
            const int part = line / histogram.bins, bin = line - part * histogram.bins;
            const int order = first_order + column / 32 * kLanes + (column & (kLanes - 1));
            if (!sum || order >= histogram.orders) continue;
            const long long row = (long long)part * histogram.orders + order;
            atomicAdd(histogram.values + row * histogram.bins + bin, sum);
        }
    }
};

// Adds the simplices of one size: those of `size` points, or of `own` ones if `size` is 0. A lane reads
// the points of one simplex, and all lanes of a warp then share these.
template <int size>
ECC_DEVICE void add_simplices(const Simplices& given, const int* rows, long long count, int own,
                              const unsigned* codes, const Bins& bins) {
    constexpr int kept = size ? size : 1;
    const int lane = threadIdx.x & 31, column = lane & (kLanes - 1);
    const int sign = (size ? size : own) % 2 ? 1 : -1;
    const long long warp = ((long long)blockIdx.x * ECC_THREADS + threadIdx.x) / 32;
    const long long step = (long long)gridDim.x * (ECC_THREADS / 32) * given.taken;
    for (long long start = warp * given.taken; start < count; start += step) {
        const long long mine = min(start + lane, count - 1);
        int points[kept];
#pragma unroll
        for (int j = 0; j < kept; ++j)
            points[j] = size == 1 ? (int)mine : rows[mine * (size ? size : own) + j];
#pragma unroll 4
        for (int i = 0; i < given.taken / kAtOnce; ++i) {
            const int from = i * kAtOnce + lane / kLanes;
            const long long index = start + from;
            unsigned code = 0;
            Weight weight = 0;
            const auto take = [&](int point, bool first) {
                code = larger_code(code, codes[(long long)point * kLanes + column]);
                if (!kWeighted) return;
                const Weight other = given.weights[point];
                weight = first || weight < other ? other : weight;
            };
#pragma unroll
            for (int j = 0; j < kept; ++j) take(__shfl_sync(kWarp, points[j], from), j == 0);
            if (!size && index < count)
                for (int j = 1; j < own; ++j) take(rows[index * own + j], false);
            if (index >= count) continue;
            const Parts amount =
                kWeighted ? split(given, sign * weight) : Parts{(Sum)(long long)sign};
            bins.add(0, ECC_PACKED ? code & 0xFFFF : code, amount);
            if (ECC_PACKED) bins.add(1, code >> 16, amount);
        }
    }
}

// Groups of orders are the second axis of the grid.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    count_simplices(const Simplices given, const Histogram histogram) {
    extern __shared__ uint4 memory[];
    const Bins bins = {memory, histogram, (int)blockIdx.y * kOrders};
    const unsigned* const codes = given.codes + blockIdx.y * given.points * kLanes;
    answer(given.wrong, given.right, given.reply);
    if (kShared) bins.clear();
    __syncthreads();
    if (given.with_points) add_simplices<1>(given, nullptr, given.points, 1, codes, bins);
    for (int kind = 0; kind < given.kinds; ++kind) {
        const int* const rows = given.rows[kind];
        const long long count = given.counts[kind];
        const int size = given.sizes[kind];
        if (size == 2)
            add_simplices<2>(given, rows, count, size, codes, bins);
        else if (size == 3)
            add_simplices<3>(given, rows, count, size, codes, bins);
        else
            add_simplices<0>(given, rows, count, size, codes, bins);
    }
    __syncthreads();
    if (kShared) bins.flush();
}
