// Comparisons across the left and right borders of a warp of pairs2d.cu. Lanes 0 to 15 have
// the left border in the sixteen rows of a step, lanes 16 to 31 the right one; codes are in low halves.
#pragma once
#include "pair_events.cuh"

// For warps that have no columns beside them.
constexpr PairSides kNoSides = {kCubes ? ~0u : 0u, kCubes ? 0u : ~0u};

__device__ __forceinline__ bool on_the_left() { return lane_index() < 16; }

// The column beside the warp: its distance from the warp's first one, which is column `left`.
__device__ __forceinline__ int beside(int left, int width) {
    return on_the_left() ? max(left - 1, 0) - left : min(kWarpWidth, width - 1 - left);
}

__device__ __forceinline__ pair outer_code(Element sample, int left, int width,
                                           const Encoder& encode, bool shown) {
    const bool outside = on_the_left() ? left == 0 : left + kWarpWidth >= width;
    const pair code = outside ? kOutside : encode(sample, sample);
    return outside || shown ? code : kCodeZero * 0x10001u;
}

// The warp's own first or last column, once all its rows are kept.
__device__ __forceinline__ pair inner_code(const PairCounter& count) {
    const int lane = lane_index();
    const unsigned warp = count.cache - lane * (kLaneWidth * sizeof(pair));
    const unsigned column = on_the_left() ? 0 : kCacheRow - sizeof(pair);
    __syncwarp();
    return shared_short(warp + (lane & 7) * kCacheRow + (lane >> 3 & 1) * 2 + column);
}

// The code of the row below. The row below the last one is the first of `next`, in lanes 0 and 16.
__device__ __forceinline__ pair code_below(pair code, pair next) {
    const int lane = lane_index();
    return __shfl_sync(kWarp, lane & 15 ? code : next, (lane & 16) | ((lane + 1) & 15));
}

// Comparisons across the sides; bit i of each is row i.
__device__ __forceinline__ PairSides sides(pair outer, pair inner) {
    const pair owned = on_the_left() ? owns_shared(outer, inner) : owns_shared(inner, outer);
    const unsigned both = __ballot_sync(kWarp, owned & 0xFFFFu);
    return {both, both >> 16};
}
