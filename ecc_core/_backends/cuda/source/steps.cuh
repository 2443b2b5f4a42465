// From comparisons with the neighbours in a row to coefficients, sixteen rows a lane.
#pragma once
#include "tiling.cuh"

// What lane 0 sees left of its first column, and the bits of the last column of lane 31: bit i is
// row i - 1.
struct PairSides {
    unsigned left, right;
};

// Which columns beside a warp the image does not have. V has no such cells, and T's outer faces belong
// to the border: so V takes them for larger than any other, T for smaller, in the order of ownership.
struct Outside {
    bool left, right;
    __device__ __forceinline__ Outside(int first, int width)
        : left(first == 0), right(first + kWarpWidth >= width) {}
};

// Coefficients of rows without the rows beside them.
struct Steps : Trits {
    __device__ __forceinline__ Steps(plane plus, plane minus) : Trits{plus, minus} {}
    // What is taken away where these rows are maxima.
    __device__ __forceinline__ Trits taken(plane where) const {
        return {minus & where, plus & where};
    }
};

// A lane's place in the image.
struct Place {
    int lane;
    unsigned last_lane;  // of word b: the last column of the last lane, of the warp or the image
    plane last_column;   // of the image, which with kVector is the last one of a lane

    __device__ __forceinline__ Place(int lane, int x, int width)
        : lane(lane),
          last_lane(lane == 31 || (kVector && x + kLaneWidth >= width) ? 0xFFFF0000u : 0u),
          last_column(kVector ? kNone : column_bits(width - x) & ~column_bits(width - 1 - x)) {}

    // The samples that lie in the image.
    __device__ __forceinline__ static plane columns(int x, int width) {
        if (!kVector) return column_bits(width - x);
        return x < width ? kAll : kNone;
    }

    // From comparisons with the right neighbours the coefficients of rows by themselves. `shift`: 15,
    // or 16 for the rows before.
    __device__ __forceinline__ Steps steps(plane bits, PairSides sides, int shift) const {
        bits.b = (bits.b & ~last_lane) | (sides.right << shift & last_lane);
        if (!kVector) bits = force(bits, last_column);
        const unsigned other = __shfl_up_sync(kWarp, bits.b, 1);
        const plane left = left_of(bits, lane == 0 ? sides.left << shift : other);
        return {bits & ~left, ~bits & left};
    }
};
