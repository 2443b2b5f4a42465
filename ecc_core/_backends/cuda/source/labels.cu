// The regions of a label image: which labels occur, the number of each one's region, and curves from
// the counts of regions.
#include "running_sum.cuh"

typedef ECC_LABEL Label;
typedef ECC_COUNT Count;
constexpr bool kSuper = ECC_SUPER;
constexpr int kThreads = ECC_THREADS, kWarps = kThreads / 32;
constexpr int kEach = 8;  // labels of a thread
constexpr unsigned kAll = 0xFFFFFFFFu;

// As in labels.py. Zero at launch, and followed by a bit for each label, which is set if it occurs.
struct Found {
    long long beyond, padding;  // whether there are labels without a bit

    __device__ __forceinline__ unsigned* marks() { return (unsigned*)(this + 1); }
};

// Marks the labels that occur, up to `most`. Negative labels are beyond it, too.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_labels(const Label* labels, long long size, unsigned long long most, Found* found) {
    const int lane = threadIdx.x & 31;
    const long long first = (long long)blockIdx.x * (kThreads * kEach) + threadIdx.x;
    unsigned long long label[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const long long at = first + k * kThreads;
        label[k] = at < size ? (unsigned long long)*(const volatile Label*)(labels + at) : 0;
    }
    // Most labels are marked already, so reading comes first. Not from the cache of the multiprocessor,
    // which would not see the marks of others.
    unsigned seen[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const unsigned long long left = __shfl_up_sync(kAll, label[k], 1);
        if (lane && label[k] == left) label[k] = 0;
        const bool marked = label[k] && label[k] <= most;
        seen[k] = marked ? ((volatile unsigned*)found->marks())[label[k] >> 5] : 0u;
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const unsigned mark = 1u << (label[k] & 31);
        if (label[k] > most)
            found->beyond = 1;
        else if (label[k] && !(seen[k] & mark))
            atomicOr(found->marks() + (label[k] >> 5), mark);
    }
}

// Numbers the marked labels from 1 on, and all others 0. A thread takes a word of marks, and a block
// first counts the marks before its own. `reply` gets how many there are, and whether there are others
// in bit 32.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    rank_labels(Found* found, int* ranks, Label* ids, volatile long long* reply) {
    __shared__ int warps[2][kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int before = 0;
    for (int i = threadIdx.x; i < (int)blockIdx.x * (kThreads / 4); i += kThreads) {
        const uint4 four = ((const uint4*)found->marks())[i];
        before += __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
    }
    const unsigned own = found->marks()[blockIdx.x * kThreads + threadIdx.x];
    const int through = running_sum(__popc(own), lane);
    before = running_sum(before, lane);
    if (lane == 31) warps[0][warp] = before, warps[1][warp] = through;
    __syncthreads();
    int start = through - __popc(own), end = 0;
    for (int i = 0; i < kWarps; ++i) {
        start += warps[0][i] + (i < warp ? warps[1][i] : 0);
        end += warps[0][i] + warps[1][i];
    }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) *reply = found->beyond << 32 | end;
    const long long first = ((long long)blockIdx.x * kThreads + (threadIdx.x & ~31)) * 32 + lane;
    for (int k = 0; k < 32; ++k) {
        const unsigned marks = __shfl_sync(kAll, own, k);
        const int rank = __shfl_sync(kAll, start, k) + __popc(marks & ((1u << lane) - 1));
        const bool marked = marks >> lane & 1;
        ranks[first + 32 * k] = marked ? rank + 1 : 0;
        if (marked) ids[rank] = (Label)(first + 32 * k);
    }
}

// Curves from the bins of each region, a warp for each region. `reply` gets the flag unless it is null.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_bins(const Count* counts, long long regions, int bins, long long* values,
             const long long* flag, volatile long long* reply) {
    if (reply && blockIdx.x == 0 && threadIdx.x == 0) *reply = *flag;
    const int lane = threadIdx.x & 31;
    const long long region = (long long)blockIdx.x * kWarps + (threadIdx.x >> 5);
    if (region >= regions) return;
    counts += region * bins, values += region * (bins - 1);
    Count before = 0;
    for (int first = 0; first < bins - 1; first += 32) {
        const int k = first + lane;
        const bool inside = k < bins - 1;
        const Count own = inside ? counts[kSuper ? bins - 1 - k : k] : 0;
        const Count sum = before + running_sum(own, lane);
        if (inside) values[kSuper ? bins - 2 - k : k] = sum;
        before = __shfl_sync(kAll, sum, 31);
    }
}
