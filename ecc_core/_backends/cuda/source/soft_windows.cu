// Copies windows of images, each to an image of its own, and computes the gradient of the images.
#include "soft_windows.cuh"

typedef ECC_REAL Real;

// Writes windows (images, positions, side to the power of the axes). A thread takes a point of a window.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    cut_windows(const WindowGrid grid, const Real* images, Real* windows, long long count,
                double fill) {
    long long index = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    if (index >= count) return;
    Real* const own = windows + index;
    const bool inside = grid.find_point(index);
    *own = inside ? images[index] : (Real)fill;
}

// Writes the gradients of images; each point adds up those of all windows that it is in.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    window_gradients(const WindowGrid grid, const Real* gradients, Real* out, long long count) {
    long long index = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    if (index >= count) return;
    Real* const own = out + index;
    int at[kAxes], first[kAxes], last[kAxes];
    long long total = 1;  // The number of windows that have the point.
#pragma unroll
    for (int axis = kAxes - 1; axis >= 0; --axis) {
        at[axis] = split_off(index, grid.sides[axis]) + grid.before[axis];
        const int least = at[axis] - grid.side + 1;
        first[axis] = least > 0 ? (least + grid.stride - 1) / grid.stride : 0;
        last[axis] = at[axis] < 0 ? -1 : min(at[axis] / grid.stride, grid.positions[axis] - 1);
        total *= max(last[axis] - first[axis] + 1, 0);
    }
    double sum = 0;
    for (long long k = 0; k < total; ++k) {
        long long rest = k, window = index, place = 0;
        int chosen[kAxes];
#pragma unroll
        for (int axis = kAxes - 1; axis >= 0; --axis)
            chosen[axis] = first[axis] + split_off(rest, last[axis] - first[axis] + 1);
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis) {
            window = window * grid.positions[axis] + chosen[axis];
            place = place * grid.side + at[axis] - chosen[axis] * grid.stride;
        }
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis) window *= grid.side;
        sum += gradients[window + place];
    }
    *own = (Real)sum;
}
