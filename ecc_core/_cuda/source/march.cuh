// What the two marching kernels share: the left border of a warp and the forced bits at the image's borders.
#pragma once
#include "events.cuh"

constexpr unsigned kWarp = 0xFFFFFFFFu;
constexpr int kWarpWidth = 32 * kLaneWidth;

// How an image is cut into units of work. A unit spans kWarpWidth columns and `chunk` steps of the march.
struct Tiling {
    int across;  // units along x
    int down;    // 3-D: units along y
    int chunk;   // 2-D: rows, a multiple of kLaneRows; 3-D: slices
    int first, last;  // the rows or slices that count; those beyond are there as neighbours only
};

// A comparison with the sample beyond the border, as the construction has it: V has no such cell, and T's outer
// faces belong to the border.
__device__ __forceinline__ plane force(plane bits, plane border) { return kDual ? bits & ~border : bits | border; }

// Comparisons across the first column of a warp are made by lane 31 - 4 r for row r, so that one ballot puts them
// where lane 0 needs them.
__device__ __forceinline__ int border_row(int lane) { return (31 - lane) >> 2; }

__device__ __forceinline__ plane ballot_before(Key a, Key b) {
    plane bit = 0;
    push(bit, a, b);
    return __ballot_sync(kWarp, bit);
}

__device__ __forceinline__ plane from_left(plane bits, plane border, int lane) {
    const plane other = __shfl_up_sync(kWarp, bits, 1) << 3;
    return left_of(bits, lane == 0 ? border : other);
}

// Notices a NaN, and an infinity too: the host then looks again. Zero times either is NaN.
struct FiniteCheck {
    float sum = 0.0f;
    __device__ __forceinline__ void see(float v) { sum = __fmaf_rn(v, 0.0f, sum); }
    __device__ __forceinline__ void see(double v) { see((float)v); }
    __device__ __forceinline__ void see(int) {}
    __device__ __forceinline__ void see(long long) {}
    __device__ __forceinline__ void report(int* flag) const { if (kNan == kNanReport && sum != sum) *flag = 1; }
};
