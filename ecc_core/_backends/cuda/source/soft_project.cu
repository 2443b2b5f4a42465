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

// One thread for each level: partial sums (chunks, 3, images, directions, levels) of the curves and of
// their derivatives by the level and by the sharpness.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_project(const ProjectedPoints points, double* partial) {
    __shared__ Real heights[kThreads], weights[kThreads];
    const int direction = blockIdx.y, image = blockIdx.z, images = gridDim.z;
    const long long begin = (long long)blockIdx.x * points.chunk,
                    end = min(begin + points.chunk, points.points);
    const Real l = points.sharpness[0];
    const long long size = (long long)images * points.directions_count * points.levels_count;
    for (int first = 0; first < points.levels_count; first += kThreads) {
        const int j = first + threadIdx.x;
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
            for (int i = 0; i < kThreads; ++i) {
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
        if (j < points.levels_count) {
            const long long at = ((long long)blockIdx.x * 3 * images + image) *
                                     points.directions_count * points.levels_count +
                                 (long long)direction * points.levels_count + j;
            partial[at] = sum;
            partial[at + size] = by_level * (double)l;
            partial[at + 2 * size] = by_sharpness;
        }
    }
}

// One thread for each point of an image and orthant: the gradient of its weight.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_by_weights(const ProjectedPoints points, const Real* gradients, Real* out) {
    const int orthant = blockIdx.y, image = blockIdx.z;
    const long long point = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (point >= points.points) return;
    const Real l = points.sharpness[0];
    Real at[kAxes];
    points.places(point, at);
    double total = 0;
    for (int k = 0; k < points.directions_count; ++k) {
        if (points.orthant(k) != orthant) continue;
        const Real height = points.height(k, at);
        const Real* row =
            gradients + ((long long)image * points.directions_count + k) * points.levels_count;
        Real sum = 0;
        for (int j = 0; j < points.levels_count; ++j)
            sum += row[j] * Sigmoid(l * (points.levels[j] - height)).s;
        total += sum;
    }
    out[((long long)image * (1 << kAxes) + orthant) * points.points + point] = (Real)total;
}

ECC_DEVICE double block_sum(double value, double* scratch) {
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    double total = 0;
    for (int warp = 0; warp < kThreads / 32; ++warp) total += scratch[warp];
    return total;
}

// Partial sums (chunks, images, directions, axes) of the gradient of the vectors.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_by_vectors(const ProjectedPoints points, const Real* gradients, double* partial) {
    __shared__ double scratch[kThreads / 32];
    const int direction = blockIdx.y, image = blockIdx.z;
    const long long begin = (long long)blockIdx.x * points.chunk,
                    end = min(begin + points.chunk, points.points);
    const long long row = (long long)image * points.directions_count + direction;
    gradients += row * points.levels_count;
    const Real l = points.sharpness[0];
    double sums[kAxes] = {};
    for (long long point = begin + threadIdx.x; point < end; point += kThreads) {
        const Real weight = points.weight(image, direction, point);
        if (weight == 0) continue;
        Real at[kAxes];
        points.places(point, at);
        const Real height = points.height(direction, at);
        Real slope = 0;
        for (int j = 0; j < points.levels_count; ++j)
            slope += gradients[j] * Sigmoid(l * (points.levels[j] - height)).slope;
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis) sums[axis] -= weight * l * slope * at[axis];
    }
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) {
        const double total = block_sum(sums[axis], scratch);
        if (threadIdx.x == 0)
            partial[((long long)blockIdx.x * gridDim.z * points.directions_count + row) * kAxes +
                    axis] = total;
    }
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
