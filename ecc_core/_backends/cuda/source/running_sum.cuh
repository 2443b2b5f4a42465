// Running sums over the lanes of a warp.
#pragma once

template <class T>
__device__ __forceinline__ T running_sum(T value, int lane) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(0xFFFFFFFFu, value, step);
        if (lane >= step) value += other;
    }
    return value;
}
