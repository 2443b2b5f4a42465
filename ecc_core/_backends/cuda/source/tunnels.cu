// Tunnels of volumes: rows and columns of the boundary matrix, which reduction.cu reduces.
//
// Points are vertices. They come one before the other in the order of the narrow forest, in which points
// along axes are adjacent; with `kComplement` this is the forest of the complement, whose frame comes
// before every point. A cell belongs to its last vertex. The ends of a point are those of its six
// neighbours along the axes that come before it, where v and 5 - v are opposites; between two ends there
// may be a square. Ends and squares form a graph whose components are those of the lower link. A forest of
// that graph has all ends: the edge of the point to an end that is no root is matched with the square to
// its parent. A *row* is the edge to a root that closes a loop when it enters. Paths of the discrete
// gradient lead from the squares around a hole of a lower link, a *column*, to rows. docs/design/betti.md
// has the whole method.

#include "columns.cuh"
#include "volume.cuh"

constexpr bool kComplement = ECC_COMPLEMENT;
constexpr int kHeap = ECC_HEAP;  // Entries of a heap in local memory.
constexpr int kRows = 64;        // The most rows of a column that is traced in local memory.

// Forests have three bits for each end: its parent, the end itself if it is the root of a row, or one of
// these.
constexpr unsigned kRoot = 6, kAbsent = 7;
constexpr unsigned kLinks = 1u << 18;  // Sets of the neighbours that share squares with a point.

__device__ int axis_of(int v) { return v < 3 ? v : 5 - v; }
__device__ int sign_of(int v) { return v < 3 ? -1 : 1; }
__device__ int bit_of(int v) {  // One of the 27 places of a cube.
    const int axis = axis_of(v);
    return 13 + sign_of(v) * (axis == 0 ? 9 : axis == 1 ? 3 : 1);
}
__device__ int cube_bit(int v) { return v < 3 ? 0 : 4 >> axis_of(v); }

// Returns the 18 bits of the neighbours that share a square with a point, of the 27 bits of its cube.
__device__ unsigned link_of(unsigned cube) {
    return (cube >> 1 & 0x1) | (cube >> 2 & 0xE) | (cube >> 3 & 0x10) | (cube >> 4 & 0x1E0) |
           (cube >> 5 & 0x1E00) | (cube >> 6 & 0x2000) | (cube >> 7 & 0x1C000) |
           (cube >> 8 & 0x20000);
}
__device__ unsigned cube_of(unsigned link) {
    return (link & 0x1) << 1 | (link & 0xE) << 2 | (link & 0x10) << 3 | (link & 0x1E0) << 4 |
           (link & 0x1E00) << 5 | (link & 0x2000) << 6 | (link & 0x1C000) << 7 |
           (link & 0x20000) << 8;
}

// Calls with (number, v, w) for the twelve squares.
template <class Visit>
__device__ void each_square(const Visit& visit) {
    int number = 0;
#pragma unroll
    for (int v = 0; v < 6; ++v)
#pragma unroll
        for (int w = v + 1; w < 6; ++w)
            if (v + w != 5) visit(number++, v, w);
}

// The ends of the twelve squares, four bits each.
constexpr Word kFirstEnds = 0x433221110000, kSecondEnds = 0x554545324321;

// Returns the squares whose three other vertices are in a set of the cube.
__device__ unsigned squares_of(unsigned cube) {
    unsigned squares = 0;
    each_square([&](int s, int v, int w) {
        const int corner = bit_of(v) + bit_of(w) - 13;
        squares |= (cube >> bit_of(v) & cube >> bit_of(w) & cube >> corner & 1) << s;
    });
    return squares;
}

// Writes a forest of each link, by distance from the first end of each component.
extern "C" __global__ void __launch_bounds__(ECC_THREADS) list_trees(unsigned* trees) {
    const unsigned link = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (link >= kLinks) return;
    const unsigned cube = cube_of(link), squares = squares_of(cube);
    unsigned word = 0, seen = 0;
    for (int root = 0; root < 6; ++root) {
        if (!(cube >> bit_of(root) & 1)) {
            word |= kAbsent << 3 * root;
            continue;
        }
        if (seen >> root & 1) continue;
        word |= kRoot << 3 * root;
        seen |= 1 << root;
        for (unsigned front = 1 << root; front;) {
            unsigned reached = 0;
            each_square([&](int s, int v, int w) {
                if (!(squares >> s & 1)) return;
                const int from = front >> v & 1 ? v : w, to = front >> v & 1 ? w : v;
                if (!(front >> from & 1) || seen >> to & 1) return;
                word |= from << 3 * to;
                seen |= 1 << to;
                reached |= 1 << to;
            });
            front = reached;
        }
    }
    trees[link] = word;
}

__device__ unsigned lower_cube(unsigned before, unsigned beyond) {
    return kComplement ? ~before | beyond : before & ~beyond;
}

