// Increasing levels, and the gradients of the parameters of a layer.
#include "soft_parameters.cuh"

extern "C" __global__ void __launch_bounds__(kWarpSize)
    soft_increasing(const Parameters given, Real* levels) {
    write_levels(given.numbers, given.step, given.levels, levels);
}

extern "C" __global__ void __launch_bounds__(kWarpSize)
    soft_parameter_gradients(const Parameters given, const ParameterGradients gradients) {
    gradients.write(given, blockIdx.x, threadIdx.x);
}
