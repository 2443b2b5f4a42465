// Finds the components of the sublevel sets to which the points of an image belong when they enter.

#include "device.cuh"
#include "volume.cuh"

constexpr Word kNever = ~0ull;

// Returns the root of a node's component after the first `edges` edges, by the links of a forest
// (betti.cu).
__device__ unsigned root_after(const Word* joined, unsigned node, unsigned edges) {
    for (Word link = joined[node]; link >> 32 < edges; link = joined[node]) node = (unsigned)link;
    return node;
}

// Writes for each point its root in the upper half and its key in the lower half, or kNever. `edges` has
// the number of edges up to each key.
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

// Lowers the key of the root of each of some nodes to the key of the node; the root is that at this key.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    lower_roots(const Word* joined, const unsigned* edges, const long long* nodes,
                const unsigned count, const int* keys, int* of_roots) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const int key = keys[nodes[i]];
    atomicMin(of_roots + root_after(joined, nodes[i], edges[key]), key);
}

// How often a path crosses the sides of a torus along each axis: upwards from the last point minus
// downwards from the first one.
struct Turn {
    int z, y, x;

    // Returns how often a step crosses the side of an axis, to a point that may be beyond the image.
    static __device__ int out(int at, int length) { return at < 0 ? -1 : at >= length ? 1 : 0; }
    // Returns the same of a step between neighbours in the image. As in betti.cu, a step along an axis of
    // two points never crosses its side.
    static __device__ int between(int from, int to) {
        return to - from > 1 ? -1 : from - to > 1 ? 1 : 0;
    }
};

// Follows the path from a point to one of the 27 places around it, and on to its basin, which is returned.
__device__ int follow_way(const Volume& volume, const int* labels, int place, int i, Turn& turn) {
    const Point beside = Point(volume, place).beside(i);
    turn = {Turn::out(beside.z, volume.depth), Turn::out(beside.y, volume.height),
            Turn::out(beside.x, volume.width)};
    Point at = beside.at_home(volume);
    int label = labels[at.place(volume)];
    while (label >= 0) {
        const Point next(volume, label);
        turn.z += Turn::between(at.z, next.z);
        turn.y += Turn::between(at.y, next.y);
        turn.x += Turn::between(at.x, next.x);
        at = next;
        label = labels[label];
    }
    return -1 - label;
}

// The path along an edge of a forest (betti.cu): the basins that it joins, and the turn between them.
struct Way {
    int from, to;
    Turn turn;

    __device__ Way(const Volume& volume, const int* labels, const int* edge) {
        Turn back;
        from = follow_way(volume, labels, edge[0], edge[1] & 255, back);
        to = follow_way(volume, labels, edge[0], edge[1] >> 8 & 255, turn);
        turn.z -= back.z;
        turn.y -= back.y;
        turn.x -= back.x;
    }
};

// Lists the paths along some edges, each as two basins and a turn.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_ways(const Volume volume, const int* labels, const int* edges, const long long* chosen,
              const unsigned count, int* ways) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const Way way(volume, labels, edges + 2 * chosen[i]);
    int* const to = ways + 5ll * i;
    to[0] = way.from;
    to[1] = way.to;
    to[2] = way.turn.z;
    to[3] = way.turn.y;
    to[4] = way.turn.x;
}

// Lowers for each node and axis the key from which on its component winds around the axis, where an edge
// closes a loop that does. `turns` are those of the paths from nodes to their roots along a spanning
// forest.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    find_windings(const Volume volume, const int* labels, const int* edges, const unsigned count,
                  const int* turns, const unsigned nodes, int* keys) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const Way way(volume, labels, edges + 2ll * i);
    const int* const from = turns + 3ll * way.from;
    const int* const to = turns + 3ll * way.to;
    const int key = key_of(volume, volume.codes[edges[2ll * i]]);
    if (way.turn.z + to[0] != from[0]) atomicMin(keys + way.from, key);
    if (way.turn.y + to[1] != from[1]) atomicMin(keys + nodes + way.from, key);
    if (way.turn.x + to[2] != from[2]) atomicMin(keys + 2ll * nodes + way.from, key);
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
