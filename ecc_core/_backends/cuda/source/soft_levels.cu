// Kernels whose work depends on the levels only.
#include "soft.cuh"

// Writes the windows, and clears the moments of each image. Block i is that of image i. All blocks write
// the same windows, so that each can use them without waiting for another.
extern "C" __global__ void soft_prepare(const float* thresholds, const float* sharpness,
                                        float* memory, long long* moments, int levels, int room) {
    const Windows windows(memory, levels);
    prepare(windows, thresholds, sharpness[0], levels);
    if (!moments) return;
    __syncthreads();
    const int slots = windows.head->slots;
    moments += (long long)blockIdx.x * (kMoments * room + 1);
    for (int slot = threadIdx.x; slot < slots; slot += blockDim.x) {
#pragma unroll
        for (int moment = 0; moment < kMoments; ++moment) moments[moment * room + slot] = 0;
    }
    if (threadIdx.x == 0) moments[kMoments * room] = 0;
}

// Writes curves and their derivatives from the moments of soft_scan.cu, (images, kMoments * room + 1). Each
// level has a warp.
extern "C" __global__ void soft_evaluate(const float* thresholds, const float* sharpness,
                                         float* memory, const long long* moments, float* curves,
                                         float* slopes, float* spreads, int levels, int room,
                                         float scale) {
    const int lane = threadIdx.x & 31, image = blockIdx.y;
    const int j = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (j >= levels) return;
    const Windows windows(memory, levels);
    const Head head = *windows.head;
    moments += (long long)image * (kMoments * room + 1);
    const double l = sharpness[0], level = level_of(thresholds, j);
    Evaluation found = {};
    const auto all = [=](int moment, int slot) { return moments[moment * room + slot]; };
    found.add(windows, head, l, level, scale, all, 0, head.slots, lane);
    found = found.total();
    const Curves out = {curves, slopes, spreads, 1};
    if (lane == 0)
        out.write(image, levels, j, found, l, head.count < 0 || moments[kMoments * room]);
}

// The first `totals.blocks` blocks sum the gradients of thresholds and sharpness. The others, `blocks`
// for each image from image `first` on, write the table of the gradient of the image at the start of
// each bin: (images, room).
extern "C" __global__ void soft_tabulate(const Totals totals, const float* sharpness, float* memory,
                                         float2* table, int first, int blocks, int room) {
    int block = blockIdx.x;
    if (block < totals.blocks) {
        totals.write(block);
        return;
    }
    block -= totals.blocks;
    const Windows windows(memory, totals.levels);
    const Head head = *windows.head;
    const int image = block / blocks;
    table += (long long)image * room;
    for (int slot = block % blocks * blockDim.x + threadIdx.x; slot < head.slots - 1;
         slot += blocks * blockDim.x)
        table[slot] = response_at(windows, head, totals.upstream, first + image, totals.levels,
                                  sharpness[0], slot);
}
