// The regions of a label image: which labels occur, and curves from the counts of regions.
#include "device.cuh"
#include "running_sum.cuh"

typedef ECC_LABEL Label;
typedef ECC_COUNT Count;
constexpr bool kSuper = ECC_SUPER;
constexpr int kThreads = ECC_THREADS, kWarps = kThreads / 32;
constexpr unsigned long long kHuge = 1ull << 62;  // reported in place of larger labels
constexpr unsigned kAll = 0xFFFFFFFFu;

// Writes the labels of the marked rows and their curves, at most `room` of them; a warp takes a row.
// `reply` gets the number of marked rows, the largest label without a row and whether there is a NaN.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_bins(const Count* counts, const unsigned* marks, const long long* found, long long rows, int bins,
             const Label* labels, long long room, Label* ids, long long* values,
             volatile long long* reply) {
    __shared__ int warps[kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long row = (long long)blockIdx.x * kWarps + warp;
    const int word = (int)((long long)blockIdx.x * kWarps >> 5);  // of all rows of the block
    int before = 0;
    for (int i = threadIdx.x; i < word; i += kThreads) before += __popc(marks[i]);
    before = __reduce_add_sync(kAll, before);
    if (lane == 0) warps[warp] = before;
    __syncthreads();
    before = 0;
    for (int i = 0; i < kWarps; ++i) before += warps[i];
    const unsigned own = marks[word];
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) {
        const unsigned long long largest = (unsigned long long)found[0];
        reply[0] = before + __popc(own);
        reply[1] = (long long)(largest < kHuge ? largest : kHuge);
        reply[2] = found[1];
    }
    const long long rank = before + __popc(own & ((1u << (row & 31)) - 1));
    if (row >= rows || !(own >> (row & 31) & 1) || rank >= room) return;
    if (lane == 0) ids[rank] = labels ? labels[row] : (Label)(row + 1);
    counts += row * bins, values += rank * (bins - 1);
    Count sum = 0;
    for (int first = 0; first < bins - 1; first += 32) {
        const int k = first + lane;
        const bool inside = k < bins - 1;
        const Count here = inside ? counts[kSuper ? bins - 1 - k : k] : 0;
        const Count through = sum + running_sum(here, lane);
        if (inside) values[kSuper ? bins - 2 - k : k] = through;
        sum = __shfl_sync(kAll, through, 31);
    }
}
