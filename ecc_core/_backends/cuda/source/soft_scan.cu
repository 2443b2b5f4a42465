// From images to the moments of their points in the slots of their values (see soft.cuh), and to packed
// coefficients, which the backward pass uses.
typedef ECC_REAL Real;
#include "soft_units.cuh"

constexpr bool kDeposit = ECC_DEPOSIT;  // whether moments are wanted

struct Tiling {
    Units units;
    int blocks;  // of each image
    int room;    // words of shared memory for moments
    int flush;   // units between two additions to global memory
    float scale;
};

struct Work {
    float* windows;
    long long* moments;  // (images, kMoments * slots + 1), zero at first: moment after moment, and
                         // whether there is a NaN
    plane* packed;       // (images, depth / kPacked rounded up, height, width), or null
    int levels;
    int slots;  // room for each image
};

// In shared memory if all slots fit, and else in global memory.
struct Counts {
    int* counts;
    long long* moments;
    int slots, room;  // in use, and room for each image in global memory
    bool shared;

    __device__ __forceinline__ bool has(int) const { return true; }

    __device__ __forceinline__ void add_to_global(int moment, int slot, long long amount) const {
        if (amount)
            atomicAdd((unsigned long long*)moments + moment * room + slot,
                      (unsigned long long)amount);
    }

    __device__ __forceinline__ void add(int moment, int slot, int amount) const {
        if (shared)
            atomicAdd(counts + moment * slots + slot, amount);
        else
            add_to_global(moment, slot, amount);
    }

    __device__ __forceinline__ void flush() const {
        if (!shared) return;
        __syncthreads();
        for (int slot = threadIdx.x; slot < slots; slot += blockDim.x) {
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
    soft_scan(const Image image, const Tiling tiling, const Work work) {
    extern __shared__ uint4 memory[];
    const int threads = blockDim.x, rows = threads / kLanes;
    const int row = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    const int index = blockIdx.x / tiling.blocks;
    Real* keys = (Real*)memory + kPadding;
    plane* exchange = (plane*)(keys + Tile::samples(rows) + kPadding);
    int* counts = (int*)(exchange + (kFlat ? 0 : kExchanged * threads));
    const Tile tile = {keys, rows, row, lane};

    const Windows windows(work.windows, work.levels);
    Head head = {0, 0, 0.0f, 0.0f};
    if (kDeposit) head = *windows.head;
    long long* moments = work.moments + (long long)index * (kMoments * work.slots + 1);
    const Window only = head.count == 1 ? windows.get(0) : Window();
    const bool shared = kMoments * head.slots <= tiling.room;
    const Deposit<Counts> deposit = {
        windows, head, only, tiling.scale, {counts, moments, head.slots, work.slots, shared}};
    if (kDeposit && shared)
        for (int i = threadIdx.x; i < kMoments * head.slots; i += threads) counts[i] = 0;
    __syncthreads();

    const int units = tiling.units.count(rows);
    bool nan = false;
    int waiting = 0;
    for (int unit = blockIdx.x % tiling.blocks; unit < units; unit += tiling.blocks) {
        nan |= scan_unit<kDeposit>(image, tiling.units, index, unit, tile, exchange, work.packed,
                                   deposit);
        if (kDeposit && ++waiting == tiling.flush) {
            deposit.counts.flush();
            waiting = 0;
        }
    }
    if (kDeposit) {
        if (waiting) deposit.counts.flush();
        if (nan) moments[kMoments * work.slots] = 1;
    }
}
