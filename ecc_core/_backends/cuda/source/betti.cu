// Components of the sublevel sets of an image of codes, and of their complements, at all codes.
//
// Points come in the order of their keys, and points of equal keys in raster order. For the complement,
// both orders are reversed, so that what comes before a point in one order comes after it in the other, and
// `follow_neighbours` compares each pair of neighbours once for both. There, every point that is not a
// minimum follows a neighbour that comes before it. Edges are listed at points whose lower link has several
// components, since only these can join basins. `join_basins` finds the minima to which the ends of an edge
// lead, and adds the edge to a minimum spanning forest.

#include "device.cuh"
#include "volume.cuh"

constexpr bool kSets = ECC_SETS;        // Whether the sets are asked for.
constexpr bool kOutside = ECC_OUTSIDE;  // Whether complements are, with a frame around the image.
constexpr bool kDiagonal = ECC_WIDE;    // Whether diagonal neighbours are connected in the sets.
constexpr bool kCounts = ECC_COUNTS;    // Whether blocks count keys in shared memory.
constexpr bool kPairs = ECC_PAIRS;      // Whether ends of basins are asked for, not counts of keys.
// Whether it is asked which loops of the complement wind around a torus, which has no frame.
constexpr bool kTurns = kTorus && kOutside;

// An edge at a point: the place of the point, and in `ends`, from the low byte on, two of the 27 places
// around it, and the rank of the key at which they are joined.
struct RawEdge {
    int place, ends;
};

// Labels are the place that a point follows, or at minima -1 minus the number of the basin. Basin 0 of a
// complement is that of the frame. `counts` has the number of edges in its upper half and the number of
// basins in its lower half; edges beyond `room` are counted, but not written.
struct Forest {
    int* labels;
    RawEdge* edges;
    long long* histogram;  // Minima less edges of the forest, by key.
    Word* counts;
    long long room;
    // kPairs: the numbers of edges and of nodes in the order in which they enter.
    const unsigned* ranks;
    const unsigned* ages;
};

// Returns the rank of a key, from 0 to 63; ranks do not decrease with keys.
__device__ int rank_of(const Volume& volume, unsigned key) {
    return min((int)(key * volume.scale), 63);
}

__device__ unsigned along_x(unsigned set) { return (set & ~kHighX) << 1 | (set & ~kLowX) >> 1; }
__device__ unsigned along_y(unsigned set) { return (set & ~kHighY) << 3 | (set & ~kLowY) >> 3; }
__device__ unsigned along_z(unsigned set) { return (set << 9 | set >> 9) & kCube; }

// The neighbours to which a point is connected (ends), and all neighbours that can connect these (members).
template <bool kWide>
struct Link {
    static constexpr unsigned kEnds = kSpace & (kWide ? kCube : kFaces);
    static constexpr unsigned kMembers = kSpace & (kWide ? kCube : ~kCorners);

    // Returns a set with all places adjacent to it.
    static __device__ unsigned dilated(unsigned set) {
        if (!kWide) return set | along_x(set) | along_y(set) | along_z(set);
        set |= along_x(set);
        set |= along_y(set);
        return set | along_z(set);
    }

    // Returns the component of a set that contains the first of its ends, a face if there is one. If it has
    // all ends of the set, some of its other members may be missing.
    static __device__ unsigned component(unsigned set) {
        const unsigned faces = set & kEnds & kFaces, seeds = faces ? faces : set & kEnds;
        unsigned found = seeds & (0u - seeds), before = 0;
        while (found != before && set & kEnds & ~found) {
            before = found;
            found = dilated(found) & set;
        }
        return found;
    }
};

__device__ int lowest_bit(unsigned set) { return __popc((set & (0u - set)) - 1); }

__device__ void add(int* bins, long long* histogram, unsigned key, int amount) {
    if (kPairs) return;
    if (kCounts)
        atomicAdd(bins + key, amount);
    else
        atomicAdd((Word*)histogram + key, (Word)(long long)amount);
}

// Labels a point and lists its edges. `link` are the neighbours that come before it. Called by all lanes of
// a warp.
template <bool kWide, bool kComplement>
__device__ void follow(const Volume& volume, const Forest& forest, const int* steps, int* bins,
                       bool there, int place, unsigned key, unsigned link, bool framed) {
    using Shape = Link<kWide>;
    unsigned rest = link & Shape::kMembers;
    const unsigned first = Shape::component(rest) & Shape::kEnds, others = rest & ~first;
    unsigned parts = first != 0;
    for (rest = others; rest & Shape::kEnds; ++parts) rest &= ~Shape::component(rest);
    const bool minimum = there && parts == 0;
    Word base = 0;
    if (__any_sync(~0u, there && parts != 1)) {
        // Lanes write one behind the other, in their order.
        const Word more = (Word)(there && parts > 1 ? parts - 1 : 0) << 32 | minimum;
        const int lane = threadIdx.x & 31;
        const Word sum = running_sum(more, lane);
        if (lane == 31) base = atomicAdd(forest.counts, sum);
        base = __shfl_sync(~0u, base, 31) + sum - more;
    }
    if (!there) return;
    if (minimum) {
        forest.labels[place] = -1 - (int)(unsigned)base;
        add(bins, forest.histogram, key, 1);
        return;
    }
    const int i = lowest_bit(first);
    const int beside = kTorus ? place_beside(volume, place, i) : place + steps[i];
    forest.labels[place] = framed ? -1 : beside;
    long long slot = base >> 32;
    const int rank = rank_of(volume, kComplement ? volume.top - key : key);
    for (rest = others; rest & Shape::kEnds; ++slot) {
        const int end = lowest_bit(rest & Shape::kEnds);
        if (slot < forest.room) forest.edges[slot] = {place, i | end << 8 | rank << 16};
        rest &= ~Shape::component(rest);
    }
}

