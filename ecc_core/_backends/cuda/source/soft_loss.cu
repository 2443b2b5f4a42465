// Kernels of a loss of the curves of images and of their targets, which write the images that are compared,
// the losses, and their gradients by the curves.
#include "soft_windows.cuh"

typedef ECC_TARGET Target;
constexpr int kThreads = ECC_THREADS;

ECC_DEVICE float number_of(float target) { return target; }
ECC_DEVICE float number_of(unsigned char target) { return target != 0; }

struct Compared {
    const float* images;
    const Target* targets;
    const unsigned char* mask;  // It may be null.
    float sharpness;
};

// Writes windows (2, images, positions, window) of images and of targets, and the sharpness. Points that
// the mask leaves out never enter superlevel sets. Points outside of images are background.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_compared(const Compared given, const WindowGrid grid, float* windows, float* sharpness,
                  long long size) {
    long long index = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (index == 0) sharpness[0] = given.sharpness;
    if (index >= 2 * size) return;
    float* const own = windows + index;
    const bool is_target = index >= size;
    if (is_target) index -= size;
    const bool inside = grid.find_point(index);
    float value = 0;
    if (given.mask && !(inside && given.mask[index]))
        value = -__uint_as_float(0x7F800000u);
    else if (inside)
        value = is_target ? number_of(given.targets[index]) : given.images[index];
    *own = value;
}

struct Norm {
    double order;                // The order of the norm over levels, from 1 to infinity.
    double factor;               // The factor of an error in the loss.
    int levels, rows, reserved;  // rows: the number of curves of a loss.

    ECC_DEVICE double of(const float* curve, const float* target) const {
        double sum = 0;
        for (int j = 0; j < levels; ++j) {
            const double error = fabs((double)curve[j] - (double)target[j]);
            if (isinf(order))
                sum = error > sum || error != error ? error : sum;
            else
                sum += order == 1 ? error : order == 2 ? error * error : pow(error, order);
        }
        if (isinf(order) || order == 1) return sum;
        return order == 2 ? sqrt(sum) : pow(sum, 1 / order);
    }

    // Writes the gradient. As in torch, equal maxima share it, and the gradient of the norm 0 is 0.
    ECC_DEVICE void write_gradient(const float* curve, const float* target, double norm,
                                   float* out) const {
        int maxima = 0;
        for (int j = 0; j < levels && isinf(order); ++j)
            maxima += fabs((double)curve[j] - (double)target[j]) == norm;
        for (int j = 0; j < levels; ++j) {
            const double difference = (double)curve[j] - (double)target[j];
            const double size = fabs(difference);
            double slope = difference > 0 ? 1 : difference < 0 ? -1 : difference;
            if (isinf(order))
                slope *= size == norm ? 1.0 / maxima : 0.0;
            else if (order != 1)
                slope *= norm == 0 ? 0 : pow(size / norm, order - 1);
            out[j] = (float)(slope * factor);
        }
    }
};

// Writes losses, each of which is a sum over rows of curves, and the gradients of the curves, (rows,
// levels). Each loss has a block. `curves` are those of images, then those of targets.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_errors(const Norm norm, const float* curves, float* losses, float* gradients) {
    __shared__ double sums[kThreads / 32];
    const long long all = (long long)gridDim.x * norm.rows * norm.levels;
    double sum = 0;
    for (int row = threadIdx.x; row < norm.rows; row += kThreads) {
        const long long at = ((long long)blockIdx.x * norm.rows + row) * norm.levels;
        const float *curve = curves + at, *target = curve + all;
        const double error = norm.of(curve, target);
        sum += error;
        norm.write_gradient(curve, target, error, gradients + at);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int warp = 1; warp < kThreads / 32; ++warp) sum += sums[warp];
    losses[blockIdx.x] = (float)(sum * norm.factor);
}
