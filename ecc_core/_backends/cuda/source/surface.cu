// Counts cells, with their signs, by the pair of ranks at which they enter, for two recoded images
// (docs/design/surface.md). A unit cube of points has one cell for each set of axes: the box that its
// first corner spans along them. Sets of axes, and corners of the cube, are numbers with a bit for
// each axis.
#include "codes.cuh"
#include "device.cuh"

typedef unsigned long long Count;

constexpr int kAxes = ECC_FLAT ? 2 : 3, kCorners = 1 << kAxes;
constexpr bool kCubes = ECC_CUBES;
constexpr bool kShared = ECC_SHARED;  // Whether bins are counted in shared memory.
constexpr int kPlaces = 4, kLines = kAxes - 1;
constexpr int kFirst = kCubes ? 0 : 1;  // The first place; cubes have cells before points.

// The two ranks of a point or of a cell, the first in the upper half. Where bins are in shared memory, the
// first is multiplied by the bins of a row, so that the sum of both is a bin; it has up to 15 bits.
typedef Either<sizeof(Code) == 4, unsigned long long, unsigned>::type Ranks;
constexpr int kBits = 4 * sizeof(Ranks);

ECC_DEVICE Ranks join(int first, int second) { return (Ranks)first << kBits | (Ranks)second; }
ECC_DEVICE int first_of(Ranks ranks) { return (int)(ranks >> kBits); }
ECC_DEVICE int second_of(Ranks ranks) { return (int)(ranks & (((Ranks)1 << kBits) - 1)); }
ECC_DEVICE unsigned larger(unsigned a, unsigned b) { return __vmaxu2(a, b); }
ECC_DEVICE unsigned long long larger(unsigned long long a, unsigned long long b) {
    return join(max(first_of(a), first_of(b)), max(second_of(a), second_of(b)));
}

// Images of two axes have slices of one row.
struct Surface {
    const Code* data[2];
    Count* counts;  // (images, levels + 1 of the first, levels + 1 of the second)
    int levels[2];
    int reversed[2];  // Superlevel sets: ranks are levels minus codes.
    int depth, height, width;
    int blocks, chunk, across;  // chunk: slices that a thread takes; across: threads along a row.
};

struct SurfaceBins {
    unsigned shared;  // Shared address of the first bin.
    Count* global;
    int second;

    ECC_DEVICE void add_if(bool given, Ranks ranks, int amount) const {
        if constexpr (kShared)
            shared_add_if(given, dot_low_bytes((unsigned)ranks, 0x0404u, shared), amount);
        else if (given)
            atomicAdd(global + (long long)first_of(ranks) * second + second_of(ranks),
                      (Count)(long long)amount);
    }
};

ECC_DEVICE constexpr int sign_of(int axes) { return (axes ^ axes >> 1 ^ axes >> 2) & 1 ? -1 : 1; }

// V: adds cells at the largest ranks of their vertices. Two cells of opposite signs at one pair cancel.
ECC_DEVICE void add_vertices(Ranks (&cells)[kCorners], const SurfaceBins& bins) {
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
    for (int cell = 0; cell < kCorners; ++cell) bins.add_if(left[cell], cells[cell], sign_of(cell));
}

// Returns the corners of a cell as bits.
ECC_DEVICE constexpr unsigned corners_of(int cell) {
    unsigned corners = 0;
    for (int k = 0; k < kCorners; ++k)
        if ((k & cell) == k) corners |= 1u << k;
    return corners;
}

// Returns whether the first rank of `b` is at least that of `a` in bit 31, and the same of the second in
// bit 15.
ECC_DEVICE unsigned compare(Ranks a, Ranks b) {
    if constexpr (kShared) return (unsigned)b - (unsigned)a + 0x80008000u;
    return (unsigned)(first_of(b) >= first_of(a)) << 31 | (unsigned)(second_of(b) >= second_of(a))
                                                              << 15;
}

// Returns the sum of the signs of the cells that contain the corners of a cell, and no corner of `others`,
// which are bits.
template <int least>
ECC_DEVICE int signs(unsigned others) {
    constexpr int rest = kCorners - 1 - least;  // Axes along which cells may be larger.
    if constexpr (rest == 0) return others ? 0 : sign_of(least);
    if constexpr ((rest & rest - 1) == 0)
        return others && !(others & corners_of(least)) ? sign_of(least) : 0;
    int sum = 0;
#pragma unroll
    for (int cell = 0; cell < kCorners; ++cell)
        if ((cell & least) == least) sum += others & corners_of(cell) ? 0 : sign_of(cell);
    return sum;
}

// For each cube around a cell, the cubes that do not come after it by their first ranks, and by their
// second ranks, as bits.
struct Orders {
    unsigned first[kCorners], second[kCorners];
};

// A cube is a step of the staircase of a cell if no other cube of the cell comes before it by both ranks.
// Two cubes are neighbouring steps, and their join is subtracted, if one comes first by one rank and the
// other one by the other, and none comes before both of them together.
template <int j, int i>
ECC_DEVICE void add_joins(const Ranks (&cubes)[kCorners], const Orders& orders,
                          const SurfaceBins& bins) {
    constexpr int least = i | j, rest = kCorners - 1 - least;
    constexpr unsigned both = 1u << i | 1u << j;
    const unsigned one = orders.first[j] & orders.second[i];
    const unsigned other = orders.first[i] & orders.second[j];
    const Ranks join = larger(cubes[i], cubes[j]);
    if constexpr (rest == 0) {
        bins.add_if(one == both || other == both, join, -sign_of(least));
    } else {
        const unsigned found = (one & both) == both ? one : other;
        const unsigned near = found & corners_of(least);
        if constexpr ((rest & rest - 1) == 0) {
            bins.add_if(near == both && found != both, join, -sign_of(least));
        } else {
            const int joins = near == both ? signs<least>(found & ~both) : 0;
            bins.add_if(joins, join, -joins);
        }
    }
    if constexpr (i + 1 < j) add_joins<j, i + 1>(cubes, orders, bins);
}
template <int j>
ECC_DEVICE void add_steps(const Ranks (&cubes)[kCorners], const Orders& orders,
                          const SurfaceBins& bins) {
    const int steps = signs<j>(orders.first[j] & orders.second[j] & ~(1u << j));
    bins.add_if(steps, cubes[j], steps);
    if constexpr (j > 0) add_joins<j, 0>(cubes, orders, bins);
    if constexpr (j + 1 < kCorners) add_steps<j + 1>(cubes, orders, bins);
}