// Writes the forest of the lower link of each point.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    grow_trees(const Volume volume, const unsigned* trees, unsigned* grown, const int slices) {
    Column column(volume, slices);
    for (int z = column.first; z < column.last; ++z) {
        column.move(volume, z);
        const unsigned beyond = beyond_image(volume, z, column.y, column.x);
        const unsigned before = column.before(volume, z);
        if (column.there)
            grown[column.place(volume, z)] = trees[link_of(lower_cube(before, beyond))];
    }
}

__device__ int root_of(unsigned tree, int end) {
    for (;;) {
        const int parent = tree >> 3 * end & 7;
        if (parent == kRoot || parent == end) return end;
        end = parent;
    }
}

// Returns the end at one of the 27 places of a cube.
__device__ int end_at(int bit) {
    int end = 0;
    for (int v = 1; v < 6; ++v)
        if (bit_of(v) == bit) end = v;
    return end;
}

// Notes rows at the roots of their points, and where those of each point begin.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_rows(Row* rows, const int count, unsigned* grown, int* first_rows) {
    const int index = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (index >= count) return;
    const int place = rows[index].place;
    if (index == 0 || rows[index - 1].place != place) first_rows[place] = index;
    // Other threads may change the parents of other roots meanwhile.
    const int root =
        root_of(((volatile unsigned*)grown)[place], end_at(rows[index].ends >> 8 & 255));
    rows[index].ends = root;
    atomicAdd(grown + place, (unsigned)(root - (int)kRoot) << 3 * root);
}

// Returns the neighbour of a point at its end v.
__device__ Point towards(const Volume& volume, const Point& point, int v) {
    return point.beside(bit_of(v)).at_home(volume);
}

// A heap of the edges to which paths have come, from which the last one of the filtration is taken first.
// An entry has the key and the place of the point of an edge, in the order of the forest, and in three bits
// its end. Two entries of one edge cancel when they are taken out.
struct Heap {
    Word* entries;
    long long size, room;

    __device__ __noinline__ void add(Word entry) {
        if (size == room) {
            ++size;  // Then `trace` sees that there is no room.
            return;
        }
        if (size > room) return;
        long long at = size++;
        for (; at > 0 && entries[(at - 1) / 2] < entry; at = (at - 1) / 2)
            entries[at] = entries[(at - 1) / 2];
        entries[at] = entry;
    }

    __device__ Word take() {
        const Word first = entries[0], last = entries[--size];
        long long at = 0;
        for (long long next = 1; next < size; next = 2 * at + 1) {
            if (next + 1 < size && entries[next] < entries[next + 1]) ++next;
            if (last >= entries[next]) break;
            entries[at] = entries[next];
            at = next;
        }
        if (size) entries[at] = last;
        return first;
    }
};

struct Paths {
    const Volume& volume;
    const unsigned* grown;
    int place_bits;
    Heap heap;

    __device__ Word entry(int place, int end) const {
        const Word order = (Word)volume.codes[place] << place_bits | (unsigned)place;
        return (kComplement ? ~order : order) << 3 | (unsigned)end;
    }
    __device__ int place_of(Word entry) const {
        const Word order = entry >> 3;
        return (kComplement ? ~order : order) & (((Word)1 << place_bits) - 1);
    }

    // Goes down to an edge from a point in the image to an end, unless it is matched with the point.
    __device__ void go(int place, int end) {
        if ((grown[place] >> 3 * end & 7) != kRoot) heap.add(entry(place, end));
    }

    // Goes on from the edge between two points, of which one comes from the other towards v.
    __device__ void go_to_edge(Point from, Point to, int v) {
        const bool starts = from.inside(volume), stops = to.inside(volume);
        if (!starts && !stops) return;  // The edge lies in the frame.
        if (!stops) return go(from.place(volume), v);
        const int place = to.place(volume);
        if (!starts) return go(place, 5 - v);
        const int before = from.place(volume);
        if (entry(before, 0) < entry(place, 0))
            go(place, 5 - v);
        else
            go(before, v);
    }

    // Goes on from the square of a point between two ends to its edges elsewhere.
    __device__ void leave(Point point, int v, int w) {
        const Point at_v = towards(volume, point, v), at_w = towards(volume, point, w);
        const Point corner = towards(volume, at_v, w);
        go_to_edge(at_v, corner, w);
        go_to_edge(at_w, corner, v);
    }
};

// Returns the squares around the hole of a lower link in which one of 27 places lies: the squares that have
// cubes of the hole on one side only.
__device__ unsigned cycle_around(unsigned squares, int member) {
    const int high_z = member / 9 == 2, high_y = member / 3 % 3 == 2, high_x = member % 3 == 2;
    unsigned hole = 1u << (4 * high_z + 2 * high_y + high_x), before = 0;
    const auto cubes = [](int v, int w) {
        const int third = 7 & ~(4 >> axis_of(v)) & ~(4 >> axis_of(w));
        const int cube = cube_bit(v) | cube_bit(w);
        return 1u << cube | 1u << (cube | third);
    };
    while (hole != before) {
        before = hole;
        each_square([&](int s, int v, int w) {
            if (!(squares >> s & 1) && hole & cubes(v, w)) hole |= cubes(v, w);
        });
    }
    unsigned cycle = 0;
    each_square([&](int s, int v, int w) {
        const unsigned sides = hole & cubes(v, w);
        if (squares >> s & 1 && sides && sides != cubes(v, w)) cycle |= 1u << s;
    });
    return cycle;
}

