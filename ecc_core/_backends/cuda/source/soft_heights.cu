// Adds the heights of points along directions to images, and computes the gradients of images and vectors.
//
// The height of a point is the product of a vector and the point's index relative to the centre.
#include "soft_parameters.cuh"

// The points of images (images, grid).
struct Grid {
    long long points;
    int images, chunk;  // chunk: the points of a block that sums.
    int sides[4];

    ECC_DEVICE void places(long long point, Real* at) const {
#pragma unroll
        for (int axis = kAxes - 1; axis >= 0; --axis) {
            const int index = split_off(point, sides[axis]);
            at[axis] = (Real)(index - (sides[axis] - 1) / 2.0);
        }
    }
};

// Writes images (images, count, grid). Each point and direction has a thread, which takes all images.
extern "C" __global__ void soft_add_heights(const Grid grid, const Real* image, Real* out,
                                            const Parameters given) {
    __shared__ Real vector[kAxes];
    const long long point = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int k = blockIdx.y, count = gridDim.y;
    if (threadIdx.x == 0) write_vector(given, k, vector);
    __syncthreads();
    if (point >= grid.points) return;
    Real at[kAxes], height = 0;
    grid.places(point, at);
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) height += vector[axis] * at[axis];
    for (int i = 0; i < grid.images; ++i)
        out[((long long)i * count + k) * grid.points + point] =
            image[i * grid.points + point] + height;
}

// Writes the sum of the gradients over the directions, for one point of an image.
ECC_DEVICE void write_total(const Grid& grid, long long index, const Real* gradients, Real* out,
                            int count) {
    if (index >= grid.images * grid.points) return;
    const long long image = quotient(index, grid.points), point = index - image * grid.points;
    double total = 0;
    for (int k = 0; k < count; ++k) total += gradients[(image * count + k) * grid.points + point];
    out[index] = (Real)total;
}

// Writes partial sums (chunks, count, axes) of the gradients of the vectors, for one direction and chunk.
// Called by a block.
ECC_DEVICE void write_sums(const Grid& grid, int k, int chunk, const Real* gradients,
                           double* partial, int count) {
    __shared__ double scratch[kAxes][ECC_THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long begin = (long long)chunk * grid.chunk,
                    end = min(begin + grid.chunk, grid.points);
    double sums[kAxes] = {};
    for (long long point = begin + threadIdx.x; point < end; point += ECC_THREADS) {
        double total = 0;
        for (int i = 0; i < grid.images; ++i)
            total += gradients[((long long)i * count + k) * grid.points + point];
        Real at[kAxes];
        grid.places(point, at);
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis) sums[axis] += total * at[axis];
    }
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) {
        const double own = warp_sum(sums[axis]);
        if (lane == 0) scratch[axis][warp] = own;
    }
    __syncthreads();
    if (threadIdx.x >= kAxes) return;
    double total = 0;
    for (int other = 0; other < ECC_THREADS / 32; ++other) total += scratch[threadIdx.x][other];
    partial[((long long)chunk * count + k) * kAxes + threadIdx.x] = total;
}

// Writes the gradients of images; each point of an image has a thread.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    soft_height_totals(const Grid grid, const Real* gradients, Real* out, int count) {
    write_total(grid, (long long)blockIdx.x * ECC_THREADS + threadIdx.x, gradients, out, count);
}

// Writes partial sums of the gradients of vectors; each chunk of points and direction has a block.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    soft_height_sums(const Grid grid, const Real* gradients, double* partial, int count) {
    write_sums(grid, blockIdx.x % count, blockIdx.x / count, gradients, partial, count);
}

// Writes both; the first `sums` blocks write partial sums.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    soft_height_gradients(const Grid grid, const Real* gradients, Real* out, double* partial,
                          int count, int sums) {
    const int block = (int)blockIdx.x - sums;
    if (block < 0)
        write_sums(grid, blockIdx.x % count, blockIdx.x / count, gradients, partial, count);
    else
        write_total(grid, (long long)block * ECC_THREADS + threadIdx.x, gradients, out, count);
}
