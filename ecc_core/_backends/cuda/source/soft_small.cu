// Computes windows, moments and curves of small images in one launch, with a block for each image. 512
// images of 8^2 take less than half the time of separate launches, forward and backward.
#include "soft_points.cuh"

struct SmallWork {
    SoftPoints points;
    const float *thresholds, *sharpness;  // Null if they follow from parameters.
    Curves out;
    float* windows;               // Where to write them for the backward pass, or null.
    const float *numbers, *step;  // Parameters of increasing thresholds, or null.
    const float* log_sharpness;   // Null if the sharpness is given.
    float* own_sharpness;         // Where to write the sharpness that follows from its logarithm.
    int levels;
    int room;  // The number of slots whose moments fit into shared memory.
    float scale;
};

// Levels and sharpness follow from parameters in functions that are not inlined, since the kernel needs all
// registers.
__device__ __noinline__ void write_levels_aside(const float* numbers, const float* step, int levels,
                                                float* own) {
    if (threadIdx.x < 32) write_levels(numbers, step, levels, own);
}
__device__ __noinline__ float exponential(const float* logarithm) {
    return (float)exp((double)logarithm[0]);
}

// The moments of some slots, in shared memory.
struct SmallCounts {
    int* counts;
    int begin, room;

    ECC_DEVICE bool has(int slot) const { return (unsigned)(slot - begin) < (unsigned)room; }
    ECC_DEVICE void add(int moment, int slot, int amount) const {
        atomicAdd(counts + moment * room + slot - begin, amount);
    }
    ECC_DEVICE long long operator()(int moment, int slot) const {
        return counts[moment * room + slot - begin];
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_small(const SmallWork work) {
    extern __shared__ uint4 memory[];
    const int levels = work.levels, lane = threadIdx.x % 32;
    Evaluation* found = (Evaluation*)memory;  // (levels,)
    float* copy = (float*)(found + levels);
    float* thresholds = copy + ECC_WINDOW_WORDS(levels);
    int* counts = (int*)(thresholds + levels);
    if (work.numbers) {
        write_levels_aside(work.numbers, work.step, levels, thresholds);
    } else {
        for (int j = threadIdx.x; j < levels; j += kThreads) thresholds[j] = work.thresholds[j];
    }
    __shared__ float sharpness;
    if (threadIdx.x == 0) {
        sharpness = work.log_sharpness ? exponential(work.log_sharpness) : work.sharpness[0];
        if (work.log_sharpness && blockIdx.x == 0) work.own_sharpness[0] = sharpness;
    }
    __syncthreads();
    const Windows windows(copy, levels);
    prepare(windows, thresholds, sharpness, levels);
    for (int j = threadIdx.x; j < levels; j += kThreads) found[j] = {};
    __syncthreads();
    if (work.windows && blockIdx.x == 0)
        for (int i = threadIdx.x; i < ECC_WINDOW_WORDS(levels); i += kThreads)
            work.windows[i] = copy[i];
    const Head head = *windows.head;
    const Window only = head.count == 1 ? windows.get(0) : Window();
    const double l = sharpness;
    const SoftPoints points = work.points.of(blockIdx.x);
    bool nan = false;
    // Usually all slots fit. Otherwise the image is scanned once more for the slots that follow.
    for (int begin = 0; begin < head.slots; begin += work.room) {
        const int end = min(begin + work.room, head.slots);
        for (int slot = threadIdx.x; slot < end - begin; slot += kThreads) {
#pragma unroll
            for (int moment = 0; moment < kMoments; ++moment) counts[moment * work.room + slot] = 0;
        }
        __syncthreads();
        const Deposit<SmallCounts> deposit = {
            windows, head, only, work.scale, {counts, begin, work.room}};
        for (int turn = 0; turn < points.turns(); ++turn) nan |= deposit.turn(points, turn);
        __syncthreads();
        for (int j = threadIdx.x / 32; j < levels; j += kThreads / 32) {
            Evaluation part = {};
            part.add(windows, head, l, level_of(thresholds, j), work.scale, deposit.counts, begin,
                     end, lane);
            part = part.total();
            if (lane == 0) {
                found[j].sum += part.sum;
                found[j].by_level += part.by_level;
                found[j].by_sharpness += part.by_sharpness;
            }
        }
        __syncthreads();
    }
    nan = __syncthreads_or(nan) || head.count < 0;
    for (int j = threadIdx.x; j < levels; j += kThreads)
        work.out.write(blockIdx.x, levels, j, found[j], l, nan);
}
