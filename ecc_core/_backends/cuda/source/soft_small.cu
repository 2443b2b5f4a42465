// Curves of small images in one launch, with a block for each image: windows, coefficients, moments and
// curves.
typedef ECC_REAL Real;
#include "soft_units.cuh"
#include "soft_levels.cuh"

struct Work {
    const float *thresholds, *sharpness;
    Curves out;
    float* windows;  // where to write them for the backward pass, or null
    plane* packed;   // as in soft_scan.cu
    Units units;
    int levels;
    int room;  // slots whose moments fit into shared memory
    float scale;
};

// The moments of some slots, in shared memory.
struct Counts {
    int* counts;
    int begin, room;

    __device__ __forceinline__ bool has(int slot) const {
        return (unsigned)(slot - begin) < (unsigned)room;
    }
    __device__ __forceinline__ void add(int moment, int slot, int amount) const {
        atomicAdd(counts + moment * room + slot - begin, amount);
    }
    __device__ __forceinline__ long long operator()(int moment, int slot) const {
        return counts[moment * room + slot - begin];
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_small(const Image image, const Work work) {
    extern __shared__ uint4 memory[];
    const int threads = blockDim.x, rows = threads / kLanes, levels = work.levels;
    const int row = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    Evaluation* found = (Evaluation*)memory;  // of each level
    float* copy = (float*)(found + levels);
    Real* keys = (Real*)(copy + ECC_WINDOW_WORDS(levels)) + kPadding;
    plane* exchange = (plane*)(keys + Tile::samples(rows) + kPadding);
    int* counts = (int*)(exchange + (kFlat ? 0 : kExchanged * threads));
    const Tile tile = {keys, rows, row, lane};

    const Windows windows(copy, levels);
    prepare(windows, work.thresholds, work.sharpness[0], levels);
    for (int j = threadIdx.x; j < levels; j += threads) found[j] = {};
    __syncthreads();
    if (work.windows && blockIdx.x == 0)
        for (int i = threadIdx.x; i < ECC_WINDOW_WORDS(levels); i += threads)
            work.windows[i] = copy[i];
    const Head head = *windows.head;
    const Window only = head.count == 1 ? windows.get(0) : Window();
    const double l = work.sharpness[0];
    const int units = work.units.count(rows);
    bool nan = false;
    // Usually all slots fit. Otherwise the image is scanned again for the next ones.
    for (int begin = 0; begin < head.slots; begin += work.room) {
        const int end = min(begin + work.room, head.slots);
        for (int slot = threadIdx.x; slot < end - begin; slot += threads) {
#pragma unroll
            for (int moment = 0; moment < kMoments; ++moment) counts[moment * work.room + slot] = 0;
        }
        __syncthreads();
        const Deposit<Counts> deposit = {windows, head, only, work.scale, {counts, begin, work.room}};
        for (int unit = 0; unit < units; ++unit)
            nan |= scan_unit<true>(image, work.units, blockIdx.x, unit, tile, exchange, work.packed,
                                   deposit);
        __syncthreads();
        for (int j = row; j < levels; j += rows) {
            Evaluation part = {};
            part.add(windows, head, l, level_of(work.thresholds, j), work.scale, deposit.counts,
                     begin, end, lane);
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
    for (int j = threadIdx.x; j < levels; j += threads)
        work.out.write((long long)blockIdx.x * levels + j, found[j], l, nan);
}
