// Weighted points whose heights in several directions have soft curves.
#pragma once
#include "sigmoid.cuh"

constexpr int kThreads = ECC_THREADS, kAxes = ECC_AXES;
constexpr int kImages = ECC_IMAGES;  // Images of a block.

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
            const int index = split_off(point, grid[axis]);
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
    ECC_DEVICE Real weight(int image, int orthant, long long point) const {
        return weights[((long long)image * (1 << kAxes) + orthant) * points + point];
    }
};

// The weights of a point in the images of a block, which are read together.
struct alignas(sizeof(Real) * (kImages < 4 ? kImages : 4)) Weights {
    Real of[kImages];
};
