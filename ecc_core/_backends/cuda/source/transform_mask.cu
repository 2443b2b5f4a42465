// The transform of a mask. A warp finds the critical points of a tile of 32 rows of 64 points, a row
// in each lane, on planes of bits along the last axis (ecc_core/_orthants.py defines them), and lists
// them. Then every lane counts listed points in one direction. A lane has bins of its own if there is
// room, so that the additions of a warp to shared memory do not wait for each other.
#include "device.cuh"
#include "running_sum.cuh"
#include "transform.cuh"
#include "transform_planes.cuh"

constexpr bool kShared = ECC_SHARED;  // whether bins are in shared memory
constexpr bool kPlaces = ECC_PLACES;  // whether integers tell most bins (struct Places)
constexpr int kWarps = ECC_THREADS / 32;
constexpr int kTileRows = 32, kTileColumns = 64;
constexpr int kRoom = 1024;  // points that a warp lists at once
constexpr unsigned kAll = 0xFFFFFFFFu;

// Whether 32 points are set, and whether they and their neighbours along the last axis both are.
struct Pairs {
    unsigned here, both;
};

// Coefficients of 32 points, from -2 to 1.
struct Coefficients {
    unsigned nonzero, negative, twice;

    __device__ __forceinline__ Coefficients() {}

    __device__ __forceinline__ Coefficients(Pairs here, Pairs row, Pairs depth, Pairs row_depth) {
        const unsigned x = here.both, y = here.here & row.here, z = here.here & depth.here;
        const unsigned xy = x & row.both, xz = x & depth.both;
        const unsigned yz = y & depth.here & row_depth.here;
        const unsigned cube = xy & depth.both & row_depth.both;
        const unsigned alone = here.here & ~(x | y | z), hollow = xy & xz & yz & ~cube;
        const unsigned positive = alone | hollow;
        const unsigned odd = here.here ^ x ^ y ^ z ^ xy ^ xz ^ yz ^ cube;
        twice = x & y & z & ~(xy | xz | yz);
        negative = (odd & ~positive) | twice;
        nonzero = positive | negative;
    }
};

// Where the cells of an orthant lie.
struct Owner {
    Pair z, y, x;

    __device__ __forceinline__ Owner(int orthant, bool cubes)
        : z(orthant & 4, cubes), y(orthant & 2, cubes), x(orthant & 1, cubes) {}
};

struct Tile {
    int z, y, x;  // of its first point
};

// Finds the critical points in the lane's row of a tile.
__device__ __forceinline__ void find(const Planes& planes, const Grid& grid, const Owner& owner,
                                     const Tile& tile, Coefficients (&found)[2]) {
    const int lane = threadIdx.x & 31;
    const bool deep = grid.z.present, wide = grid.y.present;
    // The points start at bit 32 of the words that are loaded, or at their first bit.
    const int left = min(owner.x.here, owner.x.far);
    const int shift_here = owner.x.here - 32 * left, shift_far = owner.x.far - 32 * left;
    const auto load = [&](int slice, int down, Pairs (&pairs)[2]) {
        const int z = tile.z + planes.deep + slice, row = tile.y + lane + 1 + down;
        const unsigned* at =
            planes.bits +
            ((((long long)z * planes.tiles + (row >> 5)) * planes.words + tile.x / 32 + 1 + left)
             << 5) + (row & 31);
        const unsigned words[3] = {at[0], at[32], at[64]};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const unsigned own = __funnelshift_rc(words[i], words[i + 1], shift_here);
            pairs[i] = {own, own & __funnelshift_rc(words[i], words[i + 1], shift_far)};
        }
    };
    Pairs here[2], row[2] = {}, depth[2] = {}, row_depth[2] = {};
    const int near_z = deep ? owner.z.here : 0, near_y = wide ? owner.y.here : 0;
    load(near_z, near_y, here);
    if (wide) load(near_z, owner.y.far, row);
    if (deep) load(owner.z.far, near_y, depth);
    if (deep && wide) load(owner.z.far, owner.y.far, row_depth);
