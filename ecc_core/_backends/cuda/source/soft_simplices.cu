// Soft transforms of batches of simplicial complexes, and their gradients, in steps between which torch
// computes.
#include "soft_shapes.cuh"

// Sets kRefused in `state` if a kernel must not run with these arguments, and kUnsorted if points are not
// in the order of their shapes.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    check_shapes(const SoftShapes given, int* state) {
    int found = check_complexes(given);
    const auto refuse_unless = [&](bool valid) { found |= valid ? 0 : kRefused; };
    for (Items item; item.at < (long long)given.directions * given.axes; item.at += item.step)
        refuse_unless(is_finite(given.vectors[item.at]));
    for (Items item; item.at < given.levels_count; item.at += item.step)
        refuse_unless(given.levels[item.at] == given.levels[item.at]);
    const Real sharpness = *given.sharpness;
    refuse_unless(sharpness > 0 && is_finite(sharpness));
    if (found) atomicOr(state, found);
}

// Writes heights, and the weights of points as their first coefficients.
extern "C" __global__ void __launch_bounds__(ECC_THREADS) project(const SoftShapes given) {
    for (Items item; item.at < given.count * given.directions; item.at += item.step) {
        const long long point = item.at / given.directions;
        const Real* const vector = given.vectors + item.at % given.directions * given.axes;
        Real height = 0;
        for (int axis = 0; axis < given.axes; ++axis)
            height += given.points[point * given.axes + axis] * vector[axis];
        given.heights[item.at] = height;
        given.coefficients[item.at] = given.weights ? given.weights[point] : (Real)1;
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS) add_simplices(const SoftShapes given) {
    add_simplices_of(given);
}

// Writes sums over a chunk of the points of a shape, (chunks, shapes, directions, levels). The axes
// of the grid are chunks, groups of 32 directions, and shapes.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_curves(const SoftShapes given, double* sums) {
    sums += blockIdx.x * given.shapes * given.directions * given.levels_count;
    for (long long shape = blockIdx.z; shape < given.shapes; shape += gridDim.z)
        sum_chunk(given, shape, blockIdx.x, gridDim.x, 32 * blockIdx.y, sums);
}

// Writes the sums over chunks (chunks, size) in order.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    add_chunks(const double* sums, long long size, int chunks, Real* found) {
    for (Items item; item.at < size; item.at += item.step) {
        double total = 0;
        for (int chunk = 0; chunk < chunks; ++chunk) total += sums[chunk * size + item.at];
        found[item.at] = (Real)total;
    }
}

// Writes the gradients of coefficients and of heights (count, directions) by `upstream`, which is (shapes,
// levels, directions).
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    differentiate(const SoftShapes given, const Real* upstream, Real* by_coefficients,
                  Real* by_heights) {
    const Real l = *given.sharpness;
    for (Items item; item.at < given.count * given.directions; item.at += item.step) {
        const long long point = item.at / given.directions;
        const Real* const own = upstream +
                                given.batch[point] * given.levels_count * given.directions +
                                item.at % given.directions;
        const Real height = given.heights[item.at];
        Real entered = 0, rate = 0;
        for (int j = 0; j < given.levels_count; ++j) {
            const Sigmoid step(l * (given.levels[j] - height));
            const Real flow = own[(long long)j * given.directions];
            entered += flow * step.s;
            rate += flow * step.slope;
        }
        by_coefficients[item.at] = entered;
        by_heights[item.at] = -l * given.coefficients[item.at] * rate;
    }
}

// Writes sums (chunks, levels, 2) over a chunk of all points and directions: the gradient of each level,
// and its part of the gradient of the sharpness. `upstream` is as in `differentiate`, and the axes of the
// grid are chunks and levels.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    differentiate_levels(const SoftShapes given, const Real* upstream, double* sums) {
    __shared__ double of_warps[kWarps][2];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const Real l = *given.sharpness;
    for (int j = blockIdx.y; j < given.levels_count; j += gridDim.y) {
        const Real level = given.levels[j];
        double by_level = 0, by_sharpness = 0;
        for (Items item; item.at < given.count * given.directions; item.at += item.step) {
            const long long shape = given.batch[item.at / given.directions];
            const Real flow = upstream[(shape * given.levels_count + j) * given.directions +
                                       item.at % given.directions];
            const Real distance = level - given.heights[item.at];
            const Real change = given.coefficients[item.at] * flow * Sigmoid(l * distance).slope;
            by_level += change * l;
            by_sharpness += change == 0 ? 0 : change * distance;
        }
        by_level = warp_sum(by_level);
        by_sharpness = warp_sum(by_sharpness);
        __syncthreads();  // The sums of the last level have been read.
        if (!lane) {
            of_warps[warp][0] = by_level;
            of_warps[warp][1] = by_sharpness;
        }
        __syncthreads();
        if (threadIdx.x < 2) {
            double total = 0;
            for (int i = 0; i < kWarps; ++i) total += of_warps[i][threadIdx.x];
            sums[((long long)blockIdx.x * given.levels_count + j) * 2 + threadIdx.x] = total;
        }
    }
}

// Adds the gradients of the weights of points and simplices to those of their heaviest points.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    differentiate_weights(const SoftShapes given, const Real* by_coefficients, double* by_weights) {
    for (Items item; item.at < given.count; item.at += item.step) {
        double total = 0;
        for (int direction = 0; direction < given.directions; ++direction)
            total += by_coefficients[item.at * given.directions + direction];
        atomicAdd(by_weights + item.at, total);
    }
    for (int kind = 0; kind < given.kinds; ++kind) {
        const int size = given.sizes[kind];
        for (Items item; item.at < given.counts[kind]; item.at += item.step) {
            const long long* const row = given.rows[kind] + item.at * size;
            double total = 0;
            for (int direction = 0; direction < given.directions; ++direction)
                total +=
                    by_coefficients[last_point(given, row, size, direction) * given.directions +
                                    direction];
            atomicAdd(by_weights + heaviest_point(given, row, size), size % 2 ? total : -total);
        }
    }
}