// Returns the neighbours of a point that come before it.
__device__ unsigned cube_at(const Volume& volume, int place) {
    const Point point(volume, place);
    const unsigned own = volume.codes[place];
    const unsigned earlier =
        kTorus ? earlier_places(volume, point.z, point.y, point.x) : kBeforeCenter;
    unsigned before = 0;
    for (int i = 26; i >= 0; --i) {
        const Point other = point.beside(i).at_home(volume);
        const unsigned key = other.inside(volume) ? volume.codes[other.place(volume)] : own;
        before = before << 1 | (earlier >> i & 1 ? key <= own : key < own);
    }
    return lower_cube(before, beyond_image(volume, point.z, point.y, point.x));
}

// Lists the rows of a column in their order. Returns their number, or -1 if there is no room.
__device__ int trace(Paths& paths, Row edge, const Row* rows, int row_count, const int* first_rows,
                     int* listed, int room) {
    const Volume& volume = paths.volume;
    int count = 0;
    const unsigned squares = squares_of(cube_at(volume, edge.place));
    const unsigned cycle = cycle_around(squares, edge.ends >> 8 & 255);
    paths.heap.size = 0;
    const Point start(volume, edge.place);
    for (unsigned rest = cycle; rest; rest &= rest - 1) {
        const int shift = 4 * (__ffs(rest) - 1);
        paths.leave(start, kFirstEnds >> shift & 15, kSecondEnds >> shift & 15);
    }
    while (paths.heap.size) {
        if (paths.heap.size > paths.heap.room) return -1;
        unsigned ends = 0;
        const Word first = paths.heap.entries[0];
        do ends ^= 1u << (paths.heap.take() & 7);
        while (paths.heap.size && (paths.heap.entries[0] ^ first) < 8);
        const int place = paths.place_of(first);
        const Point point(volume, place);
        const unsigned tree = paths.grown[place];
        unsigned roots = 0;
        while (ends) {
            const int end = __ffs(ends) - 1, parent = tree >> 3 * end & 7;
            ends &= ends - 1;
            if (parent == end) {
                roots ^= 1u << end;
            } else if (parent != kRoot) {
                ends ^= 1u << parent;
                paths.leave(point, end, parent);
            }
        }
        if (!roots) continue;
        for (int row = first_rows[place]; row < row_count && rows[row].place == place; ++row) {
            if (!(roots >> rows[row].ends & 1)) continue;
            if (count == room) return -1;
            listed[count++] = row;
        }
    }
    return count;
}

// Returns where the rows of the threads of a warp are listed; by all its lanes.
__device__ Word take_room(Word* taken, Word rows) {
    const int lane = threadIdx.x & 31;
    const Word sum = running_sum(rows, lane);
    Word base = 0;
    if (lane == 31) base = atomicAdd(taken, sum);
    return __shfl_sync(kWarp, base, 31) + sum - rows;
}

// Lists the rows of columns. Only one of `spread` lanes has a column: where columns are few or differ much,
// lanes with other columns would only wait for each other.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    trace_columns(const Volume volume, const unsigned* grown, const Row* rows, const int row_count,
                  const int* first_rows, const Columns columns, const int place_bits,
                  const int spread) {
    Word own_heap[kHeap];
    int own_rows[kRows];
    const long long thread = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    const long long own = thread / spread;
    Paths paths = {volume, grown, place_bits, {own_heap, 0, kHeap}};
    int* listed = own_rows;
    int room = kRows;
    if (columns.memory) {  // Two thirds are for the heap, and a third is for rows.
        Word* const given = columns.memory + own * columns.own_room;
        paths.heap = {given, 0, columns.own_room * 2 / 3};
        listed = (int*)(given + paths.heap.room);
        room = min(columns.own_room / 3, (long long)kMostRows);
    }
    const bool works = thread % spread == 0;
    const long long step = (long long)gridDim.x * ECC_THREADS / spread;
    for (long long first = (thread - threadIdx.x % 32) / spread; first < columns.count;
         first += step) {
        const long long index = works ? first + threadIdx.x % 32 / spread : columns.count;
        int column = 0, count = 0;
        if (index < columns.count) {
            column = columns.chosen[index];
            count = trace(paths, columns.edges[column], rows, row_count, first_rows, listed, room);
        }
        const long long begin = take_room(columns.taken, max(count, 0));
        if (count < 0) add_late(columns, column);
        if (count < 0 || index >= columns.count || begin + count > columns.room) continue;
        columns.spans[column] = (Word)begin << kSpanBits | (unsigned)count;
        for (int i = 0; i < count; ++i) columns.rows[begin + i] = listed[i];
    }
}
