// Weights of vertices by orthant of the direction, which decides a cell's highest vertex, and the
// gradients of the weights of points.
//
// Images of fewer than three axes have leading sides of 1. Vertices are the points, or the corners of their
// cubes. A cell is given by its lowest vertex and its extent: the axes along which it extends, a bit for
// each, of which that of the last axis is the lowest.
#pragma once

#include "common.cuh"

typedef ECC_REAL Real;
constexpr int kThreads = ECC_THREADS;
constexpr int kExtents = 1 << ECC_AXES;
constexpr int kOrthants = kExtents;  // The bits of an orthant are the negative components.

struct Orthants {
    const Real* weights;       // (images, *sides)
    long long size, vertices;  // The number of points and of vertices of an image.
    int sides[3], grid[3];
    int images, cubes, greatest;  // greatest: whether a cell has the weight of its greatest point.

    ECC_DEVICE static int bit(int extent, int axis) { return extent >> (2 - axis) & 1; }

    ECC_DEVICE static void places(long long index, const int* sides, int* at) {
        at[2] = split_off(index, sides[2]);
        at[1] = split_off(index, sides[1]);
        at[0] = (int)index;
    }

    // Returns the weight of a point, or 0 for one outside of the image.
    ECC_DEVICE Real weight(const Real* image, int z, int y, int x) const {
        const bool inside =
            (unsigned)z < sides[0] && (unsigned)y < sides[1] && (unsigned)x < sides[2];
        return inside ? image[((long long)z * sides[1] + y) * sides[2] + x] : 0;
    }
};

// The points of a cell along each axis, as offsets from first to last.
struct CellPoints {
    int first[3], last[3];

    // Finds the points of a cell by the offset of its lowest vertex. With cubes, points are those whose
    // cubes have the cell; their first corners are the vertices of the same index.
    ECC_DEVICE CellPoints(const int* lowest, int extent, bool cubes) {
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            const bool exists = axis >= 3 - ECC_AXES, extends = Orthants::bit(extent, axis);
            first[axis] = lowest[axis] - (cubes && exists && !extends);
            last[axis] = lowest[axis] + (!cubes && extends);
        }
    }
    ECC_DEVICE bool have(int z, int y, int x) const {
        return first[0] <= z && z <= last[0] && first[1] <= y && y <= last[1] && first[2] <= x &&
               x <= last[2];
    }
};

// The weights of points around one, or around a vertex, at offsets from -1 to 1 along each axis that an
// image has.
struct Around {
    static constexpr int kSides[3] = {ECC_AXES > 2 ? 3 : 1, ECC_AXES > 1 ? 3 : 1, 3};
    Real weights[kSides[0] * kSides[1] * kSides[2]];

    static ECC_DEVICE constexpr int index(int z, int y, int x) {
        return ((z + kSides[0] / 2) * kSides[1] + y + kSides[1] / 2) * 3 + x + 1;
    }
    ECC_DEVICE Around(const Orthants& cells, const Real* image, const int* at) {
#pragma unroll
        for (int z = -(kSides[0] / 2); z <= kSides[0] / 2; ++z)
#pragma unroll
            for (int y = -(kSides[1] / 2); y <= kSides[1] / 2; ++y)
#pragma unroll
                for (int x = -1; x <= 1; ++x)
                    weights[index(z, y, x)] = cells.weight(image, at[0] + z, at[1] + y, at[2] + x);
    }
    // Returns whether a cell is in the object; then finds the weight that it has, and whether that is of the
    // point in the middle, which is the first of equal ones. A cell of cubes has those of the object
    // only, others are not in the object without all of their points.
    ECC_DEVICE bool find(const CellPoints& points, bool cubes, bool greatest, Real& best,
                         bool& is_middle) const {
        bool found = false, is_whole = true;
        // All bounds are known to the compiler, so that weights stay in registers.
#pragma unroll
        for (int z = -(kSides[0] / 2); z <= kSides[0] / 2; ++z)
#pragma unroll
            for (int y = -(kSides[1] / 2); y <= kSides[1] / 2; ++y)
#pragma unroll
                for (int x = -1; x <= 1; ++x) {
                    if (!points.have(z, y, x)) continue;
                    const Real weight = weights[index(z, y, x)];
                    is_whole = is_whole && weight != 0;
                    if (weight == 0 || (found && !(greatest ? weight > best : weight < best)))
                        continue;
                    found = true;
                    best = weight;
                    is_middle = z == 0 && y == 0 && x == 0;
                }
        return found && (cubes || is_whole);
    }
};

