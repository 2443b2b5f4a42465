// Soft transforms of batches of simplicial complexes in few launches: all points weigh 1, and are in the
// order of their shapes.
#include "soft_shapes.cuh"
#include "increasing.cuh"

constexpr int kFinishingThreads = 1024;

// The parameters from which levels, vectors and the sharpness follow.
struct ShapeParameters {
    const Real* directions;      // (directions, axes), of any length
    const Real* scale;           // Factor of heights.
    const Real *numbers, *step;  // Numbers of increasing levels; null if levels are given.
    const Real* sharpness;
    int is_logarithm;  // Whether scale and sharpness are given by their logarithms.

    ECC_DEVICE double positive(const Real* given) const {
        return is_logarithm ? exp((double)*given) : (double)*given;
    }
    ECC_DEVICE double inverse_length(int direction, int axes) const {
        double square = 0;
        for (int axis = 0; axis < axes; ++axis) {
            const double own = directions[direction * axes + axis];
            square += own * own;
        }
        return 1 / sqrt(square);
    }
};

// Writes vectors (directions, axes), levels unless they are given, the sharpness, heights, and 1 as the
// first coefficients; sets the flags of the arguments in `state`.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    begin_shapes(const SoftShapes given, const ShapeParameters from, Real* vectors, Real* levels,
                 Real* sharpness, int* state) {
    int found = check_complexes(given);
    const auto refuse_unless = [&](bool valid) { found |= valid ? 0 : kRefused; };
    const double scale = from.positive(from.scale);
    for (Items item; item.at < given.directions; item.at += item.step) {
        const double factor = scale * from.inverse_length((int)item.at, given.axes);
        for (int axis = 0; axis < given.axes; ++axis) {
            const long long at = item.at * given.axes + axis;
            vectors[at] = (Real)(from.directions[at] * factor);
            refuse_unless(is_finite(vectors[at]));
        }
    }
    const Real* const numbers = from.numbers ? from.numbers : given.levels;
    for (Items item; item.at < given.levels_count; item.at += item.step)
        refuse_unless(numbers[item.at] == numbers[item.at]);
    if (blockIdx.x == 0 && threadIdx.x < 32) {
        if (from.numbers) write_levels(from.numbers, from.step, given.levels_count, levels);
        const Real own = (Real)from.positive(from.sharpness);
        refuse_unless(own > 0 && is_finite(own));
        if (threadIdx.x == 0) *sharpness = own;
    }
    for (Items item; item.at < given.count * given.directions; item.at += item.step) {
        const long long point = item.at / given.directions;
        const int direction = (int)(item.at % given.directions);
        const double factor = scale * from.inverse_length(direction, given.axes);
        Real height = 0;
        for (int axis = 0; axis < given.axes; ++axis) {
            const Real vector = (Real)(from.directions[direction * given.axes + axis] * factor);
            height += given.points[point * given.axes + axis] * vector;
        }
        given.heights[item.at] = height;
        given.coefficients[item.at] = 1;
    }
    if (found) atomicOr(state, found);
}

// Adds the signs of simplices to the coefficients of their last points, unless there are flags.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    enter_simplices(const SoftShapes given, const int* state) {
    if (*state == 0) add_simplices_of(given);
}

// Writes curves (shapes, directions, levels), or with several chunks sums over the chunks of points of each
// shape, (chunks, shapes, directions, levels). Tells the host the flags, and clears them.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_shapes(const SoftShapes given, int* state, volatile long long* reply, double* sums,
               Real* curves, int chunks) {
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
        const int flags = *state;
        *state = 0;
        __threadfence_system();  // The host must not see the reply earlier.
        *reply = flags;
    }
    const long long size = given.shapes * given.directions * given.levels_count;
    for (long long unit = blockIdx.x; unit < given.shapes * chunks; unit += gridDim.x) {
        const long long shape = unit / chunks;
        const int chunk = (int)(unit % chunks), direction = 32 * blockIdx.y;
        if (chunks == 1)
            sum_chunk(given, shape, chunk, chunks, direction, curves);
        else
            sum_chunk(given, shape, chunk, chunks, direction, sums + chunk * size);
    }
}

// Adds up the sums of a block's warps, (warps, count), and writes them.
ECC_DEVICE void write_sums(const double* of_warps, int count, double* out) {
    for (int i = threadIdx.x; i < count; i += ECC_THREADS) {
        double total = 0;
        for (int warp = 0; warp < kWarps; ++warp) total += of_warps[warp * count + i];
        out[i] = total;
    }
}