__device__ void clear(int* bins, int size) {
    if (!kCounts) return;
    for (int i = threadIdx.x; i < size; i += kThreads) bins[i] = 0;
    __syncthreads();
}

__device__ void flush(const int* bins, int size, long long* histogram) {
    if (!kCounts) return;
    for (int i = threadIdx.x; i < size; i += kThreads)
        if (bins[i]) atomicAdd((Word*)histogram + i, (Word)(long long)bins[i]);
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    follow_neighbours(const Volume volume, const Forest sets, const Forest outside,
                      const int slices) {
    extern __shared__ uint4 memory[];
    const int size = volume.top + 1;
    int* const bins = reinterpret_cast<int*>(memory);
    int* const outside_bins = bins + size;
    __shared__ int steps[27];  // Steps from a point to the places around it.
    const int step = threadIdx.x;
    if (!kTorus && step < 27) steps[step] = place_beside(volume, 0, step);
    __syncthreads();
    clear(bins, 2 * size);
    Column column(volume, slices);
    const bool there = column.there;
    const unsigned border = beyond_row(volume, column.y, column.x);
    for (int z = column.first; z < column.last; ++z) {
        column.move(volume, z);
        const unsigned own = column.key(), before = column.before(volume, z);
        const unsigned beyond = border | beyond_ends(z, volume.depth, kLowZ, kHighZ);
        const int place = column.place(volume, z);
        if (kSets)
            follow<kDiagonal, false>(volume, sets, steps, bins, there, place, own, before & ~beyond,
                                     false);
        if (kOutside)
            follow<!kDiagonal, true>(volume, outside, steps, outside_bins, there, place, own,
                                     kTorus ? ~(before | beyond) : ~before | beyond,
                                     !kTorus && beyond & Link<!kDiagonal>::kEnds);
    }
    __syncthreads();
    if (kSets) flush(bins, size, sets.histogram);
    if (kOutside) flush(outside_bins, size, outside.histogram);
}

// The forest has a link for each node: an older node, and the key at which they are joined, or kRoot. Keys
// are in the order of the forest, those of complements from the last one on. With kPairs, the key of an
// edge is its number in the order in which edges enter, so that a component ends at the edge of its link.
// Otherwise any of two nodes may be the older one; an order that does not depend on space keeps the forest
// flat.
constexpr Word kRoot = ~0ull;
// On a torus, the last bits of the older node are its turn: one bit for each axis tells whether a path to
// it crosses the side of the axis an odd number of times.
constexpr int kNodeBits = kTurns ? 29 : 32;

__device__ unsigned node_of(Word link) {
    return (unsigned)link & (unsigned)((1ull << kNodeBits) - 1);
}
__device__ unsigned turn_of(Word link) { return kTurns ? (unsigned)link >> kNodeBits : 0; }

__device__ bool is_older(const Forest& forest, unsigned a, unsigned b) {
    if (!kPairs) return a * 0x9E3779B1u < b * 0x9E3779B1u;
    return forest.ages[a] < forest.ages[b];
}

// Adds an edge. If it takes the place of another edge, that one is added next, between the nodes to which
// both lead. Each step leaves the components at every key as they are (D. Smirnov and D. Morozov, Triplet
// merge trees, 2020), and on a torus also the classes of the loops in them. An edge that joins nothing
// closes a loop; `loops` becomes the first key at which there is a loop of each turn.
__device__ void join(const Forest& forest, volatile Word* joined, unsigned a, unsigned b,
                     unsigned key, unsigned turn, unsigned* loops) {
    for (;;) {
        Word link = joined[a];
        for (; link >> 32 <= key; link = joined[a]) {
            a = node_of(link);
            turn ^= turn_of(link);
        }
        for (Word up = joined[b]; up >> 32 <= key; up = joined[b]) {
            b = node_of(up);
            turn ^= turn_of(up);
        }
        if (a == b) {
            if (kTurns && turn) atomicMin(loops + turn, key);
            return;
        }
        if (is_older(forest, a, b)) {
            const unsigned swapped = a;
            a = b;
            b = swapped;
            link = joined[a];
            if (link >> 32 <= key) continue;
        }
        const Word added = (Word)key << 32 | (kTurns ? turn << kNodeBits : 0) | b;
        if (atomicCAS((Word*)joined + a, link, added) != link) continue;
        if (link == kRoot) return;
        a = b;
        b = node_of(link);
        turn ^= turn_of(link);
        key = link >> 32;
    }
}

// Returns the sides that the step to a neighbour crosses, as bits. It crosses the side of an axis where the
// indices of both points are not next to each other. Along an axis of two points, steps never need to.
__device__ unsigned sides_between(const Volume& volume, int from, int to) {
    const Point a(volume, from), b(volume, to);
    return (abs(a.z - b.z) > 1) | (abs(a.y - b.y) > 1) << 1 | (abs(a.x - b.x) > 1) << 2;
}

// Returns the sides beyond which a point lies that is a neighbour of one in the image, as bits.
__device__ unsigned sides_beyond(const Volume& volume, const Point& point) {
    return ((unsigned)point.z >= (unsigned)volume.depth) |
           ((unsigned)point.y >= (unsigned)volume.height) << 1 |
           ((unsigned)point.x >= (unsigned)volume.width) << 2;
}

// Returns the basin of one of the 27 places around a point, and adds the sides on the path there to a turn.
__device__ int basin_of(const Volume& volume, const int* labels, int place, int i, unsigned& turn) {
    const Point beside = Point(volume, place).beside(i);
    if (!kTorus && !beside.inside(volume)) return 0;
    if (kTurns) turn ^= sides_beyond(volume, beside);
    int at = beside.at_home(volume).place(volume), label = labels[at];
    while (label >= 0) {
        if (kTurns) turn ^= sides_between(volume, at, label);
        at = label;
        label = labels[at];
    }
    return -1 - label;
}

// Adds the edges with ranks from `begin`, the end of the call before, to below `end`. A thread looks at
// `each` edges, at most kMost. Edges to be added are gathered first, so that all threads of a block have
// some.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    join_basins(const Volume volume, const Forest forest, const unsigned size, Word* joined,
                const int begin, const int end, const int each, unsigned* loops) {
    constexpr int kMost = 16;
    __shared__ unsigned chosen[kThreads * kMost];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const long long first = (long long)blockIdx.x * kThreads * each + threadIdx.x;
    for (int i = 0; i < each; ++i) {
        const long long index = first + i * kThreads;
        const int rank = index >= size ? -1
                         : kPairs      ? rank_of(volume, forest.ranks[index])
                                       : forest.edges[index].ends >> 16;
        if (rank >= begin && rank < end) chosen[atomicAdd(&count, 1)] = index;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kThreads) {
        const RawEdge edge = forest.edges[chosen[i]];
        const unsigned own = key_of(volume, volume.codes[edge.place]);
        const unsigned of_place = kOutside ? volume.top - own : own;
        const unsigned key = kPairs ? forest.ranks[chosen[i]] : of_place;
        unsigned turn = 0;
        const int a = basin_of(volume, forest.labels, edge.place, edge.ends & 255, turn);
        const int b = basin_of(volume, forest.labels, edge.place, edge.ends >> 8 & 255, turn);
        join(forest, joined, a, b, key, turn, loops);
    }
}

