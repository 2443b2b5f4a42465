// The signed histogram of the pairs of ranks at which cells enter, for two images that have been recoded
// (docs/design/surface.md). A unit cube of points has one cell for each set of axes: the box that its
// first corner spans along them. Sets of axes, and corners of the cube, are numbers with a bit for
// each axis.
typedef ECC_CODE Code;
typedef unsigned long long Count;

constexpr int kAxes = ECC_FLAT ? 2 : 3, kCorners = 1 << kAxes;
constexpr bool kCubes = ECC_CUBES;
constexpr bool kShared = ECC_SHARED;  // whether bins are counted in shared memory
constexpr int kPlaces = 4, kLines = kAxes - 1;
constexpr int kFirst = kCubes ? 0 : 1;  // the first place; cubes have cells before the first points
constexpr int kHalf = sizeof(Code) == 1 ? 8 : sizeof(Code) == 2 ? 16 : 30;  // bits of a rank

template <int size>
struct KeyOf {
    typedef unsigned long long type;
};
template <>
struct KeyOf<1> {
    typedef unsigned type;
};
// A first rank, a second rank and a corner.
typedef KeyOf<sizeof(Code)>::type Key;
constexpr Key kRank = ((Key)1 << kHalf) - 1;

// The two ranks of a point or of a cell, the first in the upper half.
template <int size>
struct RanksOf {
    typedef unsigned type;
};
template <>
struct RanksOf<4> {
    typedef unsigned long long type;
};
typedef RanksOf<sizeof(Code)>::type Ranks;
constexpr int kBits = 4 * sizeof(Ranks);

__device__ __forceinline__ Ranks join(int first, int second) {
    return (Ranks)first << kBits | (Ranks)second;
}
__device__ __forceinline__ int first_of(Ranks ranks) { return (int)(ranks >> kBits); }
__device__ __forceinline__ int second_of(Ranks ranks) {
    return (int)(ranks & (((Ranks)1 << kBits) - 1));
}
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b) { return __vmaxu2(a, b); }
__device__ __forceinline__ unsigned long long larger(unsigned long long a, unsigned long long b) {
    return join(max(first_of(a), first_of(b)), max(second_of(a), second_of(b)));
}

// Images of two axes have slices of one row.
struct Pairs {
    const Code* data[2];
    Count* counts;  // (images, levels + 1 of the first, levels + 1 of the second)
    int levels[2];
    int reversed[2];  // superlevels: ranks are levels less codes
    int depth, height, width;
    int blocks, chunk, across;  // chunk: slices that a thread takes; across: threads along a row
};

struct Bins {
    int* shared;
    Count* global;
    int second;

    __device__ __forceinline__ void add(int k, int l, int amount) const {
        const long long at = (long long)k * second + l;
        if (kShared)
            atomicAdd(shared + at, amount);
        else
            atomicAdd(global + at, (Count)(long long)amount);
    }
};

__device__ __forceinline__ constexpr int sign_of(int axes) {
    return (axes ^ axes >> 1 ^ axes >> 2) & 1 ? -1 : 1;
}

// A cell enters at the largest ranks of its vertices. Two cells of opposite signs at one pair cancel.
__device__ __forceinline__ void add_vertices(Ranks (&cells)[kCorners], const Bins& bins) {
    bool left[kCorners];
#pragma unroll
    for (int cell = 0; cell < kCorners; ++cell) left[cell] = true;
#pragma unroll
    for (int axis = 1; axis < kCorners; axis *= 2)
#pragma unroll
        for (int cell = 0; cell < kCorners; ++cell)
            if (cell & axis) cells[cell] = larger(cells[cell], cells[cell ^ axis]);
#pragma unroll
    for (int axis = 1; axis < kCorners; axis *= 2)
#pragma unroll
        for (int cell = 0; cell < kCorners; ++cell)
            if (!(cell & axis)) {
                const int other = cell | axis;
                const bool same = left[cell] && left[other] && cells[cell] == cells[other];
                left[cell] = left[cell] && !same;
                left[other] = left[other] && !same;
            }
#pragma unroll
    for (int cell = 0; cell < kCorners; ++cell)
        if (left[cell]) bins.add(first_of(cells[cell]), second_of(cells[cell]), sign_of(cell));
}

__device__ __forceinline__ void order(Key& a, Key& b) {
    const Key low = a < b ? a : b;
    b = a < b ? b : a;
    a = low;
}

// A cell enters on the staircase of its cubes. In the order of their first ranks, a cube adds a step if
// its second rank is the smallest so far, and a join with the step before it.
__device__ __forceinline__ void add_cubes(const Ranks (&cubes)[kCorners], const Bins& bins) {
    Key keys[kCorners];
#pragma unroll
    for (int i = 0; i < kCorners; ++i)
        keys[i] = ((Key)first_of(cubes[i]) << kHalf | (Key)second_of(cubes[i])) << kAxes | (Key)i;
#pragma unroll
    for (int size = 1; size < kCorners; size *= 2)  // Batcher's odd-even merges
#pragma unroll
        for (int step = size; step > 0; step /= 2)
#pragma unroll
            for (int first = step % size; first + step < kCorners; first += 2 * step)
#pragma unroll
                for (int i = 0; i < step; ++i)
                    if (first + i + step < kCorners &&
                        (first + i) / (2 * size) == (first + i + step) / (2 * size))
                        order(keys[first + i], keys[first + i + step]);
    int least[kCorners];
#pragma unroll
    for (int cell = 0; cell < kCorners; ++cell) least[cell] = 0x7FFFFFFF;
#pragma unroll
    for (int i = 0; i < kCorners; ++i) {
        const int corner = (int)(keys[i] & (kCorners - 1));
        const int second = (int)(keys[i] >> kAxes & kRank);
        const int first = (int)(keys[i] >> (kAxes + kHalf) & kRank);
        int steps = 0;
#pragma unroll
        for (int cell = 0; cell < kCorners; ++cell) {
            const bool is_step = (cell & corner) == corner && second < least[cell];
            if (!is_step) continue;
            steps += sign_of(cell);
            if (least[cell] != 0x7FFFFFFF) bins.add(first, least[cell], -sign_of(cell));
            least[cell] = second;
        }
        if (steps) bins.add(first, second, steps);
    }
}