// T: adds cells, each of which enters on the staircase of its cubes.
ECC_DEVICE void add_cubes(const Ranks (&cubes)[kCorners], const SurfaceBins& bins) {
    // Of equal ranks the cube of the least number comes first: at the beginning, each cube comes after
    // those of larger numbers.
    unsigned orders[kCorners];
#pragma unroll
    for (int i = 0; i < kCorners; ++i) orders[i] = 0x10001u * ((1u << kCorners) - (1u << i));
#pragma unroll
    for (int j = 1; j < kCorners; ++j)
#pragma unroll
        for (int i = 0; i < j; ++i) {
            const unsigned later = compare(cubes[i], cubes[j]) >> 15 & 0x10001u;
            orders[j] = multiply_add_words(later, 1u << i, orders[j]);
            orders[i] = multiply_add_words(later, -1u << j, orders[i]);
        }
    Orders found;
#pragma unroll
    for (int i = 0; i < kCorners; ++i)
        found.first[i] = permute<0x4432>(orders[i], 0), found.second[i] = orders[i];
    add_steps<0>(cubes, found, bins);
}

// The ranks of the point before four places of a row, and of the points at these places.
struct SurfaceRow {
    Ranks at[kPlaces + 1];
};

// Reads a row of points from x - 1 on. Points outside have ranks that no threshold admits.
ECC_DEVICE SurfaceRow read(const Surface& pairs, int image, int z, int y, int x) {
    SurfaceRow row;
    const int scale = kShared ? pairs.levels[1] + 1 : 1;
    const Ranks never = join(pairs.levels[0] * scale, pairs.levels[1]);
#pragma unroll
    for (int i = 0; i <= kPlaces; ++i) row.at[i] = never;
    if (z < 0 || z >= pairs.depth || y < 0 || y >= pairs.height) return row;
    const long long start = (((long long)image * pairs.depth + z) * pairs.height + y) * pairs.width;
    const Code *const first = pairs.data[0] + start, *const second = pairs.data[1] + start;
    const auto rank = [&](int which, int code) {
        const int found = pairs.reversed[which] ? pairs.levels[which] - code : code;
        return which ? found : found * scale;
    };
    if (pairs.width % kPlaces == 0 && x < pairs.width) {
        const FourCodes one = *(const FourCodes*)(first + x),
                        other = *(const FourCodes*)(second + x);
        if (x > 0) row.at[0] = join(rank(0, first[x - 1]), rank(1, second[x - 1]));
#pragma unroll
        for (int i = 0; i < kPlaces; ++i)
            row.at[i + 1] = join(rank(0, one.v[i]), rank(1, other.v[i]));
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

// Adds the cells of four places, between two slices. The loop is not unrolled: the code of one place is
// long, and instructions of four would not stay in the cache.
ECC_DEVICE void add(const Surface& pairs, const SurfaceBins& bins, int x,
                    const SurfaceRow (&before)[kLines], const SurfaceRow (&after)[kLines]) {
    SurfaceRow rows[2 * kLines];
#pragma unroll
    for (int k = 0; k < kLines; ++k) rows[k] = before[k], rows[kLines + k] = after[k];
#pragma unroll 1
    for (int i = 0; i < kPlaces; ++i) {
        Ranks corners[kCorners];
        bool alike = true;
#pragma unroll
        for (int k = 0; k < kCorners; ++k) {
            corners[k] = rows[k >> 1].at[k & 1];
            alike = alike && corners[k] == corners[0];
        }
#pragma unroll
        for (int k = 0; k < 2 * kLines; ++k)
#pragma unroll
            for (int n = 0; n < kPlaces; ++n) rows[k].at[n] = rows[k].at[n + 1];
        // If the corners are alike, all cells enter at one pair, where they add up to nothing.
        if (alike || x + i < kFirst || x + i > pairs.width) continue;
        if (kCubes)
            add_cubes(corners, bins);
        else
            add_vertices(corners, bins);
    }
}

// A thread takes four places of the last corner of a unit cube and moves from slice to slice.
extern "C" __global__ void __launch_bounds__(ECC_THREADS) surface(const Surface pairs) {
    extern __shared__ uint4 memory[];
    const int image = blockIdx.x / pairs.blocks, block = blockIdx.x % pairs.blocks;
    const int second = pairs.levels[1] + 1, size = kShared ? (pairs.levels[0] + 1) * second : 0;
    Count* const counts = pairs.counts + (long long)image * (pairs.levels[0] + 1) * second;
    int* const shared = (int*)memory;
    const SurfaceBins bins = {kShared ? computed_once(shared_address(shared)) : 0, counts, second};
    for (int i = threadIdx.x; i < size; i += ECC_THREADS) shared[i] = 0;
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
        SurfaceRow before[kLines], after[kLines];
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
        if (shared[i]) atomicAdd(counts + i, (Count)(long long)shared[i]);
}
