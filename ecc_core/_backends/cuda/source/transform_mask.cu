// The transform of a mask. A warp walks through a block of points, slice by slice: 32 rows of 64
// points, a row in each lane. It finds the critical points on planes of bits along the last axis
// (ecc_core/_orthants.py defines them), and lists them. Then every lane counts listed points in one
// direction. A lane has bins of its own if there is room, so that the additions of a warp to shared
// memory do not wait for each other.
#include "device.cuh"
#include "mask_points.cuh"
#include "transform.cuh"

constexpr bool kShared = ECC_SHARED;  // Whether bins are in shared memory.
constexpr bool kPlaces = ECC_PLACES;  // Whether most bins are found by integers (struct Places).
constexpr int kWarps = ECC_THREADS / 32;
// The most points that the list of a warp holds, enough for 8 columns of a tile.
constexpr int kRoom = 512;

// Evenly spaced levels divide heights into rows of bins. The place of a height is a 32-bit integer:
// the row, and in the lowest `shift` bits how far the height is above the level below. The first
// bin is in row `guard`; rows before it, and after the last, are for tiles partly beyond the levels.
struct Places {
    double scale, offset;  // Place = height * scale + offset, before the rows of the guard.
    double error;          // Bound of the error of a place, as levels are not exactly even.
    int shift, guard;
};

// Computes the places of a tile's points in a direction: first() plus the products of `steps` and a point's
// column and row, and of `step_z` and its slice. Steps are rounded to 16 bits, so that a place may be off
// by less than `window`, which is added to every place. If any of the bits `sure` is set, the place is
// further than that from the limits of its row, which is then right.
struct MaskLane {
    unsigned steps, step_z, window, sure;

    // Steps from point to point along each axis, in units of places.
    struct Steps {
        double z, y, x;

        ECC_DEVICE Steps(const Vector& u, const Grid& grid, const Places& places)
            : z(fabs(u.z) * grid.z.step * places.scale),
              y(fabs(u.y) * grid.y.step * places.scale),
              x(fabs(u.x) * grid.x.step * places.scale) {}
    };

    ECC_DEVICE MaskLane(const Vector& u, const Grid& grid, const Places& places, int slices) {
        const Steps along(u, grid, places);
        const int x = __double2int_rn(along.x), y = __double2int_rn(along.y),
                  z = __double2int_rn(along.z);
        steps = x | y << 16, step_z = z;
        const double error = kTileColumns / 2 * fabs(along.x - x) +
                             kTileRows / 2 * fabs(along.y - y) + 0.5 * slices * fabs(along.z - z) +
                             places.error + 1;
        window = 2u << (31 - __clz((int)error));
        sure = (1u << places.shift) - 2 * window;
    }

    ECC_DEVICE unsigned first(const Vector& u, const Grid& grid, const Places& places, int count,
                              const Tile& tile, int slices, int orthant) const {
        const Steps along(u, grid, places);
        const double level = 1u << places.shift;
        const int back_z = orthant >> 2, back_y = orthant >> 1 & 1, back_x = orthant & 1;
        const double centre =
            (back_z ? -along.z : along.z) * (tile.z + 0.5 * slices - grid.z.centre) +
            (back_y ? -along.y : along.y) * (tile.y + kTileRows / 2 - grid.y.centre) +
            (back_x ? -along.x : along.x) * (tile.x + kTileColumns / 2 - grid.x.centre) +
            places.offset;
        // The largest distance of a point from the centre.
        const double extent =
            kTileColumns / 2 * along.x + kTileRows / 2 * along.y + 0.5 * slices * along.z;
        // A tile that is further away is moved here, where all of its points are still in the first bin, or
        // in none, so that places do not overflow.
        const double near = fmin(fmax(centre, -extent), extent + (count + 1) * level);
        return (unsigned)__double2ll_rn(near + places.guard * level -
                                        (0.5 * slices - back_z) * step_z) +
               window - (kTileColumns / 2 - back_x) * (steps & 0xFFFF) -
               (kTileRows / 2 - back_y) * (steps >> 16);
    }

    ECC_DEVICE unsigned place(unsigned point, unsigned first) const {
        return dot_high_bytes(step_z, point, dot_low_bytes(steps, point, first));
    }
};

// A lane's direction, and its bins: those in shared memory are at the address `column`, `stride` bytes
// from row to row. The direction is shared by `together` lanes, of which this one is number `part`; each
// counts its part of the points.
struct MaskCounter {
    const Sampling& sampling;
    const Grid& grid;
    const Places& places;
    const MaskLane& line;
    const Vector* direction;
    Sum* values;
    int part, together;
    unsigned stride, reverse;  // `reverse` makes a listed point one in the order of memory.

    ECC_DEVICE void add(unsigned row, unsigned column, int sign, int amount) const {
        if (kShared) return shared_add(row * stride + column, amount);
        const int bin = max(0, (int)row - places.guard);
        if (bin < sampling.count) atomicAdd(values + bin, (Sum)(long long)(sign * amount));
    }