// The ranks of the point before four places of a row, and of the points at these places.
struct Row {
    Ranks at[kPlaces + 1];
};

struct alignas(kPlaces * sizeof(Code)) Quad {
    Code v[kPlaces];
};

// Reads a row of points from x - 1 on. Points outside have ranks that no threshold admits.
__device__ __forceinline__ Row read(const Pairs& pairs, int image, int z, int y, int x) {
    Row row;
    const Ranks never = join(pairs.levels[0], pairs.levels[1]);
#pragma unroll
    for (int i = 0; i <= kPlaces; ++i) row.at[i] = never;
    if (z < 0 || z >= pairs.depth || y < 0 || y >= pairs.height) return row;
    const long long start = (((long long)image * pairs.depth + z) * pairs.height + y) * pairs.width;
    const Code *const first = pairs.data[0] + start, *const second = pairs.data[1] + start;
    const auto rank = [&](int which, int code) {
        return pairs.reversed[which] ? pairs.levels[which] - code : code;
    };
    if (pairs.width % kPlaces == 0 && x < pairs.width) {
        const Quad one = *(const Quad*)(first + x), other = *(const Quad*)(second + x);
        if (x > 0) row.at[0] = join(rank(0, first[x - 1]), rank(1, second[x - 1]));
#pragma unroll
        for (int i = 0; i < kPlaces; ++i) row.at[i + 1] = join(rank(0, one.v[i]), rank(1, other.v[i]));
        return row;
    }
#pragma unroll
    for (int i = 0; i <= kPlaces; ++i) {
        const int column = x - 1 + i;
        if (column >= 0 && column < pairs.width)
            row.at[i] = join(rank(0, first[column]), rank(1, second[column]));
    }
    return row;
}

// Adds the cells of four places, between two slices.
__device__ __forceinline__ void add(const Pairs& pairs, const Bins& bins, int x,
                                    const Row (&before)[kLines], const Row (&after)[kLines]) {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
        if (x + i < kFirst || x + i > pairs.width) continue;
        Ranks corners[kCorners];
        bool alike = true;
#pragma unroll
        for (int k = 0; k < kCorners; ++k) {
            const Row& row = (k & kCorners / 2 ? after : before)[k >> 1 & kLines - 1];
            corners[k] = row.at[i + (k & 1)];
            alike = alike && corners[k] == corners[0];
        }
        if (alike) continue;  // all cells enter at one pair, where they add up to nothing
        if (kCubes)
            add_cubes(corners, bins);
        else
            add_vertices(corners, bins);
    }
}

// A thread takes four places of the last corner of a unit cube and moves from slice to slice.
extern "C" __global__ void __launch_bounds__(ECC_THREADS) surface(const Pairs pairs) {
    extern __shared__ uint4 memory[];
    const int image = blockIdx.x / pairs.blocks, block = blockIdx.x % pairs.blocks;
    const int second = pairs.levels[1] + 1, size = kShared ? (pairs.levels[0] + 1) * second : 0;
    Count* const counts = pairs.counts + (long long)image * (pairs.levels[0] + 1) * second;
    const Bins bins = {(int*)memory, counts, second};
    for (int i = threadIdx.x; i < size; i += ECC_THREADS) bins.shared[i] = 0;
    __syncthreads();
    const int down = kLines == 1 ? 1 : pairs.height + 1 - kFirst;
    const int chunks = (pairs.depth + pairs.chunk - kFirst) / pairs.chunk;
    const long long units = (long long)pairs.across * down * chunks;
    for (long long unit = (long long)block * ECC_THREADS + threadIdx.x; unit < units;
         unit += (long long)pairs.blocks * ECC_THREADS) {
        const long long line = unit / pairs.across;
        const int x = (int)(unit - line * pairs.across) * kPlaces;
        const int y = kLines == 1 ? 0 : kFirst + (int)(line % down);
        const int begin = kFirst + (int)(line / down) * pairs.chunk;
        const int end = min(begin + pairs.chunk, pairs.depth + 1);
        Row before[kLines], after[kLines];
#pragma unroll
        for (int i = 0; i < kLines; ++i)
            before[i] = read(pairs, image, begin - 1, y - (kLines - 1) + i, x);
        for (int z = begin; z < end; ++z) {
#pragma unroll
            for (int i = 0; i < kLines; ++i)
                after[i] = read(pairs, image, z, y - (kLines - 1) + i, x);
            add(pairs, bins, x, before, after);
#pragma unroll
            for (int i = 0; i < kLines; ++i) before[i] = after[i];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += ECC_THREADS)
        if (bins.shared[i]) atomicAdd(counts + i, (Count)(long long)bins.shared[i]);
}
