// Components of the sublevel sets of an image of codes, or of their complements, at all codes.
//
// Points are ordered by key, and points of equal keys by place. In `follow_neighbours`, every point
// that is not a minimum follows its first neighbour in this order. The kernel lists edges at points
// whose lower link has several components, since only these can join basins. `resolve_edges` finds the
// minima to which the ends of these edges lead; boruvka.cu joins them.

#include "edges.cuh"

typedef ECC_CODE Code;

constexpr bool kPlanar = ECC_PLANAR;    // whether there is only one slice
constexpr bool kDiagonal = ECC_WIDE;    // whether diagonal neighbours are connected
constexpr bool kFrame = ECC_FRAME;      // whether points beyond the border come before all others
constexpr bool kReverse = ECC_REVERSE;  // keys are `top` minus the codes
constexpr unsigned kCenter = 1u << 13, kCube = (1u << 27) - 1;

struct Volume {
    const Code* codes;
    int depth, height, width;
    unsigned top;
};

// The place of a point, and two of the 27 places around it, in the low and the next byte of `ends`.
struct RawEdge {
    int place, ends;
};

__device__ unsigned key_of(const Volume& volume, long long place) {
    const unsigned code = volume.codes[place];
    return kReverse ? volume.top - code : code;
}

// Sets of the 27 places of a cube are bits, in which x runs fastest.
constexpr unsigned kLowX = 0111111111, kHighX = 0444444444;
constexpr unsigned kLowY = 0007007007, kHighY = 0700700700;

__device__ unsigned along_x(unsigned set) { return (set & ~kHighX) << 1 | (set & ~kLowX) >> 1; }
__device__ unsigned along_y(unsigned set) { return (set & ~kHighY) << 3 | (set & ~kLowY) >> 3; }
__device__ unsigned along_z(unsigned set) { return (set << 9 | set >> 9) & kCube; }

// The set, with all places adjacent to it.
__device__ unsigned dilated(unsigned set) {
    if (!kDiagonal) return set | along_x(set) | along_y(set) | along_z(set);
    set |= along_x(set);
    set |= along_y(set);
    return set | along_z(set);
}

// Neighbours along an axis (kFaces), and all that can connect neighbours to each other (kMembers).
constexpr unsigned kFaces = 1u << 4 | 1u << 10 | 1u << 12 | 1u << 14 | 1u << 16 | 1u << 22;
constexpr unsigned kCorners = 1u << 0 | 1u << 2 | 1u << 6 | 1u << 8 | 1u << 18 | 1u << 20 |
                              1u << 24 | 1u << 26;
constexpr unsigned kPlane = 0000777000;
constexpr unsigned kEnds = (kDiagonal ? kCube & ~kCenter : kFaces) & (kPlanar ? kPlane : kCube);
constexpr unsigned kMembers =
    (kCube & ~kCenter & (kDiagonal ? kCube : ~kCorners)) & (kPlanar ? kPlane : kCube);

__device__ int lowest_bit(unsigned set) { return __popc((set & (0u - set)) - 1); }

// The component of a set that contains its first place among `ends`.
__device__ unsigned component(unsigned set, unsigned ends) {
    unsigned found = set & ends, before = 0;
    found &= 0u - found;
    while (found != before) {
        before = found;
        found = dilated(found) & set;
    }
    return found;
}

struct Link {
    unsigned lower;  // the members that come before the point
    int first;       // the first neighbour in the order, or -1
    bool framed;     // whether a neighbour lies beyond the border
};

__device__ Link link_of(const Volume& volume, int z, int y, int x, long long place, unsigned own) {
    Link link = {0, -1, false};
    unsigned least = 0;
#pragma unroll
    for (int i = 0; i < 27; ++i) {
        if (!(kMembers >> i & 1)) continue;
        const int dz = i / 9 - 1, dy = i / 3 % 3 - 1, dx = i % 3 - 1;
        const bool inside = (unsigned)(z + dz) < (unsigned)volume.depth &&
                            (unsigned)(y + dy) < (unsigned)volume.height &&
                            (unsigned)(x + dx) < (unsigned)volume.width;
        if (!inside) {
            if (kFrame) {
                link.lower |= 1u << i;
                link.framed |= kEnds >> i & 1;
            }
            continue;
        }
        const long long step = ((long long)dz * volume.height + dy) * volume.width + dx;
        const unsigned key = key_of(volume, place + step);
        if (i < 13 ? key > own : key >= own) continue;
        link.lower |= 1u << i;
        if ((kEnds >> i & 1) && (link.first < 0 || key < least)) least = key, link.first = i;
    }
    return link;
}

