// Increasing levels from numbers without constraints, and the gradients of these. One warp each.
#include "common.cuh"

typedef ECC_REAL Real;
constexpr double kLinear = 20;  // beyond it the softplus is the identity, as in torch

ECC_DEVICE double last_of(double sum) { return __shfl_sync(0xFFFFFFFFu, sum, 31); }

// The first number, and then the softplus of the others, added up in units of the step.
extern "C" __global__ void soft_increasing(const Real* numbers, const Real* step, Real* levels,
                                           int count) {
    double total = 0;
    for (int first = 0; first < count; first += 32) {
        const int i = first + threadIdx.x;
        double gap = i < count ? numbers[i] : 0;
        if (i && gap <= kLinear) gap = log1p(exp(gap));
        const double sum = total + running_sum(gap, threadIdx.x);
        if (i < count) levels[i] = (Real)(step[0] * sum);
        total = last_of(sum);
    }
}

extern "C" __global__ void soft_increasing_gradients(const Real* numbers, const Real* step,
                                                     const Real* upstream, Real* out, int count) {
    double total = 0;
    for (int first = 0; first < count; first += 32) {
        const int i = count - 1 - first - (int)threadIdx.x;  // from the last one on
        const double sum = total + running_sum(i < 0 ? 0.0 : (double)upstream[i], threadIdx.x);
        const double gap = i < 1 ? kLinear + 1 : numbers[i];
        const double slope = gap > kLinear ? 1 : 1 / (1 + exp(-gap));
        if (i >= 0) out[i] = (Real)(step[0] * sum * slope);
        total = last_of(sum);
    }
}