// Finds the sums of the signed values of the cells of which a vertex is the highest, by orthant.
template <bool cubes>
ECC_DEVICE void find_sums(const Around& around, bool greatest, Real (&sums)[kOrthants]) {
#pragma unroll
    for (int extent = 0; extent < kExtents; ++extent)
#pragma unroll
        for (int upper = 0; upper < kExtents; ++upper) {
            // `upper` are the axes along which the vertex is an upper end of the cell.
            if (upper & ~extent) continue;
            const int lowest[3] = {-Orthants::bit(upper, 0), -Orthants::bit(upper, 1),
                                   -Orthants::bit(upper, 2)};
            Real own = 0;
            bool is_middle;
            const CellPoints points(lowest, extent, cubes);
            if (!around.find(points, cubes, greatest, own, is_middle)) continue;
            const Real value = isinf(own) ? own - own : own;  // Infinities become NaN in all sums.
#pragma unroll
            for (int orthant = 0; orthant < kOrthants; ++orthant)
                if ((~orthant & extent) == upper)
                    sums[orthant] += __popc(extent) & 1 ? -value : value;
        }
}

// Writes the sums (images, orthants, vertices) of the signed values of the cells of which a vertex is the
// highest, for one vertex of an image.
ECC_DEVICE void write_orthants(const Orthants& cells, long long index, Real* out) {
    if (index >= cells.images * cells.vertices) return;
    const long long image = quotient(index, cells.vertices);
    const long long vertex = index - image * cells.vertices;
    int at[3];
    Orthants::places(vertex, cells.grid, at);
    const Around around(cells, cells.weights + image * cells.size, at);
    Real sums[kOrthants] = {};
    if (cells.cubes)
        find_sums<true>(around, cells.greatest, sums);
    else
        find_sums<false>(around, cells.greatest, sums);
#pragma unroll
    for (int orthant = 0; orthant < kOrthants; ++orthant)
        out[(image * kOrthants + orthant) * cells.vertices + vertex] = sums[orthant];
}

// Returns the gradient of the weight of a point by those of the sums of an image.
template <bool cubes>
ECC_DEVICE Real find_gradient(const Orthants& cells, const Around& around, const int* at,
                              const Real* upstream) {
    const long long steps[3] = {(long long)cells.grid[1] * cells.grid[2], cells.grid[2], 1};
    upstream += at[0] * steps[0] + at[1] * steps[1] + at[2];
    Real total = 0;
#pragma unroll
    for (int extent = 0; extent < kExtents; ++extent) {
        // These are the axes along which two cells of this extent have the point.
        const int choices = cubes ? ~extent & (kExtents - 1) : extent;
#pragma unroll
        for (int other = 0; other < kExtents; ++other) {
            if (other & ~choices) continue;
            int lowest[3];
#pragma unroll
            for (int axis = 0; axis < 3; ++axis)
                lowest[axis] = (cubes ? 1 : -1) * Orthants::bit(other, axis);
            Real best = 0;
            bool is_middle = false;
            const CellPoints points(lowest, extent, cubes);
            if (!around.find(points, cubes, cells.greatest, best, is_middle) || !is_middle)
                continue;
            Real sum = 0;
#pragma unroll
            for (int orthant = 0; orthant < kOrthants; ++orthant) {
                const int upper = ~orthant & extent;
                long long vertex = 0;
#pragma unroll
                for (int axis = 0; axis < 3; ++axis)
                    vertex += (lowest[axis] + Orthants::bit(upper, axis)) * steps[axis];
                sum += upstream[orthant * cells.vertices + vertex];
            }
            total += __popc(extent) & 1 ? -sum : sum;
        }
    }
    return total;
}

// Writes the gradients (images, *sides) of the weights by those of the sums, for one point of an image.
ECC_DEVICE void write_weight_gradients(const Orthants& cells, long long index, const Real* upstream,
                                       Real* out) {
    if (index >= cells.images * cells.size) return;
    const long long image = quotient(index, cells.size), point = index - image * cells.size;
    const Real* weights = cells.weights + image * cells.size;
    upstream += image * kOrthants * cells.vertices;
    if (weights[point] == 0) {
        out[index] = 0;
        return;
    }
    int at[3];
    Orthants::places(point, cells.sides, at);
    const Around around(cells, weights, at);
    out[index] = cells.cubes ? find_gradient<true>(cells, around, at, upstream)
                             : find_gradient<false>(cells, around, at, upstream);
}
