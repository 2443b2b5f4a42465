// Kernels of weights of vertices by orthant, and of the gradients of the weights of points.
#include "soft_orthants.cuh"

// Each vertex of an image has a thread.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_orthants(const Orthants cells, Real* out) {
    write_orthants(cells, (long long)blockIdx.x * kThreads + threadIdx.x, out);
}

// Each point of an image has a thread.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_orthant_gradients(const Orthants cells, const Real* upstream, Real* out) {
    write_weight_gradients(cells, (long long)blockIdx.x * kThreads + threadIdx.x, upstream, out);
}
