// Nodes and edges of a forest in the order in which they enter, and where the classes are born and die.

#include "common.cuh"

typedef unsigned long long Word;
typedef ECC_CODE Code;

constexpr bool kComplement = ECC_COMPLEMENT;  // Points enter from the last key to the first.
constexpr Word kRoot = ~0ull;                 // As in betti.cu.

struct Edge {
    int place, ends;
};

// A forest. `of_minima` are the entries of its nodes and `of_edges` those of edges, both numbered as they
// enter. The upper half of `joined` is the edge at which the component of a node ends.
struct Ordered {
    const Word* of_minima;
    const Word* joined;
    const Word* of_edges;
    unsigned nodes, listed, never;
};

// Returns a number that increases as points enter: the key in the upper half, and the place in the lower
// half.
ECC_DEVICE Word entry_of(const Code* keys, unsigned place) {
    const Word entry = (Word)keys[place] << 32 | place;
    return kComplement ? ~entry : entry;
}
ECC_DEVICE unsigned place_of(Word entry) { return (unsigned)(kComplement ? ~entry : entry); }
ECC_DEVICE unsigned key_of(Word entry) { return (kComplement ? ~entry : entry) >> 32; }

// Writes the entries of minima, by the number of their basin, and those of edges. The edges of a place have
// consecutive numbers; the least of them is written to `firsts` at that place.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_entries(const Code* keys, const int* labels, const long long points, const Edge* edges,
                 const unsigned listed, Word* of_minima, Word* of_edges, unsigned* firsts) {
    const long long i = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    if (i < listed) {
        const int place = edges[i].place;
        of_edges[i] = entry_of(keys, place);
        if (i == 0 || edges[i - 1].place != place) firsts[place] = i;
    }
    if (i >= points) return;
    const int basin = -1 - labels[i] - kComplement;
    if (basin >= 0) of_minima[basin] = entry_of(keys, (unsigned)i);
}

// Writes the places of minima, and edges, in the order of their entries; the numbers that edges (`ranks`)
// and basins (`ages`) have in it; and a forest without any of these edges.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    number_entries(const Ordered order, const Edge* edges, const unsigned* firsts,
                   const int* labels, long long* minima, Edge* ordered, Word* joined,
                   unsigned* ranks, unsigned* ages) {
    const unsigned i = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (i < order.listed) {
        const Word entry = order.of_edges[i];
        unsigned slot = 0;  // The number of the edge among those of its place.
        while (slot < i && order.of_edges[i - slot - 1] == entry) ++slot;
        const unsigned index = firsts[place_of(entry)] + slot;
        ordered[i] = edges[index];
        ranks[index] = i;
    }
    if (i < order.nodes + kComplement) joined[i] = kRoot;
    if (kComplement && i == 0) ages[0] = 0;  // Node 0 is the frame.
    if (i >= order.nodes) return;
    const unsigned place = place_of(order.of_minima[i]);
    minima[i] = place;
    ages[-1 - labels[place]] = kComplement + i;
}

// The places where the class of a node is born and dies, or -1.
struct Class {
    long long birth, death;
    unsigned born, died;  // Keys; `died` is `never` if the class does not die.

    ECC_DEVICE Class(const Ordered& forest, unsigned node) {
        const Word minimum = forest.of_minima[node], link = forest.joined[node] >> 32;
        const bool ends = link < forest.listed;
        const Word edge = ends ? forest.of_edges[link] : 0;
        const long long end = ends ? (long long)place_of(edge) : -1;
        const unsigned key_of_end = ends ? key_of(edge) : forest.never;
        birth = kComplement ? end : place_of(minimum);
        death = kComplement ? place_of(minimum) : end;
        born = kComplement ? key_of_end : key_of(minimum);
        died = kComplement ? key_of(minimum) : key_of_end;
        if (died == forest.never) death = -1;
    }
};

// Writes the node of each class that lasts, plus 1, at its number in the order of births; other entries
// keep the 0 that they have at launch. Classes of complements are born at edges, in their reversed order.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_classes(const Ordered forest, int* marked) {
    const unsigned node = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (node >= forest.nodes) return;
    const Class found(forest, node);
    if (found.born == forest.never || found.born == found.died) return;
    const unsigned edge = forest.joined[node] >> 32;
    marked[kComplement ? forest.listed - 1 - edge : node] = (int)node + 1;
}

// Lists the classes born at the places that are marked. Those born together are in the order of deaths.
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
