// Counts by the stars of the points of a complex of edges and triangles, which are the neighbours of each
// point and its triangles.
//
// Whether a point is the last one of its simplices depends on which of its neighbours come before it. So
// the signs that belong to a point are summed in registers, by one comparison with each neighbour in each
// order, and only sums that are not 0, of which smooth meshes have few, are added to histograms.
#include "simplicial.cuh"

constexpr int kEntries = 16;  // Words of a list: the number of entries that follow, and these.
constexpr unsigned kHalfBits = ECC_PACKED ? ~0u : 0xFFFFu;

struct Stars {
    const int* neighbours;      // Lists of points.
    const unsigned* triangles;  // Lists of two neighbours as bits, repeated in each half of a word.
    long long points;
    const unsigned* codes;  // (groups, points, kLanes)
    unsigned long long* wrong;
    unsigned long long right;
    volatile long long* reply;
};

// Appends to a list; `full` becomes 1 if there is no room.
template <typename Entry>
ECC_DEVICE void append(Entry* list, Entry entry, int* full) {
    const int place = (int)atomicAdd(list, (Entry)1) + 1;
    if (place < kEntries)
        list[place] = entry;
    else
        *full = 1;
}

// Makes the ends of edges neighbours.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    add_neighbours(const int* edges, long long count, int* neighbours, int* full) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        const int a = edges[2 * at], b = edges[2 * at + 1];
        append(neighbours + (long long)a * kEntries, b, full);
        append(neighbours + (long long)b * kEntries, a, full);
    }
}

// Adds triangles, whose sides are edges, to the lists of their points.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    add_triangles(const int* rows, long long count, const int* neighbours, unsigned* triangles,
                  int* full) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        for (int corner = 0; corner < 3; ++corner) {
            const int own = rows[3 * at + corner];
            const int second = rows[3 * at + (corner + 1) % 3];
            const int third = rows[3 * at + (corner + 2) % 3];
            const int* const list = neighbours + (long long)own * kEntries;
            unsigned both = 0;
            for (int place = 1; place <= min(list[0], kEntries - 1); ++place)
                if (list[place] == second || list[place] == third)
                    both |= 0x00010001u << (kEntries - 1 - place);
            append(triangles + (long long)own * kEntries, both, full);
        }
    }
}

// The codes of a point in the orders of a lane, and which neighbours and triangles come before it in each,
// by bit kEntries - 1 - place of a half. Halves of words have codes of 15 bits, so that one subtraction
// compares both: it leaves the upper bit of a half where the other code is not greater.
struct Star {
    static constexpr unsigned kUpper = ECC_PACKED ? 0x80008000u : 0x8000u;
    static constexpr unsigned kOne = ECC_PACKED ? 0x00010001u : 1u;
    int point;
    unsigned own;
    unsigned before = 0, triangles = 0;

    ECC_DEVICE Star(int point, unsigned own) : point(point), own(own) {}

    ECC_DEVICE unsigned code(int half) const {
        return ECC_PACKED ? own >> 16 * half & 0xFFFF : own;
    }

    // Compares a neighbour. Of points with equal codes, that with the lower number comes before.
    ECC_DEVICE void compare(int place, int other, unsigned word) {
        const bool before_equal = other < point;
        unsigned found;
        if (ECC_PACKED)
            found = (own | kUpper) - (before_equal ? 0 : kOne) - word;
        else
            found = word < own || (before_equal && word == own) ? kUpper : 0;
        before |= (found & kUpper) >> place;
    }

    // Adds a triangle if both neighbours come before. `both` are their bits in each half; the sum has the
    // upper bit of a half only where neither bit is missing.
    ECC_DEVICE void add_triangle(int place, unsigned both) {
        const unsigned sum = (before & both) + (kUpper - both);
        triangles |= (sum & kUpper) >> place;
    }

    ECC_DEVICE int sum(int half) const {
        return 1 - __popc(before >> 16 * half & 0xFFFF) + __popc(triangles >> 16 * half & 0xFFFF);
    }
};

// The first entries of a list are read at once, and the others four at a time.
constexpr int kFirst = 8;

struct Entries {
    const uint4* list;
    unsigned first[kFirst];  // The number of entries, and the first ones.

    ECC_DEVICE Entries(const void* lists, long long point)
        : list((const uint4*)((const unsigned*)lists + point * kEntries)) {
        keep(list[0], first);
        keep(list[1], first + 4);
    }

    static ECC_DEVICE void keep(const uint4 four, unsigned* out) {
        out[0] = four.x;
        out[1] = four.y;
        out[2] = four.z;
        out[3] = four.w;
    }

    ECC_DEVICE int count() const { return (int)first[0]; }
};

// Compares a point with `count` neighbours, from `place` on, whose codes are read together.
template <int count>
ECC_DEVICE void compare(Star& star, const unsigned* others, int place, int last,
                        const unsigned* codes) {
    unsigned words[count];
#pragma unroll
    for (int j = 0; j < count; ++j)
        words[j] = place + j <= last ? codes[(long long)others[j] * kLanes] : 0;
#pragma unroll
    for (int j = 0; j < count; ++j)
        if (place + j <= last) star.compare(place + j, (int)others[j], words[j]);
}

template <int count>
ECC_DEVICE void add_triangles_to(Star& star, const unsigned* both, int place, int last) {
#pragma unroll
    for (int j = 0; j < count; ++j)
        if (place + j <= last) star.add_triangle(place + j, both[j] & kHalfBits);
}

// Returns a star whose simplices are all counted. `codes` are those of the orders of a lane.
ECC_DEVICE Star star_of(const Stars& stars, long long point, const unsigned* codes) {
    const Entries neighbours(stars.neighbours, point), triangles(stars.triangles, point);
    Star star((int)point, codes[point * kLanes]);
    compare<kFirst - 1>(star, neighbours.first + 1, 1, neighbours.count(), codes);
    for (int place = kFirst; place <= neighbours.count(); place += 4) {
        unsigned others[4];
        Entries::keep(neighbours.list[place / 4], others);
        compare<4>(star, others, place, neighbours.count(), codes);
    }
    add_triangles_to<kFirst - 1>(star, triangles.first + 1, 1, triangles.count());
    for (int place = kFirst; place <= triangles.count(); place += 4) {
        unsigned both[4];
        Entries::keep(triangles.list[place / 4], both);
        add_triangles_to<4>(star, both, place, triangles.count());
    }
    return star;
}

// Counts the simplices at points. A block takes `each` points side by side, `together` at a time, since
// their neighbours are near each other. Groups of orders are the second axis of the grid.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    count_stars(const Stars stars, int each, const Histogram histogram) {
    answer(stars.wrong, stars.right, stars.reply);
    constexpr int together = ECC_THREADS / kLanes;
    const int column = (int)threadIdx.x % kLanes;
    const unsigned* const codes = stars.codes + blockIdx.y * stars.points * kLanes + column;
    const long long start = (long long)blockIdx.x * each;
    const long long stop = min(start + each, stars.points);
    for (long long point = start + threadIdx.x / kLanes; point < stop; point += together) {
        const Star star = star_of(stars, point, codes);
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
            const int sum = star.sum(half);
            const int bin = (int)star.code(half);
            const int order = (int)blockIdx.y * kOrders + half * kLanes + column;
            if (sum == 0 || bin >= histogram.bins || order >= histogram.orders) continue;
            atomicAdd(histogram.values + (long long)order * histogram.bins + bin,
                      (Sum)(long long)sum);
        }
    }
}
