// The places of windows in images.
#pragma once
#include "common.cuh"

constexpr int kAxes = ECC_AXES;

struct WindowGrid {
    long long images;
    int sides[4], positions[4];  // Sides of an image, and the number of windows along each axis.
    int before[4];               // How far the first window begins before the image.
    int side, stride;            // The side of windows, and the distance from window to window.

    // Replaces the index of a point of windows (images, positions, side to the power of the axes) by that
    // of the point of the images. Returns whether there is one.
    ECC_DEVICE bool find_point(long long& index) const {
        int at[kAxes];
#pragma unroll
        for (int axis = kAxes - 1; axis >= 0; --axis) at[axis] = split_off(index, side);
#pragma unroll
        for (int axis = kAxes - 1; axis >= 0; --axis)
            at[axis] += split_off(index, positions[axis]) * stride - before[axis];
        bool inside = true;
#pragma unroll
        for (int axis = 0; axis < kAxes; ++axis) {
            inside = inside && at[axis] >= 0 && at[axis] < sides[axis];
            index = index * sides[axis] + at[axis];
        }
        return inside;
    }
};
