// Labels of the components that last, which spread from minima to all points that enter later.
//
// A point gets the least label of the neighbours that enter before it, and a minimum whose component does
// not last gets that of the point where it dies (docs/design/betti.md). Labels only decrease, so that the
// order in which threads write them does not change the labels in the end, when no label changes any more.
//
// A pass visits only chunks of points, one point for each thread of a block, in which or next to which a
// label has changed in the pass before; these are listed.

#include "device.cuh"
#include "volume.cuh"

constexpr unsigned kEnds = kSpace & (ECC_WIDE ? kCube : kFaces);  // Neighbours that are connected.
constexpr int kRounds = 8;         // The most rounds in which labels spread within a chunk.
constexpr int kNone = 0x7FFFFFFF;  // A label that points keep unless they can be reached.

// Chunks to be visited: whether each is listed, and the lists of a pass and of the next one.
struct Chunks {
    int* listed;
    int* now;
    int* next;
    const int* count;
    int* next_count;
    int size;  // The number of all chunks.

    __device__ void add(long long place) const {
        const long long chunk = place / kThreads;
        if (place < 0 || chunk >= size) return;
        if (atomicExch(listed + chunk, 1) == 0) next[atomicAdd(next_count, 1)] = chunk;
    }
};

// Returns whether some neighbours of a point of a torus are at the other side.
__device__ bool is_at_side(const Volume& volume, int place) {
    const Point point(volume, place);
    return point.z == 0 || point.z == volume.depth - 1 || point.y == 0 ||
           point.y == volume.height - 1 || point.x == 0 || point.x == volume.width - 1;
}

// Writes the set of the connected neighbours of each point that enter before it.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    find_earlier(const Volume volume, const int slices, unsigned* earlier) {
    Column column(volume, slices);
    const unsigned border = beyond_row(volume, column.y, column.x);
    for (int z = column.first; z < column.last; ++z) {
        column.move(volume, z);
        const unsigned beyond = border | beyond_ends(z, volume.depth, kLowZ, kHighZ);
        const unsigned before = column.before(volume, z) & kEnds & ~beyond;
        if (column.there)
            earlier[column.place(volume, z)] = column.key() == volume.top ? 0 : before;
    }
}

__device__ int basin_at(const int* ways, long long place) {
    int way = ways[place];
    while (way >= 0) way = ways[way];
    return -1 - way;
}

// Writes for each of some nodes the basin beyond the edge at which its component dies: the basin of that
// end of the edge which is not in the component. `tops` are the largest components that do not last and
// to which basins belong. Edges are those of betti.cu.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    find_beyond(const Volume volume, const int* ways, const int* edges, const int* links,
                const int* tops, const int* nodes, const int count, int* beyond) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const int node = nodes[i];
    const int place = edges[2 * links[node]], ends = edges[2 * links[node] + 1];
    const int first = basin_at(ways, place_beside(volume, place, ends & 255));
    const int second = basin_at(ways, place_beside(volume, place, ends >> 8 & 255));
    beyond[node] = tops[first] == node ? second : first;
}

// Gives each point the label of its basin.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    label_basins(const int* ways, const int* basins, const long long size, int* labels) {
    const long long place = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (place < size) labels[place] = basins[basin_at(ways, place)];
}

// Lists the chunks of the points beside one whose label has changed.
__device__ void add_beside(const Volume& volume, const Chunks& chunks, int place) {
    for (int k = 0; k < 27; ++k)
        if (kEnds >> k & 1) chunks.add(place_beside(volume, place, k));
}

// Spreads labels in the chunks that are listed.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    spread_labels(const Volume volume, const Chunks chunks, const unsigned* earlier,
                  const long long size, volatile int* labels) {
    __shared__ int steps[27];  // Steps from a point to the places around it.
    if (threadIdx.x < 27)
        steps[threadIdx.x] = ((int)threadIdx.x / 9 - 1) * volume.height * volume.width +
                             ((int)threadIdx.x / 3 % 3 - 1) * volume.width + (int)threadIdx.x % 3 -
                             1;
    for (int i = blockIdx.x; i < *chunks.count; i += gridDim.x) {
        const int chunk = chunks.now[i];
        if (threadIdx.x == 0) atomicExch(chunks.listed + chunk, 0);
        // Labels that change from here on list the chunk again.
        __threadfence();
        __syncthreads();
        const long long begin = (long long)chunk * kThreads, place = begin + threadIdx.x;
        const unsigned around = place < size ? earlier[place] : 0;
        int own = place < size ? labels[place] : 0;
        const int first = own;
        const bool at_side = kTorus && place < size && is_at_side(volume, place);
        for (int round = 0; round < kRounds; ++round) {
            const int before = own;
            for (unsigned rest = around; rest; rest &= rest - 1) {
                const int i = __popc((rest & (0u - rest)) - 1);
                const int other =
                    labels[at_side ? place_beside(volume, place, i) : place + steps[i]];
                own = min(own, other);
            }
            if (own < before) labels[place] = own;
            if (!__syncthreads_or(own < before)) break;
        }
        __threadfence();
        if (at_side && own < first) add_beside(volume, chunks, place);
        if (__syncthreads_or(own < first) && threadIdx.x < 27) {
            chunks.add(begin + steps[threadIdx.x]);
            chunks.add(begin + kThreads - 1 + steps[threadIdx.x]);
        }
    }
}

// Gives minima whose components do not last the label of the point where they die.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    leave_minima(const Volume volume, const Chunks chunks, const int* births, const int* deaths,
                 const int count, volatile int* labels) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const int label = labels[deaths[i]], birth = births[i];
    if (label >= labels[birth]) return;
    labels[birth] = label;
    __threadfence();
    add_beside(volume, chunks, birth);
}