    ECC_DEVICE unsigned exact_row(const Tile& tile, unsigned listed) const {
        const Vector u = *direction;
        const unsigned point = listed ^ reverse;
        const double z = grid.z.position(tile.z + (int)(point >> 16)),
                     y = grid.y.position(tile.y + (int)(point >> 8 & 255)),
                     x = grid.x.position(tile.x + (int)(point & 255));
        return places.guard +
               place(point_height(u, row_height(u, z, y), x), sampling, sampling.levels);
    }

    // Counts listed points, the first of which is `at`, and the others after or before it; only as many
    // as keep all lanes busy, unless it is to count `all`. Returns how many are left, as the first ones
    // of the list. Called by a warp.
    ECC_DEVICE int count(const Tile& tile, unsigned first, unsigned* at, int step, int points,
                         bool all, unsigned column, int sign) const {
        const int turn = 8 * together;
        int done = 0;
        __syncwarp();
        if (kPlaces) {
            const unsigned* own = at + 8 * part * step - (step < 0 ? 3 : 0);
            for (; done + turn <= points; done += turn, own += turn * step)
                if (part < together) count_eight(tile, first, own, 4 * step, column, sign);
        }
        for (int i = done + part; (all || !kPlaces) && part < together && i < points;
             i += together) {
            const unsigned point = at[i * step], place = line.place(point, first);
            const bool sure = kPlaces && (place & line.sure);
            add(sure ? place >> places.shift : exact_row(tile, point), column, sign, 1);
        }
        __syncwarp();
        if (all || !kPlaces) return 0;
        const int left = points - done;
        for (int i = threadIdx.x & 31; done && i < left; i += 32)
            at[i * step] = at[(done + i) * step];
        __syncwarp();
        return left;
    }

    ECC_DEVICE void count_eight(const Tile& tile, unsigned first, const unsigned* at, int next,
                                unsigned column, int sign) const {
        unsigned points[2][4];
        shared_load(shared_address(at), points[0]);
        shared_load(shared_address(at + next), points[1]);
        bool sure = true;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const unsigned place = line.place(points[k / 4][k % 4], first);
            sure = sure & ((place & line.sure) != 0);
            add(place >> places.shift, column, sign, 1);
        }
        if (sure) return;
        // Points are loaded again, since keeping their places would take registers from the loop above.
        unsigned doubtful = 0;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            shared_load(shared_address(at + i * next), points[i]);
#pragma unroll
            for (int k = 0; k < 4; ++k)
                doubtful |= line.place(points[i][k], first) & line.sure ? 0 : 1u << (4 * i + k);
        }
#pragma unroll 1
        for (; doubtful; doubtful &= doubtful - 1) {
            const int k = __ffs(doubtful) - 1;
            const unsigned point = at[k / 4 * next + k % 4];
            add(line.place(point, first) >> places.shift, column, sign, -1);
            add(exact_row(tile, point), column, sign, 1);
        }
    }
};

// Adds the bins of a block, of which each of `rows` has `width`, to those of all blocks.
ECC_DEVICE void flush(const Sampling& sampling, const Places& places, const Job& job, int sign,
                      const int* bins, int rows, int width, int copies, Sum* values) {
    const int directions = job.last - job.first, negative = rows * width;
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

// Lists the critical points of a slice at the columns in `chosen`. Returns false, and lists none, if there
// is no room for all of them. Called by a warp.
ECC_DEVICE bool list(const MaskCoefficients& found, const unsigned (&chosen)[2], int slice,
                     unsigned reverse, MaskQueue& queue) {
    const int lane = threadIdx.x & 31, column = reverse & 1 ? -1 : 1;
    unsigned up[2], down[2], twice[2], positive = 0, negative = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        up[i] = found.up[i] & chosen[i], down[i] = found.down[i] & chosen[i];
        twice[i] = found.twice[i] & chosen[i];
        positive += __popc(up[i]), negative += __popc(down[i]) + __popc(twice[i]);
    }
    const unsigned end = running_sum(positive | negative << 16, lane),
                   total = __shfl_sync(kWarp, end, 31);
    const int ups = total & 0xFFFF, downs = total >> 16;
    if (queue.positive + queue.negative + ups + downs > kRoom) return false;
    const unsigned first = lane << 8 | slice << 16;
    unsigned* at = queue.points + queue.positive + ((end & 0xFFFF) - positive);
    for (int i = 0; i < 2; ++i) list(up[i], (first + 32 * i) ^ reverse, column, at, 1);
    at = queue.points + kRoom - 1 - queue.negative - ((end >> 16) - negative);
    for (int i = 0; i < 2; ++i) list(down[i], (first + 32 * i) ^ reverse, column, at, -1);
    for (int i = 0; i < 2; ++i) list(twice[i], (first + 32 * i) ^ reverse, column, at, -1);
    queue.positive += ups, queue.negative += downs;
    return true;
}

// How far a warp has listed the points of a tile: all slices before `done` are listed. A slice with more
// points than fit is listed by 8 columns at a time.
struct Progress {
    int done, part;
    bool stuck;  // Whether nothing could be added to the queue.

