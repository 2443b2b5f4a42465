// Which components of the sublevel sets the points of an image belong to when they enter.

#include "device.cuh"
#include "volume.cuh"

constexpr Word kNever = ~0ull;

// The root of a node's component after so many edges, by the links of a forest (see betti.cu).
__device__ unsigned root_after(const Word* joined, unsigned node, unsigned edges) {
    for (Word link = joined[node]; link >> 32 < edges; link = joined[node]) node = (unsigned)link;
    return node;
}

// Writes for each point its root in the upper half and its key in the lower half, or kNever. `edges` are
// how many there are up to each key.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    enter_points(const Volume volume, const int* labels, const Word* joined, const unsigned* edges,
                 const long long size, Word* entries) {
    const long long place = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (place >= size) return;
    const unsigned key = key_of(volume, volume.codes[place]);
    if (key == volume.top) {
        entries[place] = kNever;
        return;
    }
    int label = labels[place];
    while (label >= 0) label = labels[label];
    entries[place] = (Word)root_after(joined, -1 - label, edges[key]) << 32 | key;
}

// Writes the root of each node at a key of its own.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    find_roots(const Word* joined, const unsigned* edges, const int* keys, const unsigned size,
               int* roots) {
    const unsigned node = blockIdx.x * kThreads + threadIdx.x;
    if (node < size) roots[node] = root_after(joined, node, edges[keys[node]]);
}

// Raises the largest size at each key, which entries have in their lower half. Most sizes are smaller
// than the largest one so far, which costs no atomic operation.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    raise_largest(const Word* entries, const long long* sizes, const long long count,
                  volatile long long* largest) {
    const long long i = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const unsigned key = (unsigned)entries[i];
    if (sizes[i] > largest[key]) atomicMax((long long*)largest + key, sizes[i]);
}
