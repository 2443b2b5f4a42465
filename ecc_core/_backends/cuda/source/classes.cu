// Nodes and edges of a forest in the order in which they enter, and where the classes are born and die.

#include "common.cuh"

typedef unsigned long long Word;
typedef ECC_CODE Code;

constexpr bool kComplement = ECC_COMPLEMENT;  // points enter from the last key to the first
constexpr Word kRoot = ~0ull;                 // as in betti.cu

struct Edge {
    int place, ends;
};

// The forest of an image of keys. Its `nodes` are the minima, and its `listed` edges are numbered as they
// enter. The upper half of `joined` is the edge at which the component of a node ends.
struct Ordered {
    const Code* keys;
    const long long* minima;
    const Word* joined;
    const Edge* edges;
    unsigned nodes, listed, never;
};

// Increases as points enter: keys in the upper half, and places in the lower half.
ECC_DEVICE Word entry_of(const Code* keys, unsigned place) {
    const Word entry = (Word)keys[place] << 32 | place;
    return kComplement ? ~entry : entry;
}

// Writes the entries of minima, by the number of their basin, and those of edges.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_entries(const Code* keys, const int* labels, const long long points, const Edge* edges,
                 const unsigned listed, Word* of_minima, Word* of_edges) {
    const long long i = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    if (i < listed) of_edges[i] = entry_of(keys, edges[i].place);
    if (i >= points) return;
    const int basin = -1 - labels[i] - kComplement;
    if (basin >= 0) of_minima[basin] = entry_of(keys, (unsigned)i);
}

// Numbers minima as they enter, puts edges in order, and begins a forest without any of them. If there are
// `ranks` and `ages`, these numbers are written there; labels and the forest keep their numbers of basins.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    number_entries(const Word* of_minima, const unsigned nodes, const Edge* edges,
                   const long long* order, const unsigned listed, long long* minima, int* labels,
                   Edge* ordered, Word* joined, unsigned* ranks, unsigned* ages) {
    const unsigned i = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (i < listed) {
        ordered[i] = edges[order[i]];
        if (ranks) ranks[order[i]] = i;
    }
    if (i < nodes + kComplement) joined[i] = kRoot;
    if (kComplement && ages && i == 0) ages[0] = 0;  // the frame
    if (i >= nodes) return;
    const int place = (int)(unsigned)(kComplement ? ~of_minima[i] : of_minima[i]);
    const int own = kComplement + (int)i;
    minima[i] = place;
    if (ages)
        ages[-1 - labels[place]] = own;
    else
        labels[place] = -1 - own;
}

// Where the class of a node is born and dies, or -1.
struct Class {
    long long birth, death;
    unsigned born, died;  // keys; `never` of classes that do not die

    ECC_DEVICE Class(const Ordered& forest, unsigned node) {
        const Word link = forest.joined[node] >> 32;
        const long long end = link < forest.listed ? forest.edges[link].place : -1;
        birth = kComplement ? end : forest.minima[node];
        death = kComplement ? forest.minima[node] : end;
        born = birth < 0 ? forest.never : forest.keys[birth];
        died = death < 0 ? forest.never : forest.keys[death];
        if (died == forest.never) death = -1;
    }
};

// Marks places in the order of births by the node, plus 1, of a class that lasts; zero before. Those of
// complements, which are born at edges, are the places of these.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_classes(const Ordered forest, int* marked) {
    const unsigned node = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (node >= forest.nodes) return;
    const Class found(forest, node);
    if (found.born == forest.never || found.born == found.died) return;
    const unsigned edge = forest.joined[node] >> 32;
    marked[kComplement ? forest.listed - 1 - edge : node] = (int)node + 1;
}

// Lists the classes at the places that are marked. Those of one birth are in the order of deaths.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_classes(const Ordered forest, const int* marked, const long long* places,
                 const unsigned count, long long* births, long long* deaths) {
    const unsigned k = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (k >= count) return;
    const Class own(forest, marked[places[k]] - 1);
    unsigned at = k;
    if (kComplement) {
        for (unsigned i = k; i > 0; --i) {
            const Class other(forest, marked[places[i - 1]] - 1);
            if (other.birth != own.birth) break;
            at -= other.death > own.death;
        }
        for (unsigned i = k + 1; i < count; ++i) {
            const Class other(forest, marked[places[i]] - 1);
            if (other.birth != own.birth) break;
            at += other.death < own.death;
        }
    }
    births[at] = own.birth;
    deaths[at] = own.death;
}
