// Unit vectors along directions, in the spacing of a grid, and the gradients of the directions.
#include "common.cuh"

typedef ECC_REAL Real;
constexpr int kAxes = ECC_AXES;

// The inverse of the length of a direction.
ECC_DEVICE double inverse_length(const Real* direction) {
    double square = 0;
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis)
        square += (double)direction[axis] * (double)direction[axis];
    return 1 / sqrt(square);
}

// One thread for each direction.
extern "C" __global__ void soft_units(const Real* directions, Real* vectors, double first, double second,
                                      double third, int count) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    const double spacing[3] = {first, second, third};
    directions += k * kAxes;
    const double inverse = inverse_length(directions);
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis)
        vectors[k * kAxes + axis] = (Real)(directions[axis] * inverse * spacing[axis]);
}

// One warp for each direction. `partial` are sums of the gradients of the vectors, (rows, count, axes).
extern "C" __global__ void soft_unit_gradients(const Real* directions, const double* partial, Real* out,
                                               double first, double second, double third, int count,
                                               int rows) {
    const int k = blockIdx.x;
    const double spacing[3] = {first, second, third};
    directions += k * kAxes;
    double slopes[kAxes] = {};
    for (int row = threadIdx.x; row < rows; row += 32) {
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis)
            slopes[axis] += partial[((long long)row * count + k) * kAxes + axis];
    }
    const double inverse = inverse_length(directions);
    double along = 0;
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) {
        slopes[axis] = warp_sum(slopes[axis]) * spacing[axis];
        along += slopes[axis] * directions[axis] * inverse;
    }
    if (threadIdx.x) return;
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis)
        out[k * kAxes + axis] = (Real)((slopes[axis] - along * directions[axis] * inverse) * inverse);
}
