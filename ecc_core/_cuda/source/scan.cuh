// Running sums over the lanes of a warp.
#pragma once

__device__ __forceinline__ long long running_sum(long long value, int lane) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const long long other = __shfl_up_sync(0xFFFFFFFFu, value, step);
        if (lane >= step) value += other;
    }
    return value;
}
