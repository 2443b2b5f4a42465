// Boruvka's algorithm. In each round, every component chooses its edge of the smallest key and is joined
// to the component at the other end. Edges within a component are then dropped.
#include "edges.cuh"

constexpr Word kNone = ~0ull;

// The edge of the smallest key of each component; of equal keys, the edge of the smallest number.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    propose_edges(const Edge* edges, const unsigned size, Word* best) {
    const unsigned index = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (index >= size) return;
    const Edge edge = edges[index];
    const Word proposal = (Word)edge.key << 32 | index;
    if (best[edge.first] > proposal) atomicMin(best + edge.first, proposal);
    if (best[edge.second] > proposal) atomicMin(best + edge.second, proposal);
}

// The component that each one is joined to. If two components chose the same edge, the first remains.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    hook_components(const Edge* edges, const unsigned nodes, const Word* best, int* parents,
                    long long* histogram) {
    const unsigned node = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (node >= nodes) return;
    int parent = node;
    if (best[node] != kNone) {
        const Edge edge = edges[(unsigned)best[node]];
        const int other = edge.first == (int)node ? edge.second : edge.first;
        if (best[other] != best[node] || other < (int)node) {
            parent = other;
            atomicAdd((Word*)histogram + edge.key, (Word)-1);
        }
    }
    parents[node] = parent;
}

__device__ int root_of(const int* parents, int node) {
    while (parents[node] != node) node = parents[node];
    return node;
}

// The edges that still join two components.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    keep_edges(const Edge* edges, const unsigned size, const int* parents, Edge* kept,
               unsigned* count) {
    const unsigned index = blockIdx.x * ECC_THREADS + threadIdx.x;
    Edge edge = {0, 0, 0};
    if (index < size) {
        edge = edges[index];
        edge.first = root_of(parents, edge.first);
        edge.second = root_of(parents, edge.second);
    }
    append(edge.first != edge.second, edge, kept, count);
}
