// The transform of weights. The coefficient of a point is the sum of (-1)**dimension * weight over its
// cells, and hardly ever zero, so all points count. A warp takes a few rows: its lanes compute 32
// coefficients of each together, then each lane walks along one row in one direction. As heights
// rise or fall along a row, it adds up in registers what goes into one bin.
//
// Integer weights wrap as on the CPU. Sums of floats are kept in two integers, so that no order of
// addition matters: a coefficient is rounded to a multiple of 1 / first_scale, what remains to one
// of 1 / (first_scale * second_scale). The host chooses the scales so that no sum overflows.
#include "transform.cuh"

typedef ECC_WEIGHT Weight;
constexpr bool kShared = ECC_SHARED;  // levels and bins in shared memory
constexpr int kParts = ECC_PARTS;     // integers of a sum
constexpr int kWarps = ECC_THREADS / 32;
constexpr int kRows = 8;      // of a warp, at most
constexpr int kColumns = 32;  // of a row at a time
constexpr int kSegment = 256;  // columns of a unit of work

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7FFll << 52); }

struct Weights {
    const Weight* data;
    int slices, rows, columns;
    int closed;
    Weight absent;  // more than any weight
    double first_scale, second_scale;
    int sign;  // of the construction, 1 or -1
};

__device__ __forceinline__ Weight magnitude(Weight value) { return value < 0 ? -value : value; }

// A weight, or for T minus it; what is no part of the complex is no maximum (T), or makes one that
// is no cell (V).
__device__ __forceinline__ Weight load(const Weights& image, int z, int y, int x) {
    const Weight outside = image.closed ? -image.absent : image.absent;
    if (z < 0 || z >= image.slices || y < 0 || y >= image.rows || x < 0 || x >= image.columns)
        return outside;
    const Weight weight = image.data[((long long)z * image.rows + y) * image.columns + x];
    if (weight == 0) return outside;
    return image.closed ? -weight : weight;
}

struct Owner {
    Pair z, y, x;

    __device__ __forceinline__ Owner(int orthant, bool closed)
        : z(orthant & 4, closed), y(orthant & 2, closed), x(orthant & 1, closed) {}
};

__device__ __forceinline__ Weight cell(const Weights& image, Weight weight) {
    return magnitude(weight) < image.absent ? weight : 0;
}

// In a slice, from the maxima of two points along x of a row and of the row that cells span to.
__device__ __forceinline__ Weight in_slice(const Weights& image, Weight here, Weight far,
                                           Weight below, Weight far_below) {
    const Weight x = max(here, far), y = max(here, below), xy = max(max(x, below), far_below);
    return cell(image, here) - (cell(image, x) + cell(image, y)) + cell(image, xy);
}

// With the order of operations of the CPU.
__device__ __forceinline__ Weight coefficient(const Weights& image, const Grid& grid, const Owner& owner, int z,
                              int y, int x) {
    const int near_z = grid.z.present ? z + owner.z.here : 0;
    const int near_y = grid.y.present ? y + owner.y.here : 0;
    const int far_z = z + owner.z.far, far_y = grid.y.present ? y + owner.y.far : -1;
    const int near_x = x + owner.x.here, far_x = x + owner.x.far;
    const Weight here = load(image, near_z, near_y, near_x),
                 far = load(image, near_z, near_y, far_x),
                 below = load(image, near_z, far_y, near_x),
                 far_below = load(image, near_z, far_y, far_x);
    const Weight own = in_slice(image, here, far, below, far_below);
    if (!grid.z.present) return own;
    return own - in_slice(image, max(here, load(image, far_z, near_y, near_x)),
                          max(far, load(image, far_z, near_y, far_x)),
                          max(below, load(image, far_z, far_y, near_x)),
                          max(far_below, load(image, far_z, far_y, far_x)));
}

struct Parts {
    Sum part[kParts];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < kParts; ++i) part[i] = 0;
    }

    __device__ __forceinline__ bool any() const { return part[0] || part[kParts - 1]; }
};

__device__ __forceinline__ Parts split(const Weights& image, long long weight) {
    return {(Sum)(image.sign * weight)};
}

__device__ __forceinline__ Parts split(const Weights& image, double weight) {
    const double scaled = image.sign * weight * image.first_scale;
    const long long first = __double2ll_rn(scaled);
    const long long second = __double2ll_rn((scaled - (double)first) * image.second_scale);
    Parts parts;
    parts.part[0] = (Sum)first;
    parts.part[kParts - 1] = (Sum)second;
    return parts;
}

// Where a lane adds up: the bins of its direction, those of the parts so far apart.
struct Bins {
    Sum* first;
    long long apart;

    __device__ __forceinline__ void add(int bin, int count, const Parts& sum) const {
        if (bin < 0 || bin >= count || !sum.any()) return;
#pragma unroll
        for (int i = 0; i < kParts; ++i)
            if (sum.part[i]) atomicAdd(first + i * apart + bin, sum.part[i]);
    }
};

