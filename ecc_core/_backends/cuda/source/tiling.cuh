// What all scanning kernels share: units of work, and the borders of the image.
#pragma once
#include "planes.cuh"

constexpr unsigned kWarp = 0xFFFFFFFFu;
constexpr int kWarpWidth = 32 * kLaneWidth;

// The same in every lane, in a way that the compiler sees.
__device__ __forceinline__ int uniform(int value) { return __shfl_sync(kWarp, value, 0); }

// How an image is cut into units of work. A unit spans kWarpWidth columns and `chunk` steps of the
// scan.
struct Tiling {
    int across;       // units along x
    int down;         // 3-D: units along y
    int chunk;        // 2-D: rows, a multiple of those of a step; 3-D: slices
    int first, last;  // the rows or slices that count; those beyond are there as neighbours only
    int images;
};

// A comparison with the sample beyond the border, as the construction has it: V has no such cell,
// and T's outer faces belong to the border.
__device__ __forceinline__ plane force(plane bits, plane border) {
    return kCubes ? bits & ~border : bits | border;
}
