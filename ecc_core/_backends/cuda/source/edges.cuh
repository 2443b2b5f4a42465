// Edges between the basins of an image, or the components that were joined from them.
#pragma once

typedef unsigned long long Word;

struct Edge {
    int first, second;
    unsigned key;
};

// Appends the edges of the lanes that have one, by all lanes of a warp.
__device__ void append(bool wanted, const Edge& edge, Edge* edges, unsigned* count) {
    const unsigned those = __ballot_sync(~0u, wanted);
    const int lane = threadIdx.x & 31;
    unsigned base = 0;
    if (lane == 0 && those) base = atomicAdd(count, (unsigned)__popc(those));
    base = __shfl_sync(~0u, base, 0);
    if (wanted) edges[base + __popc(those & ((1u << lane) - 1))] = edge;
}
