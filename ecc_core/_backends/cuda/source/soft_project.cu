// Soft curves of the heights of weighted points in several directions, and their gradients.
//
// Sums run over all points and levels directly, without windows or tables. Each block writes the sums of
// a chunk of points, and these are added in order, so results do not depend on the schedule.
#include "sigmoid.cuh"

constexpr int kThreads = ECC_THREADS, kAxes = ECC_AXES;

struct ProjectedPoints {
    const Real* weights;  // (images, orthants, points)
    const Real* vectors;  // (count, axes)
    const Real *levels, *sharpness;
    long long points;
    int grid[3];
    int directions_count, levels_count;
    int chunk;  // points per block

    // Indices relative to the centre.
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
    // Negative components have bits, the first axis the highest.
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

// Levels that threads take at a time, and the parts into which those that take one level divide the points:
// both are powers of two, whose product is the number of threads.
struct Division {
    int levels, count;

    ECC_DEVICE explicit Division(int wanted) : levels(1) {
        while (levels < wanted && levels < kThreads) levels *= 2;
        count = kThreads / levels;
    }
};

// Sums of the parts of a block, in order, for the threads of the first part; called by all.
ECC_DEVICE double sum_of_parts(double value, const Division& parts, double* scratch) {
    __syncthreads();
    scratch[threadIdx.x] = value;
    __syncthreads();
    if ((int)threadIdx.x >= parts.levels) return 0;
    for (int part = 1; part < parts.count; ++part)
        value += scratch[part * parts.levels + threadIdx.x];
    return value;
}

// Partial sums (chunks, 3, images, directions, levels) of the curves and of their derivatives by the level
// and by the sharpness.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_project(const ProjectedPoints points, double* partial) {
    __shared__ Real heights[kThreads], weights[kThreads];
    __shared__ double scratch[kThreads];
    const int direction = blockIdx.y, image = blockIdx.z, images = gridDim.z;
    const long long begin = (long long)blockIdx.x * points.chunk,
                    end = min(begin + points.chunk, points.points);
    const Real l = points.sharpness[0];
    const long long size = (long long)images * points.directions_count * points.levels_count;
    const Division parts(points.levels_count);
    const int part = threadIdx.x / parts.levels;
    for (int first = 0; first < points.levels_count; first += parts.levels) {
        const int j = first + threadIdx.x % parts.levels;
        const Real level = j < points.levels_count ? points.levels[j] : 0;
        double sum = 0, by_level = 0, by_sharpness = 0;
        for (long long tile = begin; tile < end; tile += kThreads) {
            const long long point = tile + threadIdx.x;
            __syncthreads();
            weights[threadIdx.x] = point < end ? points.weight(image, direction, point) : 0;
            Real at[kAxes];
            points.places(point, at);
            heights[threadIdx.x] = points.height(direction, at);
            __syncthreads();
            Real a = 0, b = 0, c = 0;
            for (int i = part; i < kThreads; i += parts.count) {
                if (weights[i] == 0) continue;
                const Real distance = level - heights[i];
                const Sigmoid s(l * distance);
                a += weights[i] * s.s;
                b += weights[i] * s.slope;
                c += weights[i] * s.slope * distance;
            }
            sum += a;
            by_level += b;
            by_sharpness += c;
        }
        sum = sum_of_parts(sum, parts, scratch);
        by_level = sum_of_parts(by_level, parts, scratch);
        by_sharpness = sum_of_parts(by_sharpness, parts, scratch);
        if ((int)threadIdx.x < parts.levels && j < points.levels_count) {
            const long long at = ((long long)blockIdx.x * 3 * images + image) *
                                     points.directions_count * points.levels_count +
                                 (long long)direction * points.levels_count + j;
            partial[at] = sum;
            partial[at + size] = by_level * (double)l;
            partial[at + 2 * size] = by_sharpness;
        }
    }
}

// Adds up the sums of a block, and writes them.
ECC_DEVICE void write_block_sums(double (&sums)[kAxes], double* out) {
    __shared__ double scratch[kAxes][kThreads / 32];
    __syncthreads();  // the sums of the last time have been read
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

// A level, and the gradient of the curve there.
struct Step {
    Real level, gradient;
};

// The gradients of weights, where they are wanted, and partial sums (chunks, images, directions, axes) of
// those of vectors, where these are. A block takes a chunk of points in all directions of an orthant.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_by_points(const ProjectedPoints points, const Real* gradients, Real* by_weights,
                   double* partial) {
    __shared__ Step steps[kThreads];
    const int orthant = blockIdx.y, image = blockIdx.z;
    const long long begin = (long long)blockIdx.x * points.chunk,
                    end = min(begin + points.chunk, points.points);
    const long long block = ((long long)image * (1 << kAxes) + orthant) * points.points;
    const Real l = points.sharpness[0];
    const Real* const weights = points.weights + block;
    if (by_weights) by_weights += block;
    bool is_first = true;
    for (int k = 0; k < points.directions_count; ++k) {
        if (points.orthant(k) != orthant) continue;
        const long long row = (long long)image * points.directions_count + k;
        double sums[kAxes] = {};
        for (int first = 0; first < points.levels_count; first += kThreads) {
            const int count = min(points.levels_count - first, kThreads);
            __syncthreads();
            if ((int)threadIdx.x < count)
                steps[threadIdx.x] = {points.levels[first + threadIdx.x],
                                      gradients[row * points.levels_count + first + threadIdx.x]};
            __syncthreads();
            for (long long point = begin + threadIdx.x; point < end; point += kThreads) {
                const Real weight = weights[point];
                if (weight == 0 && !by_weights) continue;
                Real at[kAxes], sum = 0, slope = 0;
                points.places(point, at);
                const Real height = points.height(k, at);
                for (int j = 0; j < count; ++j) {
                    const Sigmoid s(l * (steps[j].level - height));
                    sum += steps[j].gradient * s.s;
                    slope += steps[j].gradient * s.slope;
                }
                if (by_weights) by_weights[point] = is_first ? sum : by_weights[point] + sum;
#pragma unroll
                for (int axis = 0; axis < kAxes; ++axis)
                    sums[axis] -= weight * l * slope * at[axis];
            }
            is_first = false;
        }
        if (partial)
            write_block_sums(
                sums,
                partial +
                    ((long long)blockIdx.x * gridDim.z * points.directions_count + row) * kAxes);
    }
    if (!is_first || !by_weights) return;
    for (long long point = begin + threadIdx.x; point < end; point += kThreads)
        by_weights[point] = 0;
}

// The sums of partial sums (chunks, gridDim.y, size), one array for each block of y.
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
