// The regions of a label image: which labels occur, and curves from the counts of regions.
#include "regions.cuh"

typedef ECC_LABEL Label;
typedef ECC_COUNT Count;
constexpr int kThreads = ECC_THREADS, kWarps = kThreads / 32;
constexpr int kEach = 8;  // Labels that a thread looks at.

// Marks the labels that occur, up to `most`. Only points whose label differs from those to the left and
// above are looked at; the first point of each label is one of these. So few marks are written, mostly one
// for a region in a slice, and blocks rarely wait for others that write the same mark. `width` is the
// length of a row.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_labels(const Label* labels, long long size, long long width, unsigned long long most,
                int* marks) {
    const int lane = threadIdx.x & 31;
    const long long first = (long long)blockIdx.x * (kThreads * kEach) + threadIdx.x;
    Label read[kEach], above[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const long long at = first + k * kThreads;
        read[k] = at < size ? load_once(labels + at) : (Label)0;
        above[k] = at < size && at >= width ? load_once(labels + at - width) : (Label)0;
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const Label left = __shfl_up_sync(kWarp, read[k], 1);
        const unsigned long long label = (unsigned long long)read[k];
        if (!label || read[k] == above[k] || (lane && read[k] == left)) continue;
        if (label <= most && !marks[label]) marks[label] = 1;
    }
}

// Writes the labels of the marked rows and their curves, at most `room` of them; a warp takes a row.
// `reply` gets the number of marked rows, the largest label without a row and whether there is a NaN.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_bins(const Count* counts, const unsigned* marks, const long long* found, long long rows,
             int bins, const Label* labels, long long room, Label* ids, long long* values,
             volatile long long* reply) {
    __shared__ int warps[kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long row = (long long)blockIdx.x * kWarps + warp;
    // The marks of all rows of the block lie in this word.
    const int word = (int)((long long)blockIdx.x * kWarps >> 5);
    int before = 0;
    for (int i = threadIdx.x; i < word; i += kThreads) before += __popc(marks[i]);
    before = __reduce_add_sync(kWarp, before);
    if (lane == 0) warps[warp] = before;
    __syncthreads();
    before = 0;
    for (int i = 0; i < kWarps; ++i) before += warps[i];
    const unsigned own = marks[word];
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1)
        reply_regions(reply, before + __popc(own), (unsigned long long)found[0], found[1]);
    const long long rank = before + __popc(own & ((1u << (row & 31)) - 1));
    if (row >= rows || !(own >> (row & 31) & 1) || rank >= room) return;
    if (lane == 0) ids[rank] = labels ? labels[row] : (Label)(row + 1);
    write_region_curve(counts + row * bins, bins, values + rank * (bins - 1));
}
