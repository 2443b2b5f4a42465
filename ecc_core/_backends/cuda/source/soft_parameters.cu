// Levels, sharpness and vectors from the parameters of a layer, and the gradients of these parameters.
#include "soft_parameters.cuh"

extern "C" __global__ void __launch_bounds__(kWarpSize)
    soft_parameters(const Parameters given, Real* levels, Real* sharpness, Real* vectors) {
    write_parameters(given, blockIdx.x, threadIdx.x, levels, sharpness, vectors);
}

extern "C" __global__ void __launch_bounds__(kWarpSize)
    soft_parameter_gradients(const Parameters given, const ParameterGradients gradients) {
    gradients.write(given, blockIdx.x, threadIdx.x);
}
