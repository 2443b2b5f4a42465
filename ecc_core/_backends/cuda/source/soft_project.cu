// Soft curves of the heights of weighted points in several directions, and their gradients.
//
// Sums run over all points and levels, without windows or tables. Each block writes the sums of a chunk of
// points, and these are added in order, so that results do not depend on the schedule. The sigmoids of a
// direction depend only on points and levels, so that a block computes them once for several images.
#include "sigmoid.cuh"
#include "soft_totals.cuh"

constexpr int kThreads = ECC_THREADS, kAxes = ECC_AXES;
constexpr int kImages = ECC_IMAGES;  // Images of a block.
constexpr int kMostChunks = 8;       // The most chunks of points whose sums the last block adds up.
constexpr int kTogether = 4;         // Points of a thread at once, to hide the latency of sigmoids.

struct ProjectedPoints {
    const Real* weights;  // (images, orthants, points)
    const Real* vectors;  // (count, axes)
    const Real *levels, *sharpness;
    long long points;
    int grid[3];
    int images, directions_count, levels_count;
    int chunk;  // Points of a block of `soft_project`.

    // Finds the indices of a point relative to the centre.
    ECC_DEVICE void places(long long point, Real* at) const {
#pragma unroll
        for (int axis = kAxes - 1; axis >= 0; --axis) {
            const int index = point % grid[axis];
            point /= grid[axis];
            at[axis] = (Real)(index - (grid[axis] - 1) / 2.0);
        }
    }
    ECC_DEVICE Real height(int direction, const Real* at) const {
        Real sum = 0;
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis)
            sum += vectors[direction * kAxes + axis] * at[axis];
        return sum;
    }
    // Returns the orthant of a direction: a bit for each negative component, the highest for the first
    // axis.
    ECC_DEVICE int orthant(int direction) const {
        int bits = 0;
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis)
            bits = 2 * bits + (vectors[direction * kAxes + axis] < 0);
        return bits;
    }
    ECC_DEVICE Real weight(int image, int direction, long long point) const {
        return weights[((long long)image * (1 << kAxes) + orthant(direction)) * points + point];
    }
};

// The number of levels that the threads of a block take at a time, and the number of parts into which the
// threads of one level divide the points. Both are powers of two, whose product is the number of threads.
struct Division {
    int levels, count;

    ECC_DEVICE explicit Division(int wanted) : levels(1) {
        while (levels < wanted && levels < kThreads) levels *= 2;
        count = kThreads / levels;
    }
};

// Returns the sums over the parts of a block, in order, in the threads of the first part. Called by all
// threads.
ECC_DEVICE double sum_of_parts(double value, const Division& parts, double* scratch) {
    __syncthreads();
    scratch[threadIdx.x] = value;
    __syncthreads();
    if ((int)threadIdx.x >= parts.levels) return 0;
    for (int part = 1; part < parts.count; ++part)
        value += scratch[part * parts.levels + threadIdx.x];
    return value;
}

// The weights of a point in the images of a block, which are read together.
struct alignas(sizeof(Real) * (kImages < 4 ? kImages : 4)) Weights {
    Real of[kImages];
};

// The sums of an image over the points that a thread takes.
template <class Number>
struct Sums {
    Number curve, by_level, by_sharpness;
};

// The results: curves (images, directions, levels), and their derivatives by the level and by the
// sharpness.
struct Projected {
    Real *curves, *slopes, *spreads;

    // Adds up the sums of all chunks, in order, for a direction and the images of a block. It is not
    // inlined, since the sums of chunks need all registers.
    __device__ __noinline__ void add_chunks(const double* partial, int chunks, int images,
                                            int directions, int levels) const {
        const int direction = blockIdx.y, first_image = blockIdx.z * kImages;
        const int own = min(kImages, images - first_image) * levels;
        const long long size = (long long)images * directions * levels;
        for (int i = threadIdx.x; i < 3 * own; i += kThreads) {
            const int kind = i / own, image = first_image + i % own / levels;
            const long long at = ((long long)image * directions + direction) * levels + i % levels;
            double parts[kMostChunks];  // All are read before they are added.
#pragma unroll
            for (int chunk = 0; chunk < kMostChunks; ++chunk)
                parts[chunk] = chunk < chunks ? partial[(3LL * chunk + kind) * size + at] : 0;
            double total = 0;
#pragma unroll
            for (int chunk = 0; chunk < kMostChunks; ++chunk) total += parts[chunk];
            (kind == 0 ? curves : kind == 1 ? slopes : spreads)[at] = (Real)total;
        }
    }
};