    // Lists points until there may be no room for more. Called by a warp.
    ECC_DEVICE void list(const Planes& planes, const Grid& grid, const Owner& owner,
                         const Tile& tile, int slices, unsigned reverse, MaskQueue& queue) {
        // Slices are read in the order in which cells reach to the one before.
        const bool deep = grid.z.present;
        const int step = owner.z.here - owner.z.far;
        const unsigned exists = tile.y + (int)(threadIdx.x & 31) < grid.y.points ? ~0u : 0;
        int slice = step > 0 ? done : slices - 1 - done;
        Reader reader(planes, grid, owner, tile, tile.z + slice + (deep ? owner.z.far : 0), step);
        MaskCells far = {};
        if (deep) {
            reader.load();
            far = reader.cells(~0u);
        }
        int points = queue.positive + queue.negative, before = points;
        stuck = true;
        do {
            reader.load();
            const MaskCells here = reader.cells(exists);
            const MaskCoefficients found(here, far);
            if (__any_sync(kWarp, found.any())) {
                const unsigned chosen[2] = {part ? part < 5 ? 0xFFu << 8 * (part - 1) : 0 : ~0u,
                                            part ? part < 5 ? 0 : 0xFFu << 8 * (part - 5) : ~0u};
                if (!::list(found, chosen, slice, reverse, queue)) {
                    if (points == 0) part = 1;
                    return;
                }
                stuck = false;
                if (part && ++part < 9) return;
                part = 0;
            }
            before = points, points = queue.positive + queue.negative;
            far = here, slice += step, ++done;
        } while (done < slices && 2 * points - before <= kRoom);
    }
};

// The job of a block, the rank of the block among the blocks of this job, and their number.
// `Sampling::jobs` holds a SharedJob for each block.
struct SharedJob {
    Job job;
    int rank, blocks;
};

// Shared memory has two sets of bins, for positive and for negative coefficients. A set has `width`
// bins in each row: one for each direction, in as many copies as fit. A warp takes `slices` slices of
// rows at a time. The host ensures that no bin overflows.
extern "C" __global__ void __launch_bounds__(ECC_THREADS, 2)
    count_mask(const Planes planes, const Grid grid, const Sampling sampling, const Places places,
               Sum* values, int width, int slices) {
    extern __shared__ uint4 memory[];
    __shared__ int taken;  // The number of units of the block that its warps have taken.
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const SharedJob shared = ((const SharedJob*)sampling.jobs)[blockIdx.x];
    const Job job = shared.job;
    const Owner owner(job.orthant, planes.cubes);
    const int directions = job.last - job.first, together = 32 / directions;
    const int part = lane / directions, own = job.first + lane - part * directions;
    const int copies = max(1, width / directions), rows = sampling.count + 2 + 2 * places.guard;
    int* bins = (int*)(memory + kWarps * (kRoom / 4));
    if (kShared)
        for (int i = threadIdx.x; i < 2 * rows * width; i += blockDim.x) bins[i] = 0;
    if (threadIdx.x == 0) taken = kWarps;
    __syncthreads();
    const Vector* direction = sampling.directions + own;
    const unsigned reverse = (job.orthant & 1 ? kTileColumns - 1 : 0) |
                             (job.orthant & 2 ? kTileRows - 1 : 0) << 8 |
                             (job.orthant & 4 ? slices - 1 : 0) << 16;
    const MaskLane line(*direction, grid, places, slices);
    const MaskCounter counter = {
        sampling, grid,      places,
        line,     direction, values + (long long)sampling.rows[own] * sampling.count,
        part,     together,  4u * width,
        reverse};
    const unsigned increases =
                       shared_address(bins) + 4 * (part % copies * directions + own - job.first),
                   decreases = increases + 4 * rows * width;
    MaskQueue queue = {(unsigned*)(memory + warp * (kRoom / 4)), 0, 0};
    const int words = (grid.x.points + kTileColumns - 1) / kTileColumns,
              tiles = (grid.y.points + kTileRows - 1) / kTileRows;
    const int total = (grid.z.points + slices - 1) / slices * tiles * words;
    for (int next = warp;;) {
        const int at = (next / kWarps * shared.blocks + shared.rank) * kWarps + next % kWarps;
        if (at >= total) break;
        if (lane == 0) next = atomicAdd(&taken, 1);
        next = __shfl_sync(kWarp, next, 0);
        const int above = at / words, deep = above / tiles;
        const Tile tile = {slices * deep, kTileRows * (above - deep * tiles),
                           kTileColumns * (at - above * words)};
        const int present = min(slices, grid.z.points - tile.z);
        const unsigned first =
            line.first(*direction, grid, places, sampling.count, tile, slices, job.orthant);
        Progress progress = {0, 0, false};
        while (progress.done < present) {
            progress.list(planes, grid, owner, tile, present, reverse, queue);
            const bool all = progress.stuck || progress.part || progress.done == present;
            queue.positive = counter.count(tile, first, queue.points, 1, queue.positive, all,
                                           increases, planes.sign);
            queue.negative = counter.count(tile, first, queue.points + kRoom - 1, -1,
                                           queue.negative, all, decreases, -planes.sign);
        }
    }
    if (kShared) flush(sampling, places, job, planes.sign, bins, rows, width, copies, values);
}
