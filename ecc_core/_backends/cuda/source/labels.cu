// The regions of a label image: which labels occur, the number of each one's region, and curves from
// the counts of regions.
#include "device.cuh"
#include "running_sum.cuh"

typedef ECC_LABEL Label;
typedef ECC_COUNT Count;
constexpr bool kSuper = ECC_SUPER;
constexpr int kThreads = ECC_THREADS, kWarps = kThreads / 32;
constexpr int kEach = 8;  // labels of a thread
constexpr unsigned kAll = 0xFFFFFFFFu;

// Marks the labels that occur, up to `most`. Negative labels are beyond it, too. Most labels are marked
// already, so reading comes first; a thread sees the marks of its multiprocessor in the cache there.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_labels(const Label* labels, long long size, unsigned long long most, unsigned char* marks,
                long long* beyond) {
    const int lane = threadIdx.x & 31;
    const long long first = (long long)blockIdx.x * (kThreads * kEach) + threadIdx.x;
    Label read[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const long long at = first + k * kThreads;
        read[k] = at < size ? load_once(labels + at) : (Label)0;
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const Label left = __shfl_up_sync(kAll, read[k], 1);
        const unsigned long long label = (unsigned long long)read[k];
        if (!label || (lane && read[k] == left)) continue;
        if (label > most)
            *beyond = 1;
        else if (!marks[label])
            marks[label] = 1;
    }
}

// A bit for each of 32 marks.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    pack_marks(const uint4* marks, unsigned* bits) {
    const long long at = (long long)blockIdx.x * kThreads + threadIdx.x;
    const auto four = [](unsigned bytes) { return (bytes * 0x01020408u) >> 24 & 15u; };
    unsigned word = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint4 found = marks[2 * at + half];
        const unsigned own = four(found.x) | four(found.y) << 4 | four(found.z) << 8 |
                             four(found.w) << 12;
        word |= own << (16 * half);
    }
    bits[at] = word;
}

// Numbers the marked labels from 1 on, and all others 0. A thread takes a word of bits, and a block
// first counts the bits before its own. `reply` gets how many there are, and in bit 32 whether there
// are labels beyond.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    rank_labels(const unsigned* bits, const long long* beyond, int* ranks, Label* ids,
                volatile long long* reply) {
    __shared__ int warps[2][kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int before = 0;
    for (int i = threadIdx.x; i < (int)blockIdx.x * (kThreads / 4); i += kThreads) {
        const uint4 four = ((const uint4*)bits)[i];
        before += __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
    }
    const unsigned own = bits[blockIdx.x * kThreads + threadIdx.x];
    const int through = running_sum(__popc(own), lane);
    before = running_sum(before, lane);
    if (lane == 31) warps[0][warp] = before, warps[1][warp] = through;
    __syncthreads();
    int start = through - __popc(own), end = 0;
    for (int i = 0; i < kWarps; ++i) {
        start += warps[0][i] + (i < warp ? warps[1][i] : 0);
        end += warps[0][i] + warps[1][i];
    }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) *reply = *beyond << 32 | end;
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
