// The signed histogram of the pairs of ranks at which cells enter, of two images that have been recoded
// (docs/design/surface.md). A thread has one point at a time: the cells between it and its neighbours
// one step on. Sets of axes, and corners of the box of neighbours, are numbers with one bit an axis.
typedef ECC_CODE Code;
typedef unsigned long long Count;

constexpr int kAxes = ECC_FLAT ? 2 : 3, kCorners = 1 << kAxes;
constexpr bool kCubes = ECC_CUBES;
constexpr bool kShared = ECC_SHARED;  // whether bins are counted in shared memory
constexpr int kHalf = sizeof(Code) == 1 ? 8 : sizeof(Code) == 2 ? 16 : 30;  // bits of a rank

template <int size>
struct KeyOf {
    typedef unsigned long long type;
};
template <>
struct KeyOf<1> {
    typedef unsigned type;
};
// First rank, second rank and corner.
typedef KeyOf<sizeof(Code)>::type Key;
constexpr Key kRank = ((Key)1 << kHalf) - 1;

struct Pairs {
    const Code* data[2];
    Count* counts;  // (images, levels + 1 of the first, levels + 1 of the second)
    int levels[2];
    int reversed[2];  // superlevels: ranks are levels less codes
    int depth, height, width, blocks;
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

// Each cell enters at the largest ranks of its vertices; two of opposite signs at one pair cancel.
__device__ __forceinline__ void add_vertices(int (&k)[kCorners], int (&l)[kCorners],
                                             const Bins& bins) {
    bool left[kCorners];
#pragma unroll
    for (int cell = 0; cell < kCorners; ++cell) left[cell] = true;
#pragma unroll
    for (int axis = 1; axis < kCorners; axis *= 2)
#pragma unroll
        for (int cell = 0; cell < kCorners; ++cell)
            if (cell & axis) {
                k[cell] = max(k[cell], k[cell ^ axis]);
                l[cell] = max(l[cell], l[cell ^ axis]);
            }
#pragma unroll
    for (int axis = 1; axis < kCorners; axis *= 2)
#pragma unroll
        for (int cell = 0; cell < kCorners; ++cell)
            if (!(cell & axis)) {
                const int other = cell | axis;
                const bool same = left[cell] && left[other] && k[cell] == k[other] &&
                                  l[cell] == l[other];
                left[cell] = left[cell] && !same;
                left[other] = left[other] && !same;
            }
#pragma unroll
    for (int cell = 0; cell < kCorners; ++cell)
        if (left[cell]) bins.add(k[cell], l[cell], sign_of(cell));
}

__device__ __forceinline__ void order(Key& a, Key& b) {
    const Key low = a < b ? a : b;
    b = a < b ? b : a;
    a = low;
}

// Each cell enters on the staircase of its cubes: in the order of their first ranks, a cube is a step
// where its second rank is the smallest so far, and steps have joins with those before.
__device__ __forceinline__ void add_cubes(const int (&k)[kCorners], const int (&l)[kCorners],
                                          const Bins& bins) {
    Key keys[kCorners];
#pragma unroll
    for (int i = 0; i < kCorners; ++i)
        keys[i] = ((Key)k[i] << kHalf | (Key)l[i]) << kAxes | (Key)i;
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

extern "C" __global__ void __launch_bounds__(ECC_THREADS) surface(const Pairs pairs) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.x / pairs.blocks, block = blockIdx.x % pairs.blocks;
    const int second = pairs.levels[1] + 1, size = kShared ? (pairs.levels[0] + 1) * second : 0;
    Count* const counts = pairs.counts + (long long)index * (pairs.levels[0] + 1) * second;
    const Bins bins = {(int*)memory, counts, second};
    for (int i = threadIdx.x; i < size; i += ECC_THREADS) bins.shared[i] = 0;
    __syncthreads();
    // With cubes there are cells before the first points too.
    const int before = kCubes ? 1 : 0, above = kCubes && kAxes == 3 ? 1 : 0;
    const int width = pairs.width + before, height = pairs.height + before;
    const long long points = (long long)(pairs.depth + above) * height * width;
    const long long image = (long long)index * pairs.depth * pairs.height * pairs.width;
    for (long long at = (long long)block * ECC_THREADS + threadIdx.x; at < points;
         at += (long long)pairs.blocks * ECC_THREADS) {
        const long long row = at / width;
        const int x = (int)(at - row * width) - before;
        const int z = (int)(row / height) - above, y = (int)(row % height) - before;
        int k[kCorners], l[kCorners];
        bool alike = true;
#pragma unroll
        for (int i = 0; i < kCorners; ++i) {
            const int u = x + (i & 1), v = y + (i >> 1 & 1), w = z + (i >> 2);
            const bool inside = u >= 0 && u < pairs.width && v >= 0 && v < pairs.height && w >= 0 &&
                                w < pairs.depth;
            k[i] = pairs.levels[0], l[i] = pairs.levels[1];
            if (inside) {
                const long long place =
                    image + ((long long)w * pairs.height + v) * pairs.width + u;
                const int a = pairs.data[0][place], b = pairs.data[1][place];
                k[i] = pairs.reversed[0] ? pairs.levels[0] - a : a;
                l[i] = pairs.reversed[1] ? pairs.levels[1] - b : b;
            }
            alike = alike && k[i] == k[0] && l[i] == l[0];
        }
        if (alike) continue;  // all cells at one pair, where they add up to nothing
        if (kCubes)
            add_cubes(k, l, bins);
        else
            add_vertices(k, l, bins);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += ECC_THREADS)
        if (bins.shared[i]) atomicAdd(counts + i, (Count)(long long)bins.shared[i]);
}
