// Computes the moments of the points of images in the slots of their values (soft.cuh).
#include "soft_points.cuh"

struct ScanWork {
    SoftPoints points;
    float* windows;
    // (images, kMoments * slots + 1), zero at launch: moment after moment, then whether there is a NaN.
    long long* moments;
    int levels;
    int slots;   // The most slots of an image for which there is room.
    int blocks;  // Blocks of each image.
    int room;    // Words of shared memory for moments.
    int flush;   // Turns between two additions to global memory.
    float scale;
};

// The moments of an image: in shared memory if all slots fit, and else in global memory.
struct ScanCounts {
    int* counts;
    long long* moments;
    int slots, room;  // The number of slots, and the most for which global memory has room.
    bool shared;

    ECC_DEVICE bool has(int) const { return true; }

    ECC_DEVICE void add_to_global(int moment, int slot, long long amount) const {
        if (amount)
            atomicAdd((unsigned long long*)moments + moment * room + slot,
                      (unsigned long long)amount);
    }

    ECC_DEVICE void add(int moment, int slot, int amount) const {
        if (shared)
            atomicAdd(counts + moment * slots + slot, amount);
        else
            add_to_global(moment, slot, amount);
    }

    ECC_DEVICE void flush() const {
        if (!shared) return;
        __syncthreads();
        for (int slot = threadIdx.x; slot < slots; slot += kThreads) {
#pragma unroll
            for (int moment = 0; moment < kMoments; ++moment) {
                int& count = counts[moment * slots + slot];
                add_to_global(moment, slot, count);
                count = 0;
            }
        }
        __syncthreads();
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_scan(const ScanWork work) {
    extern __shared__ uint4 memory[];
    int* counts = (int*)memory;
    const int image = blockIdx.x / work.blocks;
    const Windows windows(work.windows, work.levels);
    const Head head = *windows.head;
    long long* moments = work.moments + (long long)image * (kMoments * work.slots + 1);
    const Window only = head.count == 1 ? windows.get(0) : Window();
    const bool shared = kMoments * head.slots <= work.room;
    const Deposit<ScanCounts> deposit = {
        windows, head, only, work.scale, {counts, moments, head.slots, work.slots, shared}};
    if (shared)
        for (int i = threadIdx.x; i < kMoments * head.slots; i += kThreads) counts[i] = 0;
    __syncthreads();
    const SoftPoints points = work.points.of(image);
    bool nan = false;
    int waiting = 0;
    for (int turn = blockIdx.x % work.blocks; turn < points.turns(); turn += work.blocks) {
        nan |= deposit.turn(points, turn);
        if (++waiting < work.flush) continue;
        deposit.counts.flush();
        waiting = 0;
    }
    if (waiting) deposit.counts.flush();
    if (nan) moments[kMoments * work.slots] = 1;
}