// The coefficients of a warp's rows, 32 columns of each; one column more keeps rows in other banks.
typedef Parts Tile[kRows][kColumns + 1];

// From row y of slice z on.
__device__ __forceinline__ void fill(const Weights& image, const Grid& grid, const Owner& owner,
                                     Tile& tile, int z, int y, int rows, int column) {
    const int x = column + (threadIdx.x & 31);
    for (int row = 0; row < rows; ++row) {
        Weight weight = 0;
        if (z < grid.z.points && x < grid.x.points)
            weight = coefficient(image, grid, owner, z, y, x);
        tile[row][threadIdx.x & 31] = split(image, weight);
        if (++y == grid.y.points) y = 0, ++z;
    }
}

// One lane's way along a row in a direction.
struct Walk {
    Parts sum;
    int bin;
    double above, upto;  // heights in the bin

    __device__ __forceinline__ void step(double height, const Parts& weight,
                                         const Sampling& sampling, const double* levels,
                                         const Bins& bins) {
        if (!(height > above && height <= upto)) {
            bins.add(bin, sampling.count, sum);
            sum.clear();
            bin = place(height, sampling, levels);
            above = bin > 0 ? levels[bin - 1] : -infinity();
            upto = bin < sampling.count ? levels[bin] : infinity();
        }
#pragma unroll
        for (int i = 0; i < kParts; ++i) sum.part[i] += weight.part[i];
    }
};

// `blocks` blocks do each job; `lanes` is the number of its directions, rounded up to a power of
// two.
extern "C" __global__ void __launch_bounds__(ECC_THREADS, 3)
    count_weights(const Weights image, const Grid grid, const Sampling sampling, Sum* values,
                  int blocks, int lanes) {
    extern __shared__ double memory[];
    __shared__ Tile tiles[kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, index = blockIdx.x / blocks;
    const Job job = sampling.jobs[index];
    const Owner owner(job.orthant, image.closed);
    const int directions = job.last - job.first, d = lane & (lanes - 1), row = lane / lanes;
    const int rows = min(kRows, 32 / lanes);
    const bool walks = d < directions && row < rows;
    const Vector u = sampling.directions[job.first + (walks ? d : 0)];
    const double* levels = sampling.levels;
    Sum* shared = (Sum*)(memory + sampling.count);
    const int bins_of_part = directions * sampling.count;
    if (kShared) {
        for (int i = threadIdx.x; i < sampling.count; i += blockDim.x) memory[i] = levels[i];
        for (int i = threadIdx.x; i < kParts * bins_of_part; i += blockDim.x) shared[i] = 0;
        levels = memory;
        __syncthreads();
    }
    const long long part = (long long)sampling.directions_count * sampling.count;
    const Bins bins = kShared ? Bins{shared + (walks ? d : 0) * sampling.count, bins_of_part}
                              : Bins{values + (long long)sampling.rows[job.first + (walks ? d : 0)] *
                                                  sampling.count,
                                     part};
    const long long lines = (long long)grid.z.points * grid.y.points;
    const int segments = (grid.x.points + kSegment - 1) / kSegment;
    const long long units = (lines + rows - 1) / rows * segments;
    for (long long unit = (long long)(blockIdx.x - index * blocks) * kWarps + warp; unit < units;
         unit += (long long)blocks * kWarps) {
        const long long group = unit / segments, line = group * rows;
        const int first = (int)(unit - group * segments) * kSegment;
        const int last = min(first + kSegment, grid.x.points);
        const int z = (int)(line / grid.y.points), y = (int)(line - (long long)z * grid.y.points);
        const int down = y + row, own_z = z + down / grid.y.points, own_y = down % grid.y.points;
        const double base = row_height(u, grid.z.position(own_z), grid.y.position(own_y));
        Walk walk = {{}, -1, infinity(), -infinity()};
        for (int column = first; column < last; column += kColumns) {
            fill(image, grid, owner, tiles[warp], z, y, rows, column);
            __syncwarp();
            const int end = walks && line + row < lines ? min(kColumns, last - column) : 0;
            for (int i = 0; i < end; ++i) {
                const double height = point_height(u, base, grid.x.position(column + i));
                walk.step(height, tiles[warp][row][i], sampling, levels, bins);
            }
            __syncwarp();
        }
        bins.add(walk.bin, sampling.count, walk.sum);
    }
    if (!kShared) return;
    __syncthreads();
    for (int i = threadIdx.x; i < kParts * bins_of_part; i += blockDim.x) {
        if (!shared[i]) continue;
        const int p = i / bins_of_part, rest = i - p * bins_of_part, own = rest / sampling.count;
        const long long target = (long long)sampling.rows[job.first + own] * sampling.count;
        atomicAdd(values + p * part + target + (rest - own * sampling.count), shared[i]);
    }
}
