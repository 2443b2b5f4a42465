// Weights of vertices by orthant, and the gradients of the weights of points.
#include "soft_orthants.cuh"

// One thread for each vertex of an image.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_orthants(const Orthants cells, Real* out) {
    write_orthants(cells, (long long)blockIdx.x * kThreads + threadIdx.x, out);
}

// One thread for each point of an image.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_orthant_gradients(const Orthants cells, const Real* upstream, Real* out) {
    write_weight_gradients(cells, (long long)blockIdx.x * kThreads + threadIdx.x, upstream, out);
}