// Writes partial sums (chunks, 3, images, directions, levels) of the results. With tickets (groups of
// images, directions), which are zero at launch, the last block of a direction and of its images adds them
// up.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_project(const ProjectedPoints points, double* partial, unsigned* tickets,
                 const Projected found) {
    __shared__ Real heights[kThreads];
    __shared__ Weights weights[kThreads];
    __shared__ unsigned has_weight[kThreads / kTogether];  // A byte for each point.
    __shared__ double scratch[kThreads];
    const int direction = blockIdx.y, first_image = blockIdx.z * kImages;
    const int images = points.images;
    const long long begin = (long long)blockIdx.x * points.chunk,
                    end = min(begin + points.chunk, points.points);
    const Real l = points.sharpness[0];
    const long long size = (long long)images * points.directions_count * points.levels_count;
    const Division parts(points.levels_count);
    const int part = threadIdx.x / parts.levels;
    for (int first = 0; first < points.levels_count; first += parts.levels) {
        const int j = first + threadIdx.x % parts.levels;
        const Real level = j < points.levels_count ? points.levels[j] : 0;
        Sums<double> totals[kImages] = {};
        for (long long tile = begin; tile < end; tile += kThreads) {
            const long long point = tile + threadIdx.x;
            __syncthreads();
            bool is_needed = false;
#pragma unroll
            for (int k = 0; k < kImages; ++k) {
                const bool inside = point < end && first_image + k < images;
                const Real own = inside ? points.weight(first_image + k, direction, point) : 0;
                weights[threadIdx.x].of[k] = own;
                is_needed = is_needed || own != 0;
            }
            ((unsigned char*)has_weight)[threadIdx.x] = is_needed;
            Real at[kAxes];
            points.places(point, at);
            heights[threadIdx.x] = points.height(direction, at);
            __syncthreads();
            Sums<Real> sums[kImages] = {};
            for (int i = kTogether * part; i < kThreads; i += kTogether * parts.count) {
                if (has_weight[i / kTogether] == 0) continue;
#pragma unroll
                for (int own = i; own < i + kTogether; ++own) {
                    const Weights weight = weights[own];
                    const Real distance = level - heights[own];
                    const Sigmoid s(l * distance);
                    const Real by_sharpness = s.slope * distance;
#pragma unroll
                    for (int k = 0; k < kImages; ++k) {
                        sums[k].curve += weight.of[k] * s.s;
                        sums[k].by_level += weight.of[k] * s.slope;
                        sums[k].by_sharpness += weight.of[k] * by_sharpness;
                    }
                }
            }
#pragma unroll
            for (int k = 0; k < kImages; ++k) {
                totals[k].curve += sums[k].curve;
                totals[k].by_level += sums[k].by_level;
                totals[k].by_sharpness += sums[k].by_sharpness;
            }
        }
        const bool writes = (int)threadIdx.x < parts.levels && j < points.levels_count;
#pragma unroll
        for (int k = 0; k < kImages; ++k) {
            if (first_image + k >= images) break;
            const double curve = sum_of_parts(totals[k].curve, parts, scratch);
            const double by_level = sum_of_parts(totals[k].by_level, parts, scratch);
            const double by_sharpness = sum_of_parts(totals[k].by_sharpness, parts, scratch);
            if (!writes) continue;
            const long long row =
                (long long)(first_image + k) * points.directions_count + direction;
            const long long at = (long long)blockIdx.x * 3 * size + row * points.levels_count + j;
            partial[at] = curve;
            partial[at + size] = by_level * (double)l;
            partial[at + 2 * size] = by_sharpness;
        }
    }
    if (!tickets) return;
    __shared__ bool is_last;
    __threadfence();  // Other blocks read the sums from memory.
    __syncthreads();
    unsigned* ticket = tickets + blockIdx.z * points.directions_count + direction;
    if (threadIdx.x == 0) is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    found.add_chunks(partial, gridDim.x, images, points.directions_count, points.levels_count);
}

// Adds up the sums of a block, and writes them.
ECC_DEVICE void write_block_sums(double (&sums)[kAxes], double* out) {
    __shared__ double scratch[kAxes][kThreads / 32];
    __syncthreads();  // All threads have read the sums of the call before.
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) {
        const double own = warp_sum(sums[axis]);
        if (threadIdx.x % 32 == 0) scratch[axis][threadIdx.x / 32] = own;
    }
    __syncthreads();
    if (threadIdx.x >= kAxes) return;
    double total = 0;
    for (int warp = 0; warp < kThreads / 32; ++warp) total += scratch[threadIdx.x][warp];
    out[threadIdx.x] = total;
}

// The gradients of the loss by the curves of the images of a block at a level.
typedef Weights Gradients;

