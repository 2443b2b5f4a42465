// Batches of simplicial complexes, and functions that kernels of their soft transforms share.
//
// In each direction, a point has a height and a coefficient, which is the sum of the signed weights of the
// simplices whose last point it is. A curve is a sum over points. Lanes have neighbouring directions. Sums
// run over all points and levels, without windows or tables.
#pragma once

#include "sigmoid.cuh"

constexpr int kWarps = ECC_THREADS / 32;
constexpr int kLevels = 4;  // Levels that a lane sums at a time.

struct SoftShapes {
    const Real* points;   // (count, axes)
    const Real* weights;  // (count,), or null if all weigh 1
    const Real* vectors;  // (directions, axes)
    const Real *levels, *sharpness;
    const long long* batch;    // The shape of each point.
    const long long* members;  // Points in the order of their shapes, or null if they are in order.
    const long long* rows[8];  // Simplices of each size.
    long long counts[8];
    int sizes[8];
    int kinds;
    int axes, directions, levels_count;
    long long count, shapes;
    Real* heights;       // (count, directions)
    Real* coefficients;  // (count, directions)

    ECC_DEVICE long long member(long long i) const { return members ? members[i] : i; }
};

// The items of a thread: `step` threads take turns.
struct Items {
    long long at, step;

    ECC_DEVICE Items()
        : at((long long)blockIdx.x * blockDim.x + threadIdx.x),
          step((long long)gridDim.x * blockDim.x) {}
};

ECC_DEVICE bool is_finite(Real value) { return value - value == 0; }

// Flags: arguments that kernels must not take, and points that are not in the order of their shapes.
constexpr int kRefused = 1, kUnsorted = 2;

// Returns the flags of the points, shapes and simplices that a thread looks at.
ECC_DEVICE int check_complexes(const SoftShapes& given) {
    int found = 0;
    const auto refuse_unless = [&](bool valid) { found |= valid ? 0 : kRefused; };
    for (Items item; item.at < given.count * given.axes; item.at += item.step)
        refuse_unless(is_finite(given.points[item.at]));
    for (Items item; item.at < given.count; item.at += item.step) {
        const long long shape = given.batch[item.at];
        if (given.weights) refuse_unless(is_finite(given.weights[item.at]));
        refuse_unless(shape >= 0 && shape < given.shapes);
        if (item.at && given.batch[item.at - 1] > shape) found |= kUnsorted;
    }
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
    return found;
}

// Returns the last point of a simplex in a direction.
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

// Returns the first of the heaviest points of a simplex.
ECC_DEVICE long long heaviest_point(const SoftShapes& given, const long long* row, int size) {
    long long heaviest = row[0];
    for (int j = 1; j < size; ++j)
        if (given.weights[heaviest] < given.weights[row[j]]) heaviest = row[j];
    return heaviest;
}

// Adds the signed weight of each simplex to the coefficient of its last point.
ECC_DEVICE void add_simplices_of(const SoftShapes& given) {
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

// Returns the number of points whose shape comes before a shape.
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

// Writes the sums of curves over a chunk of the points of a shape, (shapes, directions, levels). Lanes have
// neighbouring directions, from a first one on, and warps have different levels.
template <class Number>
ECC_DEVICE void sum_chunk(const SoftShapes& given, long long shape, int chunk, int chunks,
                          int first_direction, Number* sums) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int direction = first_direction + lane;
    if (direction >= given.directions) return;
    const Real l = *given.sharpness;
    const long long begin = first_member(given, shape), end = first_member(given, shape + 1);
    for (int first = warp * kLevels; first < given.levels_count; first += kWarps * kLevels) {
        double totals[kLevels] = {};
        for (long long i = begin + chunk; i < end; i += chunks) {
            const long long at = given.member(i) * given.directions + direction;
            const Real height = given.heights[at], coefficient = given.coefficients[at];
            if (coefficient == 0) continue;
#pragma unroll
            for (int j = 0; j < kLevels; ++j) {
                const Real level = given.levels[min(first + j, given.levels_count - 1)];
                totals[j] += coefficient * Sigmoid(l * (level - height)).s;
            }
        }
        const long long line = shape * given.directions + direction;
#pragma unroll
        for (int j = 0; j < kLevels; ++j)
            if (first + j < given.levels_count)
                sums[line * given.levels_count + first + j] = (Number)totals[j];
    }
}
