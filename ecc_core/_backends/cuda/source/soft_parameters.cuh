// Computes levels, sharpness and vectors from the parameters of a layer, which have no constraints, and the
// gradients of these parameters.
//
// Levels add up a first number, and then the softplus of the others, in units of a step. The sharpness is
// given by its logarithm. The vector of a direction is the unit vector times the spacing of the grid, and
// times a scale if there are scales, which are given by their logarithms.
#pragma once

#include "increasing.cuh"

typedef ECC_REAL Real;
constexpr int kAxes = ECC_AXES;
constexpr int kWarpSize = 32;

struct Parameters {
    const Real *numbers, *step;           // Null without increasing levels.
    const Real* log_sharpness;            // Null if the sharpness is given.
    const Real *directions, *log_scales;  // (count, axes) and (count,); scales may be null
    double spacing[3];
    int levels, count;
};

ECC_DEVICE double scale_of(const Parameters& given, int k) {
    return given.log_scales ? exp((double)given.log_scales[k]) : 1;
}

// Returns the inverse of the length of a direction.
ECC_DEVICE double inverse_length(const Real* direction) {
    double square = 0;
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis)
        square += (double)direction[axis] * (double)direction[axis];
    return 1 / sqrt(square);
}

// Writes the vector of a direction.
ECC_DEVICE void write_vector(const Parameters& given, int k, Real* vector) {
    const Real* direction = given.directions + k * kAxes;
    const double factor = scale_of(given, k) * inverse_length(direction);
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis)
        vector[axis] = (Real)(direction[axis] * factor * given.spacing[axis]);
}

// Writes levels and sharpness by the first block, and the vector of a direction by each lane of the others.
// Called by a warp of each block.
ECC_DEVICE void write_parameters(const Parameters& given, int block, int lane, Real* levels,
                                 Real* sharpness, Real* vectors) {
    if (block == 0) {
        if (given.numbers) write_levels(given.numbers, given.step, given.levels, levels);
        if (given.log_sharpness && lane == 0)
            sharpness[0] = (Real)exp((double)given.log_sharpness[0]);
        return;
    }
    const int k = (block - 1) * kWarpSize + lane;
    if (k < given.count) write_vector(given, k, vectors + k * kAxes);
}

// The gradients of parameters, where they are wanted, by those of levels and sharpness, and by sums of the
// gradients of the vectors, (rows, count, axes).
struct ParameterGradients {
    const Real *by_level, *by_sharpness;
    const double* partial;
    Real *by_number, *by_log_sharpness, *by_direction, *by_log_scale;
    long long rows;

    // Writes the gradients of levels and sharpness by the first block, and those of a direction by each of
    // the others. Called by a warp of each block.
    ECC_DEVICE void write(const Parameters& given, int block, int lane) const {
        if (block == 0) {
            if (by_number)
                write_number_gradients(given.numbers, given.step, given.levels, by_level,
                                       by_number);
            if (by_log_sharpness && lane == 0)
                by_log_sharpness[0] =
                    (Real)((double)by_sharpness[0] * exp((double)given.log_sharpness[0]));
            return;
        }
        if (!by_direction && !by_log_scale) return;
        const int k = block - 1;
        const Real* direction = given.directions + k * kAxes;
        double slopes[kAxes] = {};
        for (int row = lane; row < rows; row += kWarpSize) {
#pragma unroll
            for (int axis = 0; axis < kAxes; ++axis)
                slopes[axis] += partial[((long long)row * given.count + k) * kAxes + axis];
        }
        const double inverse = inverse_length(direction);
        double along = 0;
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis) {
            slopes[axis] = warp_sum(slopes[axis]) * given.spacing[axis];
            along += slopes[axis] * direction[axis] * inverse;
        }
        if (lane) return;
        const double scale = scale_of(given, k);
        if (by_log_scale) by_log_scale[k] = (Real)(along * scale);
        if (!by_direction) return;
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis) {
            const double across = slopes[axis] - along * direction[axis] * inverse;
            by_direction[k * kAxes + axis] = (Real)(across * inverse * scale);
        }
    }
};