#pragma unroll
    for (int i = 0; i < 2; ++i) found[i] = Coefficients(here[i], row[i], depth[i], row_depth[i]);
}

// Points that a warp has listed, each as two bytes, its column and row in the tile: those of positive
// coefficients from the start, those of negative ones from `next` on, twice where it is -2.
struct Listed {
    int positive, next, negative;
};

__device__ __forceinline__ unsigned short* list(unsigned bits, int column, unsigned short* at) {
    const unsigned first = (threadIdx.x & 31) << 8 | column;
    for (; bits; ++at) {
        const int bit = 31 - __clz(bits);
        bits ^= 1u << bit;
        *at = (unsigned short)(first + bit);
    }
    return at;
}

// Lists the critical points among those whose bits are given, unless there is no room. Called by a warp.
__device__ __forceinline__ bool list(const Coefficients (&found)[2], const unsigned (&chosen)[2],
                                     unsigned short* queue, Listed& listed) {
    unsigned up[2], down[2], twice[2], positive = 0, negative = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const unsigned some = chosen[i] & found[i].nonzero;
        up[i] = some & ~found[i].negative, down[i] = some & found[i].negative;
        twice[i] = some & found[i].twice;
        positive += __popc(up[i]), negative += __popc(down[i]) + __popc(twice[i]);
    }
    const unsigned end = running_sum(positive | negative << 16, (int)(threadIdx.x & 31)),
                   all = __shfl_sync(kAll, end, 31);
    listed.positive = all & 0xFFFF, listed.negative = all >> 16;
    listed.next = (listed.positive + 7) & ~7;
    if (listed.next + listed.negative > kRoom + 8) return false;
    unsigned short* at = queue + ((end & 0xFFFF) - positive);
    for (int i = 0; i < 2; ++i) at = list(up[i], 32 * i, at);
    at = queue + listed.next + ((end >> 16) - negative);
    for (int i = 0; i < 2; ++i) at = list(down[i], 32 * i, at);
    for (int i = 0; i < 2; ++i) at = list(twice[i], 32 * i, at);
    __syncwarp();
    return true;
}

// Evenly spaced levels divide heights into rows of bins. The place of a height is a 32-bit integer:
// the row, and in the lowest `shift` bits how far the height is above the level below. The first
// bin is in row `guard`; rows before it, and after the last, are for tiles partly beyond the levels.
struct Places {
    double scale, offset;  // place = height * scale + offset, before the rows of the guard
    double error;          // of a place, as levels are not exactly even
    int shift, guard;
};

// The places of a tile's points in a direction: first() plus the product of `steps` and a point's
// bytes. Steps are rounded to 16 bits, so a place may be off by less than `window`, which is also
// added to every place. The row is right if any of the bits `sure` is set.
struct Lane {
    unsigned steps, window, sure;
    double along_z, along_y, along_x;
    double extent;  // the largest distance of a point of a tile from the centre

    __device__ __forceinline__ Lane(const Vector& u, const Grid& grid, const Places& places)
        : along_z(u.z * grid.z.step * places.scale),
          along_y(u.y * grid.y.step * places.scale),
          along_x(u.x * grid.x.step * places.scale),
          extent(kTileColumns / 2 * fabs(along_x) + kTileRows / 2 * fabs(along_y)) {
        const int x = __double2int_rn(along_x), y = __double2int_rn(along_y);
        steps = (x & 0xFFFF) | y << 16;
        const double error = kTileColumns / 2 * fabs(along_x - x) +
                             kTileRows / 2 * fabs(along_y - y) + places.error + 2;
        window = 2u << (31 - __clz((int)error));
        sure = (1u << places.shift) - 2 * window;
    }

