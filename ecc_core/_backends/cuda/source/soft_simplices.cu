// Soft transforms of batches of simplicial complexes, and their gradients.
//
// A point has a height and a coefficient in each direction: the signed weights of the simplices that it is
// the last point of. A curve is a sum over points. Lanes have neighbouring directions. Sums run over
// all points and levels, without windows or tables.
#include "sigmoid.cuh"

constexpr int kWarps = ECC_THREADS / 32;
constexpr int kLevels = 4;  // that a lane sums at a time

struct SoftShapes {
    const Real* points;   // (count, axes)
    const Real* weights;  // (count,), or null if all weigh 1
    const Real* vectors;  // (directions, axes)
    const Real *levels, *sharpness;
    const long long* batch;    // the shape of each point
    const long long* members;  // points in the order of their shapes, or null if they are in order
    const long long* rows[8];  // simplices of each size
    long long counts[8];
    int sizes[8];
    int kinds;
    int axes, directions, levels_count;
    long long count, shapes;
    Real* heights;       // (count, directions)
    Real* coefficients;  // likewise

    ECC_DEVICE long long member(long long i) const { return members ? members[i] : i; }
};

// A thread's items: every so many of those of the grid.
struct Items {
    long long at, step;

    ECC_DEVICE Items()
        : at((long long)blockIdx.x * blockDim.x + threadIdx.x),
          step((long long)gridDim.x * blockDim.x) {}
};

ECC_DEVICE bool is_finite(Real value) { return value - value == 0; }

// Sets bit 0 of `state` if a kernel must not run with these arguments, and bit 1 if points are not in the
// order of their shapes.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    check_shapes(const SoftShapes given, int* state) {
    int found = 0;
    const auto refuse_unless = [&](bool valid) { found |= valid ? 0 : 1; };
    for (Items item; item.at < given.count * given.axes; item.at += item.step)
        refuse_unless(is_finite(given.points[item.at]));
    for (Items item; item.at < given.count; item.at += item.step) {
        const long long shape = given.batch[item.at];
        if (given.weights) refuse_unless(is_finite(given.weights[item.at]));
        refuse_unless(shape >= 0 && shape < given.shapes);
        if (item.at && given.batch[item.at - 1] > shape) found |= 2;
    }
    for (Items item; item.at < (long long)given.directions * given.axes; item.at += item.step)
        refuse_unless(is_finite(given.vectors[item.at]));
    for (Items item; item.at < given.levels_count; item.at += item.step)
        refuse_unless(given.levels[item.at] == given.levels[item.at]);
    const Real sharpness = *given.sharpness;
    refuse_unless(sharpness > 0 && is_finite(sharpness));
    for (int kind = 0; kind < given.kinds; ++kind) {
        const int size = given.sizes[kind];
        for (Items item; item.at < given.counts[kind] * size; item.at += item.step) {
            const long long start = item.at / size * size;
            const long long first = given.rows[kind][start];
            const long long own = given.rows[kind][item.at];
            for (long long before = start; before < item.at; ++before)
                refuse_unless(given.rows[kind][before] != own);
            const bool inside = own >= 0 && own < given.count && first >= 0 && first < given.count;
            refuse_unless(inside && given.batch[own] == given.batch[first]);
        }
    }
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

// The last point of a simplex in a direction.
ECC_DEVICE long long last_point(const SoftShapes& given, const long long* row, int size,
                                int direction) {
    long long last = row[0];
    Real highest = given.heights[last * given.directions + direction];
    for (int j = 1; j < size; ++j) {
        const Real other = given.heights[row[j] * given.directions + direction];
        if (other < highest) continue;
        last = row[j];
        highest = other;
    }
    return last;
}

// The first of the heaviest points of a simplex.
ECC_DEVICE long long heaviest_point(const SoftShapes& given, const long long* row, int size) {
    long long heaviest = row[0];
    for (int j = 1; j < size; ++j)
        if (given.weights[heaviest] < given.weights[row[j]]) heaviest = row[j];
    return heaviest;
}

// Adds the signed weight of each simplex to the coefficient of its last point.
extern "C" __global__ void __launch_bounds__(ECC_THREADS) add_simplices(const SoftShapes given) {
    for (int kind = 0; kind < given.kinds; ++kind) {
        const int size = given.sizes[kind];
        const Real sign = size % 2 ? 1 : -1;
        for (Items item; item.at < given.counts[kind] * given.directions; item.at += item.step) {
            const long long* const row = given.rows[kind] + item.at / given.directions * size;
            const int direction = (int)(item.at % given.directions);
            const Real weight =
                given.weights ? given.weights[heaviest_point(given, row, size)] : (Real)1;
            const long long last = last_point(given, row, size, direction);
            atomicAdd(given.coefficients + last * given.directions + direction, sign * weight);
        }
    }
}

// The number of members whose shape comes before one.
ECC_DEVICE long long first_member(const SoftShapes& given, long long shape) {
    long long low = 0, high = given.count;
    while (low < high) {
        const long long middle = (low + high) >> 1;
        if (given.batch[given.member(middle)] < shape)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Writes sums over a chunk of the points of a shape, (chunks, shapes, directions, levels). The axes
// of the grid are chunks, groups of 32 directions, and shapes.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_curves(const SoftShapes given, double* sums) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int direction = blockIdx.y * 32 + lane;
    const Real l = *given.sharpness;
    if (direction >= given.directions) return;
    for (long long shape = blockIdx.z; shape < given.shapes; shape += gridDim.z) {
        const long long begin = first_member(given, shape), end = first_member(given, shape + 1);
        for (int first = warp * kLevels; first < given.levels_count; first += kWarps * kLevels) {
            double totals[kLevels] = {};
            for (long long i = begin + blockIdx.x; i < end; i += gridDim.x) {
                const long long at = given.member(i) * given.directions + direction;
                const Real height = given.heights[at], coefficient = given.coefficients[at];
                if (coefficient == 0) continue;
#pragma unroll
                for (int j = 0; j < kLevels; ++j) {
                    const Real level = given.levels[min(first + j, given.levels_count - 1)];
                    totals[j] += coefficient * Sigmoid(l * (level - height)).s;
                }
            }
            const long long line =
                ((long long)blockIdx.x * given.shapes + shape) * given.directions + direction;
#pragma unroll
            for (int j = 0; j < kLevels; ++j)
                if (first + j < given.levels_count)
                    sums[line * given.levels_count + first + j] = totals[j];
        }
    }
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

// Writes sums over a chunk of all points and directions, (chunks, levels, 2): the gradient of a level, and its
// part of the gradient of the sharpness. `upstream` is that of `differentiate`, and the axes of the grid are
// chunks and levels.
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
        __syncthreads();  // the last level has been written
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