// Writes the gradients of weights and partial sums (chunks, rows, directions, axes) of the gradients of
// vectors, where they are wanted. There is a row for each image if `by_image`, otherwise one for the images
// of a block. A block takes a chunk of points in all directions of an orthant. Further blocks along z,
// behind those of the images, write the gradients of levels and sharpness.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_by_points(const ProjectedPoints points, const Real* gradients, Real* by_weights,
                   double* partial, int chunk, int by_image, const Totals totals) {
    __shared__ Real levels[kThreads];
    __shared__ Gradients steps[kThreads];
    const int groups = (points.images + kImages - 1) / kImages;
    if ((int)blockIdx.z >= groups) {
        totals.write(((blockIdx.z - groups) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
        return;
    }
    const int orthant = blockIdx.y, first_image = blockIdx.z * kImages;
    const int images = min(points.images - first_image, kImages);
    const long long begin = (long long)blockIdx.x * chunk, end = min(begin + chunk, points.points);
    const long long between_images = points.points << kAxes;
    const long long block = first_image * between_images + orthant * points.points;
    const Real l = points.sharpness[0];
    const Real* const weights = points.weights + block;
    if (by_weights) by_weights += block;
    bool is_first = true;
    for (int k = 0; k < points.directions_count; ++k) {
        if (points.orthant(k) != orthant) continue;
        double sums[kImages][kAxes] = {};
        for (int first = 0; first < points.levels_count; first += kThreads) {
            const int count = min(points.levels_count - first, kThreads);
            __syncthreads();
            if ((int)threadIdx.x < count) {
                levels[threadIdx.x] = points.levels[first + threadIdx.x];
#pragma unroll
                for (int image = 0; image < kImages; ++image) {
                    const long long row =
                        (long long)(first_image + image) * points.directions_count + k;
                    steps[threadIdx.x].of[image] =
                        image < images ? gradients[row * points.levels_count + first + threadIdx.x]
                                       : 0;
                }
            }
            __syncthreads();
            for (long long point = begin + threadIdx.x; point < end; point += kThreads) {
                Real own[kImages];
                bool is_empty = !by_weights;
#pragma unroll
                for (int image = 0; image < kImages; ++image) {
                    own[image] = image < images ? weights[image * between_images + point] : 0;
                    is_empty = is_empty && own[image] == 0;
                }
                if (is_empty) continue;
                Real at[kAxes], curve[kImages] = {}, slope[kImages] = {};
                points.places(point, at);
                const Real height = points.height(k, at);
#pragma unroll 4
                for (int j = 0; j < count; ++j) {
                    const Sigmoid s(l * (levels[j] - height));
                    const Gradients upstream = steps[j];
#pragma unroll
                    for (int image = 0; image < kImages; ++image) {
                        curve[image] += upstream.of[image] * s.s;
                        slope[image] += upstream.of[image] * s.slope;
                    }
                }
#pragma unroll
                for (int image = 0; image < kImages; ++image) {
                    if (by_weights && image < images) {
                        Real* const to = by_weights + image * between_images + point;
                        *to = is_first ? curve[image] : *to + curve[image];
                    }
#pragma unroll
                    for (int axis = 0; axis < kAxes; ++axis)
                        sums[image][axis] -= own[image] * l * slope[image] * at[axis];
                }
            }
            is_first = false;
        }
        if (!partial) continue;
        const int rows = by_image ? points.images : groups;
        const int first_row = by_image ? first_image : blockIdx.z;
#pragma unroll
        for (int image = 0; image < kImages; ++image) {
            if (!by_image && image + 1 < kImages) {
#pragma unroll
                for (int axis = 0; axis < kAxes; ++axis) sums[image + 1][axis] += sums[image][axis];
                continue;
            }
            if (by_image && image >= images) break;
            const long long row = (long long)blockIdx.x * rows + first_row + (by_image ? image : 0);
            write_block_sums(sums[image], partial + (row * points.directions_count + k) * kAxes);
        }
    }
    if (!is_first || !by_weights) return;
    for (long long point = begin + threadIdx.x; point < end; point += kThreads)
        for (int image = 0; image < images; ++image) by_weights[image * between_images + point] = 0;
}

// Adds up partial sums (chunks, gridDim.y, size) over chunks; blocks of each y write an array.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_total(const double* partial, Real* first, Real* second, Real* third, long long size,
               int chunks) {
    const long long index = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (index >= size) return;
    double total = 0;
    for (int chunk = 0; chunk < chunks; ++chunk)
        total += partial[((long long)chunk * gridDim.y + blockIdx.y) * size + index];
    (blockIdx.y == 0 ? first : blockIdx.y == 1 ? second : third)[index] = (Real)total;
}
