// Replaces each row of bins by its running sums, which are the curve. A block takes a row.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(ECC_THREADS) accumulate(long long* values, int count) {
    __shared__ long long partial[ECC_THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    long long* row = values + (long long)blockIdx.x * count;
    long long before = 0;
    for (int base = 0; base < count; base += blockDim.x) {
        const int at = base + threadIdx.x;
        const long long sum = running_sum(at < count ? row[at] : 0, lane);
        if (lane == 31) partial[warp] = sum;
        __syncthreads();
        long long total = before;
        for (int i = 0; i < ECC_THREADS / 32; ++i) {
            if (i == warp && at < count) row[at] = total + sum;
            total += partial[i];
        }
        before = total;
        __syncthreads();
    }
}
