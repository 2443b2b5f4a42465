// The launches before and after the projection of points in a step of a soft transform: weights by orthant
// and parameters, and their gradients.
#include "soft_orthants.cuh"
#include "soft_parameters.cuh"

// Writes parameters by the first blocks, each of which uses one warp; in the others each thread takes a
// vertex. Also clears tickets.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_begin(const Orthants cells, Real* out, const Parameters given, Real* levels,
               Real* sharpness, Real* vectors, unsigned* tickets, int tickets_count,
               int parameter_blocks) {
    const int block = (int)blockIdx.x - parameter_blocks;
    if (blockIdx.x == 0)
        for (int i = threadIdx.x; i < tickets_count; i += kThreads) tickets[i] = 0;
    if (block >= 0)
        write_orthants(cells, (long long)block * kThreads + threadIdx.x, out);
    else if (threadIdx.x < kWarpSize)
        write_parameters(given, blockIdx.x, threadIdx.x, levels, sharpness, vectors);
}

// Writes gradients of parameters by the first blocks, each of which uses one warp; in the others each
// thread takes a point.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_finish(const Orthants cells, const Real* upstream, Real* out, const Parameters given,
                const ParameterGradients gradients, int parameter_blocks) {
    const int block = (int)blockIdx.x - parameter_blocks;
    if (block >= 0)
        write_weight_gradients(cells, (long long)block * kThreads + threadIdx.x, upstream, out);
    else if (threadIdx.x < kWarpSize)
        gradients.write(given, blockIdx.x, threadIdx.x);
}