// Writes the gradients of points, where they are wanted, by `upstream` (shapes, directions, levels). Also
// writes a row of sums for each block: gradients of levels without the factor of the sharpness, parts of
// the gradient of the sharpness by level, and gradients of vectors (directions, axes). A warp takes a point
// at a time, and its lanes the levels.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    differentiate_shapes(const SoftShapes given, const Real* upstream, Real* by_points,
                         double* rows) {
    extern __shared__ uint4 memory[];
    double* const of_warps = (double*)memory;  // (warps, columns)
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int levels = given.levels_count, axes = given.axes;
    const int columns = 2 * levels + given.directions * axes;
    for (int i = threadIdx.x; i < kWarps * columns; i += ECC_THREADS) of_warps[i] = 0;
    __syncthreads();
    double* const by_level = of_warps + warp * columns;
    double* const by_sharpness = by_level + levels;
    double* const by_vector = by_sharpness + levels;
    const Real l = *given.sharpness;
    for (long long point = blockIdx.x * kWarps + warp; point < given.count;
         point += gridDim.x * kWarps) {
        const Real place = lane < axes ? given.points[point * axes + lane] : 0;
        double by_point = 0;
        for (int k = 0; k < given.directions; ++k) {
            const Real coefficient = given.coefficients[point * given.directions + k];
            if (coefficient == 0) continue;
            const Real height = given.heights[point * given.directions + k];
            const long long line = (given.batch[point] * given.directions + k) * levels;
            double rate = 0;
            for (int j = lane; j < levels; j += 32) {
                const Real distance = given.levels[j] - height;
                const Real flow = upstream[line + j];
                const Real change = coefficient * flow * Sigmoid(l * distance).slope;
                rate += change;
                by_level[j] += change;
                by_sharpness[j] += change == 0 ? 0 : change * distance;
            }
            const double by_height = -l * warp_sum(rate);
            if (lane >= axes) continue;
            by_point += by_height * given.vectors[k * axes + lane];
            by_vector[k * axes + lane] += by_height * place;
        }
        if (by_points && lane < axes) by_points[point * axes + lane] = (Real)by_point;
    }
    __syncthreads();
    write_sums(of_warps, columns, rows + (long long)blockIdx.x * columns);
}

// Writes the gradients of levels, the sharpness, directions and the scale, where they are wanted, from the
// rows of `differentiate_shapes`, in one block.
extern "C" __global__ void __launch_bounds__(kFinishingThreads)
    finish_shapes(const SoftShapes given, const ShapeParameters from, const double* rows,
                  Real* by_levels, Real* by_sharpness, Real* by_directions, Real* by_scale,
                  int count) {
    extern __shared__ uint4 memory[];
    double* const totals = (double*)memory;  // (columns,); behind it the parts of warps
    constexpr int kRows = kFinishingThreads / 32;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int levels = given.levels_count, axes = given.axes;
    const int columns = 2 * levels + given.directions * axes;
    double* const parts = totals + columns;  // (warps, 32)
    for (int first = 0; first < columns; first += 32) {
        const int column = first + lane;
        double sum = 0;
        if (column < columns)
            for (int row = warp; row < count; row += kRows)
                sum += rows[(long long)row * columns + column];
        parts[threadIdx.x] = sum;
        __syncthreads();
        if (warp == 0 && column < columns) {
            double total = 0;
            for (int row = 0; row < kRows; ++row) total += parts[32 * row + lane];
            totals[column] = total;
        }
        __syncthreads();
    }
    const double l = *given.sharpness, scale = from.positive(from.scale);
    const double* const by_vector = totals + 2 * levels;
    double* const along = parts;  // (directions,), of which there are at most kFinishingThreads
    for (int k = threadIdx.x; k < given.directions; k += kFinishingThreads) {
        const double inverse = from.inverse_length(k, axes);
        double sum = 0;
        for (int axis = 0; axis < axes; ++axis)
            sum += by_vector[k * axes + axis] * from.directions[k * axes + axis] * inverse;
        along[k] = sum;
        if (!by_directions) continue;
        for (int axis = 0; axis < axes; ++axis) {
            const double unit = from.directions[k * axes + axis] * inverse;
            const double across = by_vector[k * axes + axis] - sum * unit;
            by_directions[k * axes + axis] = (Real)(across * scale * inverse);
        }
    }
    for (int j = threadIdx.x; j < levels; j += kFinishingThreads) totals[j] *= l;
    __syncthreads();
    if (warp == 0 && by_levels && from.numbers)
        write_number_gradients(from.numbers, from.step, levels, totals, by_levels);
    if (by_levels && !from.numbers)
        for (int j = threadIdx.x; j < levels; j += kFinishingThreads)
            by_levels[j] = (Real)totals[j];
    if (warp == 1 && by_sharpness) {
        double sum = 0;
        for (int j = lane; j < levels; j += 32) sum += totals[levels + j];
        sum = warp_sum(sum);
        if (lane == 0) *by_sharpness = (Real)(from.is_logarithm ? sum * l : sum);
    }
    if (warp == 2 && by_scale) {
        double sum = 0;
        for (int k = lane; k < given.directions; k += 32) sum += along[k];
        sum = warp_sum(sum);
        if (lane == 0) *by_scale = (Real)(from.is_logarithm ? sum * scale : sum);
    }
}