    __device__ __forceinline__ unsigned first(const Grid& grid, const Places& places, int count,
                                              const Tile& tile) const {
        const double level = 1u << places.shift;
        const double centre = along_z * (tile.z - grid.z.centre) +
                              along_y * (tile.y + kTileRows / 2 - grid.y.centre) +
                              along_x * (tile.x + kTileColumns / 2 - grid.x.centre) + places.offset;
        // All points of a tile further away are in the first bin, or in none.
        const double near = fmin(fmax(centre, -extent), extent + (count + 1) * level);
        return (unsigned)__double2ll_rn(near + places.guard * level) + window -
               kTileColumns / 2 * (int)(short)steps - kTileRows / 2 * ((int)steps >> 16);
    }
};

// A lane's direction, and its bins of one sign: those in shared memory are at the address `column`,
// `stride` bytes from row to row. Lane `part` of those with this direction counts one in `together`.
struct Counter {
    const Sampling& sampling;
    const Grid& grid;
    const Places& places;
    const Lane& line;
    const Vector* direction;
    Sum* values;
    const unsigned short* queue;
    int part, together;
    unsigned stride;

    __device__ __forceinline__ void add(unsigned row, unsigned column, int sign, int amount) const {
        if (kShared) return shared_add(row * stride + column, amount);
        const int bin = max(0, (int)row - places.guard);
        if (bin < sampling.count) atomicAdd(values + bin, (Sum)(long long)(sign * amount));
    }

    __device__ __forceinline__ unsigned exact_row(const Tile& tile, unsigned point) const {
        const Vector u = *direction;
        const double z = grid.z.position(tile.z), y = grid.y.position(tile.y + (int)(point >> 8)),
                     x = grid.x.position(tile.x + (int)(point & 255));
        return places.guard +
               place(point_height(u, row_height(u, z, y), x), sampling, sampling.levels);
    }

    // Counts the listed points from `at` to `end`. Called by a warp.
    __device__ __forceinline__ void count(const Tile& tile, unsigned first, int at, int end,
                                          unsigned column, int sign) const {
        if (part >= together) at = end;
        if (kPlaces)
            for (; at + 8 * together <= end; at += 8 * together)
                count_eight(tile, first, at + 8 * part, column, sign);
        for (int i = at + part; i < end; i += together) {
            const unsigned point = queue[i], place = dot_low_bytes(line.steps, point, first);
            const bool sure = kPlaces && (place & line.sure);
            add(sure ? place >> places.shift : exact_row(tile, point), column, sign, 1);
        }
        __syncwarp();
    }

    __device__ __forceinline__ void count_eight(const Tile& tile, unsigned first, int at,
                                                unsigned column, int sign) const {
        unsigned points[4];
        shared_load(shared_address(queue) + 2 * at, points);
        bool sure = true;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const unsigned two = points[k / 2],
                           place = k & 1 ? dot_high_bytes(line.steps, two, first)
                                         : dot_low_bytes(line.steps, two, first);
            sure = sure & ((place & line.sure) != 0);
            add(place >> places.shift, column, sign, 1);
        }
        if (sure) return;
#pragma unroll 1
        for (int k = 0; k < 8; ++k) {
            const unsigned point = queue[at + k], place = dot_low_bytes(line.steps, point, first);
            if (place & line.sure) continue;
            add(place >> places.shift, column, sign, -1);
            add(exact_row(tile, point), column, sign, 1);
        }
    }
};

__device__ __forceinline__ int rows_of(const Sampling& sampling, const Places& places) {
    return sampling.count + 2 + 2 * places.guard;
}

__device__ __forceinline__ int copies_of(int directions, int width) {
    return max(1, width / directions);
}

