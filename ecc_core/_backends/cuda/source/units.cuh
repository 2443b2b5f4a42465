// Where the warps of a volume work that take sixteen rows at a time.
#pragma once
#include "tiling.cuh"

constexpr int kSpan = 32 / kFold;  // lanes of a row

// Of a row.
__device__ __forceinline__ int lane_of_row() {
    return kFold > 1 ? lane_index() % kSpan : lane_index();
}

// How far the rows of a lane are below the first ones of its warp.
__device__ __forceinline__ int rows_of_fold() {
    return kFold > 1 ? lane_index() / kSpan * kPairRows : 0;
}

// A part of a column of slices.
struct Unit {
    int left, rows_before;  // first column; rows above, which other warps own
    int y;                  // first row: less where the last rows are repeated
    int begin, end, start;  // slices that it owns, and the first one that it reads

    Unit() = default;
    __device__ __forceinline__ Unit(const Image& image, const Tiling& tiling, int index)
        : left(index % tiling.across * kWarpWidth),
          rows_before(index / tiling.across % tiling.down * (kFold * kPairRows) + rows_of_fold()),
          y(min(rows_before, image.height - kPairRows)),
          begin(tiling.first + index / (tiling.across * tiling.down) * tiling.chunk),
          end(min(begin + tiling.chunk, tiling.last)),
          start(max(begin - 1, 0)) {}

    // Whether there is work.
    __device__ __forceinline__ bool some() const { return begin < end; }

    // The first slice, of an image of a batch.
    __device__ __forceinline__ const Element* data(const Image& image, int index) const {
        return image.data + index * image.batch + start * image.slice;
    }
};
