// Gradients of thresholds and sharpness by those of curves.
#pragma once

#include "increasing.cuh"

// The gradient of the loss by curves (images / positions, levels, positions), with any strides.
struct Upstream {
    const float* data;
    long long by_group, by_level, by_position;
    int positions;

    ECC_DEVICE float get(int image, int j) const {
        const long long group = image / positions;
        return data[group * by_group + j * by_level + image % positions * by_position];
    }
    // Returns the same where there is one position, without a division, which takes most of the time.
    ECC_DEVICE float get_single(int image, int j) const {
        return data[image * by_group + j * by_level];
    }
};

constexpr int kReadAtOnce = 8;

// Returns the sum of summand(i) for i from 0 to count, in order. Several are read before they are added, or
// each addition would wait for memory.
template <class Summand>
ECC_DEVICE double sum_in_order(int count, const Summand& summand) {
    double sum = 0;
    int i = 0;
    for (; i + kReadAtOnce <= count; i += kReadAtOnce) {
        double read[kReadAtOnce];
#pragma unroll
        for (int k = 0; k < kReadAtOnce; ++k) read[k] = summand(i + k);
#pragma unroll
        for (int k = 0; k < kReadAtOnce; ++k) sum += read[k];
    }
    for (; i < count; ++i) sum += summand(i);
    return sum;
}

// The gradients of thresholds and sharpness, which are summed over the images in a fixed order, or those of
// the parameters from which they follow.
struct Totals {
    Upstream upstream;
    const float *slopes, *spreads;  // (images, levels)
    float* by_level;                // (levels,), or null
    float* by_sharpness;            // (), or null
    const float *numbers, *step;    // Parameters of increasing thresholds, or null.
    float* by_number;               // (levels,), or null; if given, `by_level` is only room
    const float* log_sharpness;     // If not null, `by_sharpness` is the gradient of this number.
    int images, levels;
    int blocks;  // One for every 32 levels, and one for the sharpness; 0 if nothing is wanted.

    ECC_DEVICE void write(int block) const {
        if (block >= blocks) return;  // The grid may have more blocks along its last axis.
        if (block == blocks - 1) {
            if (by_sharpness) write_by_sharpness();
        } else if (!by_number) {
            if (by_level) write_by_level(block);
        } else if (block == 0) {  // One block: gradients of numbers are running sums.
            for (int part = 0; part < blocks - 1; ++part) {
                write_by_level(part);
                __syncthreads();
            }
            if (threadIdx.x < 32)
                write_number_gradients(numbers, step, levels, by_level, by_number);
        }
    }

    // Returns the sum of upstream gradients times derivatives at a level, over the images of a warp.
    ECC_DEVICE double sum_over_images(const float* derivatives, int j, int warp, int warps) const {
        const int count = warp < images ? (images - warp - 1) / warps + 1 : 0;
        const auto derivative = [&](int image) {
            return (double)derivatives[(long long)image * levels + j];
        };
        if (upstream.positions == 1)
            return sum_in_order(count, [&](int i) {
                const int image = warp + i * warps;
                return (double)upstream.get_single(image, j) * derivative(image);
            });
        return sum_in_order(count, [&](int i) {
            const int image = warp + i * warps;
            return (double)upstream.get(image, j) * derivative(image);
        });
    }

    // Writes the gradients of 32 levels.
    ECC_DEVICE void write_by_level(int part) const {
        __shared__ double sums[32][33];
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
        const int j = 32 * part + lane;
        double sum = j < levels ? sum_over_images(slopes, j, warp, warps) : 0;
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp || j >= levels) return;
        for (int other = 1; other < warps; ++other) sum += sums[other][lane];
        by_level[j] = (float)sum;
    }

    ECC_DEVICE void write_by_sharpness() const {
        __shared__ double sums[32];
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
        double sum = 0.0;
        for (int j = lane; j < levels; j += 32) sum += sum_over_images(spreads, j, warp, warps);
        sum = warp_sum(sum);
        if (lane == 0) sums[warp] = sum;
        __syncthreads();
        if (threadIdx.x) return;
        for (int other = 1; other < warps; ++other) sum += sums[other];
        const double factor = log_sharpness ? exp((double)log_sharpness[0]) : 1.0;
        by_sharpness[0] = (float)(sum * factor);
    }
};