// Adds the bins of a block, `width` in each row, to those of all blocks.
__device__ __forceinline__ void flush(const Sampling& sampling, const Places& places, const Job& job,
                                      int sign, const int* bins, int width, Sum* values) {
    const int directions = job.last - job.first, copies = copies_of(directions, width);
    const int negative = rows_of(sampling, places) * width;
    __syncthreads();
    for (int i = threadIdx.x; i < directions * sampling.count; i += blockDim.x) {
        const int d = i / sampling.count, bin = i - d * sampling.count;
        int sum = 0;
        for (int row = bin ? places.guard + bin : 0; row <= places.guard + bin; ++row)
            for (int copy = 0; copy < copies; ++copy) {
                const int* count = bins + row * width + copy * directions + d;
                sum += count[0] - count[negative];
            }
        if (sum)
            atomicAdd(values + (long long)sampling.rows[job.first + d] * sampling.count + bin,
                      (Sum)(long long)(sign * sum));
    }
}

// A block's job, and its number among the blocks of that job. The sampling has one for each block.
struct SharedJob {
    Job job;
    int rank, blocks;
};

// Shared memory has two sets of bins, for positive and for negative coefficients. A set has `width`
// bins in each row: one for each direction, in as many copies as fit. The host ensures that no bin
// overflows.
extern "C" __global__ void __launch_bounds__(ECC_THREADS, 2)
    count_mask(const Planes planes, const Grid grid, const Sampling sampling, const Places places,
               Sum* values, int width) {
    extern __shared__ uint4 memory[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const SharedJob shared = ((const SharedJob*)sampling.jobs)[blockIdx.x];
    const Job job = shared.job;
    const Owner owner(job.orthant, planes.cubes);
    const int directions = job.last - job.first, together = 32 / directions;
    const int part = lane / directions, own = job.first + lane - part * directions;
    const int copies = copies_of(directions, width), rows = rows_of(sampling, places);
    int* bins = (int*)(memory + kWarps * (kRoom / 8 + 1));
    if (kShared) {
        for (int i = threadIdx.x; i < 2 * rows * width; i += blockDim.x) bins[i] = 0;
        __syncthreads();
    }
    unsigned short* queue = (unsigned short*)(memory + warp * (kRoom / 8 + 1));
    const Vector* direction = sampling.directions + own;
    const Lane line(*direction, grid, places);
    const Counter counter = {sampling, grid, places, line, direction,
                             values + (long long)sampling.rows[own] * sampling.count,
                             queue, part, together, 4u * width};
    const unsigned increases =
                       shared_address(bins) + 4 * (part % copies * directions + own - job.first),
                   decreases = increases + 4 * rows * width;
    const int words = (grid.x.points + kTileColumns - 1) / kTileColumns,
              tiles = (grid.y.points + kTileRows - 1) / kTileRows;
    const int total = grid.z.points * tiles * words;
    for (int at = shared.rank * kWarps + warp; at < total; at += shared.blocks * kWarps) {
        const int above = at / words, z = above / tiles;
        const Tile tile = {z, kTileRows * (above - z * tiles), kTileColumns * (at - above * words)};
        Coefficients found[2];
        find(planes, grid, owner, tile, found);
        if (tile.y + lane >= grid.y.points) found[0].nonzero = found[1].nonzero = 0;
        if (!__any_sync(kAll, found[0].nonzero | found[1].nonzero)) continue;
        const unsigned first = line.first(grid, places, sampling.count, tile);
        // All points at once, or half a word at a time if there is no room for them.
        for (int turn = 0, turns = 1; turn < turns; ++turn) {
            const unsigned half = turn ? 0xFFFFu << (turn & 1) * 16 : kAll;
            const unsigned chosen[2] = {turn < 3 ? half : 0, turn == 0 || turn > 2 ? half : 0};
            Listed listed;
            if (!list(found, chosen, queue, listed)) {
                turns = 5;
                continue;
            }
            counter.count(tile, first, 0, listed.positive, increases, planes.sign);
            counter.count(tile, first, listed.next, listed.next + listed.negative, decreases,
                          -planes.sign);
        }
    }
    if (kShared) flush(sampling, places, job, planes.sign, bins, width, values);
}
