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
        at[2] = index % sides[2];
        at[1] = index / sides[2] % sides[1];
        at[0] = index / sides[2] / sides[1];
    }
    // Returns the point whose weight a cell has, the first of equal ones, or -1 if the cell is not in the
    // object.
    __device__ long long owner(const Real* image, const int* vertex, int extent) const {
        int first[3], last[3];
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            const bool corners = cubes && axis >= 3 - ECC_AXES;
            first[axis] = vertex[axis] - (corners ? 1 - bit(extent, axis) : 0);
            last[axis] = vertex[axis] + (corners ? 0 : bit(extent, axis));
            if (!cubes && (first[axis] < 0 || last[axis] >= sides[axis])) return -1;
            first[axis] = max(first[axis], 0);
            last[axis] = min(last[axis], sides[axis] - 1);
        }
        long long found = -1;
        Real best = 0;
        for (int z = first[0]; z <= last[0]; ++z)
            for (int y = first[1]; y <= last[1]; ++y)
                for (int x = first[2]; x <= last[2]; ++x) {
                    const long long at = ((long long)z * sides[1] + y) * sides[2] + x;
                    const Real weight = image[at];
                    if (weight == 0) {
                        if (cubes) continue;
                        return -1;
                    }
                    if (found < 0 || (greatest ? weight > best : weight < best)) {
                        best = weight;
                        found = at;
                    }
                }
        return found;
    }
};

// Writes the sums (images, orthants, vertices) of the signed values of the cells of which a vertex is the
// highest, for one vertex of an image.
ECC_DEVICE void write_orthants(const Orthants& cells, long long index, Real* out) {
    if (index >= cells.images * cells.vertices) return;
    const long long image = index / cells.vertices, vertex = index % cells.vertices;
    const Real* weights = cells.weights + image * cells.size;
    int at[3];
    Orthants::places(vertex, cells.grid, at);
    Real sums[kOrthants] = {};
#pragma unroll
    for (int extent = 0; extent < kExtents; ++extent)
#pragma unroll
        for (int upper = 0; upper < kExtents; ++upper) {
            // `upper` are the axes along which the vertex is an upper end of the cell.
            if (upper & ~extent) continue;
            int lowest[3];
#pragma unroll
            for (int axis = 0; axis < 3; ++axis)
                lowest[axis] = at[axis] - Orthants::bit(upper, axis);
            const long long owner = cells.owner(weights, lowest, extent);
            if (owner < 0) continue;
            const Real own = weights[owner];
            const Real value = isinf(own) ? own - own : own;  // Infinities become NaN in all sums.
#pragma unroll
            for (int orthant = 0; orthant < kOrthants; ++orthant)
                if ((~orthant & extent) == upper)
                    sums[orthant] += __popc(extent) & 1 ? -value : value;
        }
#pragma unroll
    for (int orthant = 0; orthant < kOrthants; ++orthant)
        out[(image * kOrthants + orthant) * cells.vertices + vertex] = sums[orthant];
}

// Writes the gradients (images, *sides) of the weights by those of the sums, for one point of an image.
ECC_DEVICE void write_weight_gradients(const Orthants& cells, long long index, const Real* upstream,
                                       Real* out) {
    if (index >= cells.images * cells.size) return;
    const long long image = index / cells.size, point = index % cells.size;
    const Real* weights = cells.weights + image * cells.size;
    upstream += image * kOrthants * cells.vertices;
    int at[3];
    Orthants::places(point, cells.sides, at);
    Real total = 0;
    if (weights[point] != 0)
#pragma unroll
        for (int extent = 0; extent < kExtents; ++extent) {
            // These are the axes along which two cells of this extent have the point.
            const int choices = cells.cubes ? ~extent & (kExtents - 1) : extent;
#pragma unroll
            for (int other = 0; other < kExtents; ++other) {
                if (other & ~choices) continue;
                int lowest[3];
#pragma unroll
                for (int axis = 0; axis < 3; ++axis)
                    lowest[axis] = at[axis] + (cells.cubes ? 1 : -1) * Orthants::bit(other, axis);
                if (cells.owner(weights, lowest, extent) != point) continue;
                Real sum = 0;
#pragma unroll
                for (int orthant = 0; orthant < kOrthants; ++orthant) {
                    const int upper = ~orthant & extent;
                    long long vertex = 0;
#pragma unroll
                    for (int axis = 0; axis < 3; ++axis)
                        vertex =
                            vertex * cells.grid[axis] + lowest[axis] + Orthants::bit(upper, axis);
                    sum += upstream[orthant * cells.vertices + vertex];
                }
                total += __popc(extent) & 1 ? -sum : sum;
            }
        }
    out[index] = total;
}
