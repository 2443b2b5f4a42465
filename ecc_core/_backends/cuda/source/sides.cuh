// How the scanning kernels of single samples see the two sides of a warp.
#pragma once
#include "events.cuh"
#include "tiling.cuh"

// A lane gets the sample right of its own from the next lane. Comparisons across the two sides of a
// warp are made apart: lane 31 - 4 r makes those of row r with the column left of the warp, lane 30
// - 4 r those with the column right of it, so that one ballot puts them (nearly) where lanes 0 and
// 31 need them.
__device__ __forceinline__ int side_row(int lane) { return (31 - lane) >> 2; }

__device__ __forceinline__ int side_column(int lane, int left, int width) {
    return lane & 1 ? max(left - 1, 0) : min(left + kWarpWidth, width) - 1;
}

__device__ __forceinline__ plane ballot_before(Key a, Key b) {
    plane bit = 0;
    push(bit, a, b);
    return __ballot_sync(kWarp, bit);
}

__device__ __forceinline__ Key from_right(Key key) { return __shfl_down_sync(kWarp, key, 1); }

struct Sides {
    plane left;   // lane 0: what it sees left of its first column
    plane right;  // lane 31: the bits of its last column
};

__device__ __forceinline__ Sides sides(plane ballot, bool first) {
    return {first ? (kCubes ? ~0u : 0u) : ballot, ballot >> 2};
}

// Own comparisons with the right neighbours, completed; `last_lane` is kLastColumn in lane 31 and 0
// elsewhere.
__device__ __forceinline__ plane complete(plane bits, Sides sides, plane last_lane,
                                          plane last_column) {
    return force((bits & ~last_lane) | (sides.right & last_lane), last_column);
}

__device__ __forceinline__ plane from_left(plane bits, Sides sides, int lane) {
    const plane other = __shfl_up_sync(kWarp, bits, 1) << 3;
    return left_of(bits, lane == 0 ? sides.left : other);
}

// Notices a NaN, and an infinity too: the host then looks again. Zero times either is NaN.
struct FiniteCheck {
    float sum = 0.0f;
    __device__ __forceinline__ void see(float v) { sum = multiply_add(v, 0.0f, sum); }
    __device__ __forceinline__ void see(double v) { see((float)v); }
    __device__ __forceinline__ void see(int) {}
    __device__ __forceinline__ void see(long long) {}
    __device__ __forceinline__ bool failed() const { return sum != sum; }
};
