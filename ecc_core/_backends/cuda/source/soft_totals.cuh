// Gradients of thresholds and sharpness by those of curves.
#pragma once

#include "common.cuh"

// The gradient of the loss by curves (images / positions, levels, positions), with any strides.
struct Upstream {
    const float* data;
    long long by_group, by_level, by_position;
    int positions;

    ECC_DEVICE float get(int image, int j) const {
        const long long group = image / positions;
        return data[group * by_group + j * by_level + image % positions * by_position];
    }
};

// The gradients of thresholds and sharpness, summed over the images in a fixed order.
struct Totals {
    Upstream upstream;
    const float *slopes, *spreads;  // (images, levels)
    float* by_level;                // (levels,), or null
    float* by_sharpness;            // (), or null
    int images, levels;
    int blocks;  // one for every 32 levels, and one for the sharpness; 0 if nothing is wanted

    ECC_DEVICE void write(int block) const {
        __shared__ double sums[32][33];
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
        if (block >= blocks) return;  // the last layer of a grid may have more
        double sum = 0.0;
        if (block < blocks - 1) {
            const int j = 32 * block + lane;
            if (!by_level) return;
#pragma unroll 4
            for (int image = warp; image < images; image += warps)
                if (j < levels)
                    sum += (double)upstream.get(image, j) *
                           (double)slopes[(long long)image * levels + j];
            sums[warp][lane] = sum;
            __syncthreads();
            if (warp || j >= levels) return;
            for (int other = 1; other < warps; ++other) sum += sums[other][lane];
            by_level[j] = (float)sum;
        } else if (by_sharpness) {
            for (int image = warp; image < images; image += warps)
                for (int j = lane; j < levels; j += 32)
                    sum += (double)upstream.get(image, j) *
                           (double)spreads[(long long)image * levels + j];
            sum = warp_sum(sum);
            if (lane == 0) sums[warp][0] = sum;
            __syncthreads();
            if (threadIdx.x) return;
            for (int other = 1; other < warps; ++other) sum += sums[other][0];
            by_sharpness[0] = (float)sum;
        }
    }
};