// Labels are the place that a point follows, or at minima -1 minus the number of the basin. With
// kFrame, basin 0 is that of the frame. `counts` has the number of edges in its upper half and that of
// basins in its lower half; edges beyond `room` are counted, but not written.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    follow_neighbours(const Volume volume, int* labels, RawEdge* edges, const unsigned room,
                      long long* histogram, Word* counts) {
    const long long size = (long long)volume.depth * volume.height * volume.width;
    const long long place = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    const bool there = place < size;
    Link link = {0, -1, false};
    unsigned own = 0, parts = 0, rest = 0;
    if (there) {
        const int x = place % volume.width;
        const long long row = place / volume.width;
        own = key_of(volume, place);
        link = link_of(volume, row / volume.height, row % volume.height, x, place, own);
        for (rest = link.lower; rest & kEnds; ++parts) rest &= ~component(rest, kEnds);
    }
    // Each lane writes behind the lanes before it.
    const bool minimum = there && parts == 0;
    const Word more = (Word)(parts > 1 ? parts - 1 : 0) << 32 | minimum;
    const int lane = threadIdx.x & 31;
    Word sum = more;
    for (int step = 1; step < 32; step *= 2) {
        const Word before = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += before;
    }
    const Word total = __shfl_sync(~0u, sum, 31);
    Word base = lane == 31 && total ? atomicAdd(counts, total) : 0;
    base = __shfl_sync(~0u, base, 31) + sum - more;
    if (!there) return;
    if (minimum) {
        labels[place] = -1 - (int)(unsigned)base;
        atomicAdd((Word*)histogram + own, (Word)1);
        return;
    }
    const int i = link.first;
    labels[place] = link.framed
                        ? -1
                        : (int)(place + ((long long)(i / 9 - 1) * volume.height + i / 3 % 3 - 1) *
                                            volume.width + i % 3 - 1);
    if (parts < 2) return;
    unsigned slot = base >> 32;
    rest = link.lower & ~component(link.lower, kEnds);
    const int first = lowest_bit(link.lower & kEnds);
    for (; rest & kEnds; ++slot) {
        if (slot < room) edges[slot] = {(int)place, first | lowest_bit(rest & kEnds) << 8};
        rest &= ~component(rest, kEnds);
    }
}

// The basin of one of the 27 places around a point.
__device__ int basin_of(const Volume& volume, const int* labels, int place, int i) {
    const int x = place % volume.width, row = place / volume.width;
    const int z = row / volume.height + i / 9 - 1, y = row % volume.height + i / 3 % 3 - 1;
    const int column = x + i % 3 - 1;
    if ((unsigned)z >= (unsigned)volume.depth || (unsigned)y >= (unsigned)volume.height ||
        (unsigned)column >= (unsigned)volume.width)
        return 0;
    int label = labels[(z * volume.height + y) * volume.width + column];
    while (label >= 0) label = labels[label];
    return -1 - label;
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    resolve_edges(const Volume volume, const int* labels, const RawEdge* raw, const unsigned size,
                  Edge* edges, unsigned* count) {
    const unsigned index = blockIdx.x * ECC_THREADS + threadIdx.x;
    Edge edge = {0, 0, 0};
    if (index < size) {
        const RawEdge given = raw[index];
        edge.first = basin_of(volume, labels, given.place, given.ends & 255);
        edge.second = basin_of(volume, labels, given.place, given.ends >> 8);
        edge.key = key_of(volume, given.place);
    }
    append(edge.first != edge.second, edge, edges, count);
}