// Shortens the paths of later edges, whose rank is not below `end`.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    flatten(const Volume volume, const unsigned nodes, volatile Word* joined, const int end) {
    const unsigned node = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (node >= nodes) return;
    const Word own = joined[node];
    unsigned root = node, turn = 0;
    for (Word link = own; link != kRoot && rank_of(volume, link >> 32) < end; link = joined[root]) {
        root = node_of(link);
        turn ^= turn_of(link);
    }
    if (root != node) joined[node] = own >> 32 << 32 | (kTurns ? turn << kNodeBits : 0) | root;
}

// Numbers the nodes of a forest in the order in which they enter, in `numbered` and in the labels of
// minima. `minima` are the places of the nodes in this order.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    number_nodes(const Forest forest, const long long* minima, const unsigned nodes,
                 const Word* joined, Word* numbered) {
    const unsigned i = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (kOutside && i == 0) numbered[0] = kRoot;  // Node 0 is the frame.
    if (i >= nodes) return;
    const unsigned own = i + kOutside;
    int& label = forest.labels[minima[i]];
    const Word link = joined[-1 - label];
    const Word turn = kTurns ? (Word)turn_of(link) << kNodeBits : 0;
    const Word older = link == kRoot ? kRoot : link >> 32 << 32 | turn | forest.ages[node_of(link)];
    numbered[own] = older;
    label = -1 - (int)own;
}

// Subtracts the edges of the forest from its histogram.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    count_edges(const Volume volume, const Forest forest, const unsigned nodes,
                const Word* joined) {
    extern __shared__ uint4 memory[];
    int* const bins = reinterpret_cast<int*>(memory);
    clear(bins, volume.top + 1);
    for (unsigned node = blockIdx.x * ECC_THREADS + threadIdx.x; node < nodes;
         node += gridDim.x * ECC_THREADS) {
        const unsigned key = joined[node] >> 32;
        if (joined[node] != kRoot)
            add(bins, forest.histogram, kOutside ? volume.top - key : key, -1);
    }
    __syncthreads();
    flush(bins, volume.top + 1, forest.histogram);
}
