// Increasing levels from free numbers: the first level is the first number, and each further level adds
// the softplus of the next number, in units of a step.
#pragma once

#include "common.cuh"

constexpr double kLinear = 20;  // The softplus of a greater number is the number, as in torch.

ECC_DEVICE double last_of(double sum) { return __shfl_sync(kWarp, sum, 31); }

// Writes the levels (count) of free numbers; called by a warp.
template <class Real>
ECC_DEVICE void write_levels(const Real* numbers, const Real* step, int count, Real* levels) {
    const int lane = threadIdx.x % 32;
    double total = 0;
    for (int first = 0; first < count; first += 32) {
        const int i = first + lane;
        double gap = i < count ? numbers[i] : 0;
        if (i && gap <= kLinear) gap = log1p(exp(gap));
        const double sum = total + running_sum(gap, lane);
        if (i < count) levels[i] = (Real)(step[0] * sum);
        total = last_of(sum);
    }
}

// Writes the gradients of the numbers by those of the levels; called by a warp.
template <class Real, class Gradient>
ECC_DEVICE void write_number_gradients(const Real* numbers, const Real* step, int count,
                                       const Gradient* by_level, Real* out) {
    const int lane = threadIdx.x % 32;
    double total = 0;
    for (int first = 0; first < count; first += 32) {
        const int i = count - 1 - first - lane;  // Lanes begin at the last level.
        const double sum = total + running_sum(i < 0 ? 0.0 : (double)by_level[i], lane);
        const double gap = i < 1 ? kLinear + 1 : (double)numbers[i];
        const double slope = gap > kLinear ? 1 : 1 / (1 + exp(-gap));
        if (i >= 0) out[i] = (Real)(step[0] * sum * slope);
        total = last_of(sum);
    }
}
