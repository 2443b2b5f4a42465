// Transforms of labelled regions. A window is 2 points wide along each axis. A *corner* is a label in
// a window where it has a critical point in some orthant. It is stored as the window's index, the
// row of the label in a table, and the pattern of the window's points that have this label. The extreme
// points of a region are critical, so the corners also determine its bounding box.
#include "transform.cuh"

typedef ECC_LABEL Label;

struct Labels {
    const Label* data;
    int slices, rows, columns;
    int deep, wide;  // Whether the image has slices, and rows.
};

struct RegionCorners {
    long long* windows;
    int* rows;
    unsigned char* patterns;
    unsigned long long room;  // The number of corners for which there is room.
};

// A table with a row for each label up to `most`. Without ranks, row k is that of label k + 1.
struct RegionRows {
    const int* ranks;  // The row of each label plus 1, or 0; may be null.
    unsigned long long most;
    unsigned* bounds;           // (rows, 6), see `Bound`; 0 at launch
    unsigned long long* found;  // The corners, then the largest label without a row; 0 at launch.
};

// Bounds of a box are kept as numbers that grow with the box and are above 0: row[2 * axis] is that of the
// lowest index along an axis, and row[2 * axis + 1] that of the highest.
struct Bound {
    static constexpr unsigned kMost = 0x80000000u;

    ECC_DEVICE static unsigned of_lowest(int index) { return kMost - index; }
    ECC_DEVICE static unsigned of_highest(int index) { return index + 1; }
    ECC_DEVICE static int lowest(unsigned bound) { return kMost - bound; }
    ECC_DEVICE static int highest(unsigned bound) { return bound - 1; }
};

constexpr unsigned long long kNegative = ~0ull;  // Reported in place of the largest label.

struct WindowEnd {
    int z, y, x;

    // Finds the last point of the window, or the only one along axes that the image does not have.
    ECC_DEVICE WindowEnd(const Labels& image, long long window) {
        const long long line = quotient(window, image.columns + 1);
        const int rows = image.rows + image.wide;
        x = (int)(window - line * (image.columns + 1));
        z = (int)quotient(line, rows);
        y = (int)(line - (long long)z * rows);
    }
};

ECC_DEVICE Label load(const Labels& image, int z, int y, int x) {
    if (z < 0 || z >= image.slices || y < 0 || y >= image.rows || x < 0 || x >= image.columns)
        return 0;
    return image.data[((long long)z * image.rows + y) * image.columns + x];
}

// Finds the bounds of a window's points of a pattern.
ECC_DEVICE void bounds_of(const WindowEnd& place, unsigned pattern, unsigned (&bounds)[6]) {
    const int ends[3] = {place.z, place.y, place.x};
    const unsigned near[3] = {0x0F, 0x33, 0x55};
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        const int end = ends[axis];  // With padding, the points are at `end` and `end + 1`.
        bounds[2 * axis] = Bound::of_lowest(pattern & near[axis] ? end : end + 1);
        bounds[2 * axis + 1] = Bound::of_highest(pattern & ~near[axis] & 0xFF ? end + 1 : end);
    }
}

ECC_DEVICE void widen(unsigned* bound, unsigned to) {
    if (to > *(const volatile unsigned*)bound) atomicMax(bound, to);  // Most do not change it.
}

// Widens the boxes of the corners of a warp, one in each lane that has `found` one. In most warps all are
// of one region, for which six lanes widen one bound each.
ECC_DEVICE void widen_boxes(const RegionRows& table, bool found, int row, const WindowEnd& place,
                            unsigned pattern) {
    unsigned own[6] = {};
    if (found) bounds_of(place, pattern, own);
    const int some = __reduce_max_sync(kWarp, found ? row : -1);
    if (some < 0) return;
    if (__any_sync(kWarp, found && row != some)) {
        if (!found) return;
#pragma unroll
        for (int i = 0; i < 6; ++i) widen(table.bounds + 6ll * row + i, own[i]);
        return;
    }
    const int lane = threadIdx.x & 31;
    unsigned of_lane = 0;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        const unsigned widest = __reduce_max_sync(kWarp, own[i]);
        if (lane == i) of_lane = widest;
    }
    if (lane < 6) widen(table.bounds + 6ll * some + lane, of_lane);
}

// Lists the corners of all windows that have a row, as far as there is room, counts them, and widens the
// boxes of their regions. The bits of critical[pattern] tell in which orthants the coefficient of the
// pattern is not zero. Labels may change at any time, so a label is read once.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_corners(const Labels image, const RegionCorners corners, const RegionRows table,
                 const unsigned char* critical, long long windows) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31;
    const WindowEnd place(image, at < windows ? at : 0);
    Label window[8], label = 0;
    unsigned long long without_row = 0;
    if (at < windows) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int z = i >> 2, y = i >> 1 & 1, x = i & 1;
            const bool present = (image.deep || !z) && (image.wide || !y);
            window[i] = present ? load(image, place.z - image.deep + z, place.y - image.wide + y,
                                       place.x - 1 + x)
                                : 0;
            if (window[i] < 0) without_row = kNegative;
            label = max(label, window[i]);
        }
    }
    while (__any_sync(kWarp, label > 0)) {
        unsigned pattern = 0;
        Label next = 0;
        int row = -1;
        if (label > 0) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                pattern |= (unsigned)(window[i] == label) << i;
                if (window[i] < label) next = max(next, window[i]);
            }
            const unsigned long long number = label;
            if (number > table.most)
                without_row = max(without_row, number);
            else
                row = (table.ranks ? table.ranks[number] : (int)number) - 1;
        }
        const bool found = row >= 0 && critical[pattern];
        const unsigned some = __ballot_sync(kWarp, found);
        unsigned long long first = 0;
        if (some && lane == 0) first = atomicAdd(table.found, (unsigned long long)__popc(some));
        first = __shfl_sync(kWarp, first, 0);
        const unsigned long long i = first + __popc(some & ((1u << lane) - 1));
        if (found && i < corners.room) {
            corners.windows[i] = at;
            corners.rows[i] = row;
            corners.patterns[i] = (unsigned char)pattern;
        }
        widen_boxes(table, found, row, place, pattern);
        label = next;
    }
    if (without_row) atomicMax(table.found + 1, without_row);
}

// Numbers the regions that have a box, in the order of their rows, by one block. Writes their number to
// `count`, the number of each row, and at most `room` labels, which are the `ids` of rows if there are any,
// and boxes (regions, axis, 2) of the lowest and highest padded index.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    number_regions(const unsigned* bounds, int rows, const long long* ids, long long room,
                   int* numbers, long long* count, long long* labels, int* boxes) {
    __shared__ int warps[ECC_THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int before = 0;  // Regions of earlier rows.
    for (int first = 0; first < rows; first += ECC_THREADS) {
        const int row = first + threadIdx.x;
        const unsigned* own = bounds + 6ll * row;
        const bool present = row < rows && own[0];
        const unsigned some = __ballot_sync(kWarp, present);
        if (lane == 0) warps[warp] = __popc(some);
        __syncthreads();
        int number = before + __popc(some & ((1u << lane) - 1));
        for (int i = 0; i < ECC_THREADS / 32; ++i) {
            if (i < warp) number += warps[i];
            before += warps[i];
        }
        __syncthreads();
        if (!present) continue;
        numbers[row] = number;
        if (number >= room) continue;
        labels[number] = ids ? ids[row] : row + 1ll;
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            boxes[6 * number + 2 * axis] = Bound::lowest(own[2 * axis]);
            boxes[6 * number + 2 * axis + 1] = Bound::highest(own[2 * axis + 1]);
        }
    }
    if (threadIdx.x == 0) *count = before;
}

struct Measures {
    const int* boxes;
    const double* scales;             // Units of the levels of each region; null if all are 1.
    int regions;                      // The number of regions.
    const signed char* coefficients;  // (orthant, pattern)
    double spacing[3];
    int cubes;
};

// Returns the coordinate, from the centre of the box, of the owner in a window: the point furthest along
// the direction (V), or the middle of the window (T). `twice` is twice its distance in steps, an integer.
ECC_DEVICE double centred(int place, const int* box, bool negative, bool cubes, double spacing) {
    const int twice = 2 * place - (box[0] + box[1]) + (cubes ? 1 : negative ? 0 : 2);
    return __dmul_rn(twice * 0.5, spacing);
}

// Adds corners to the bins (regions, directions, levels) of the directions of a job, which is the
// second index of the block.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    count_regions(const Labels image, const RegionCorners corners, const int* numbers,
                  long long count, const Measures measures, const Sampling sampling, Sum* values) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const Job job = sampling.jobs[blockIdx.y];
    const int weight = measures.coefficients[256 * job.orthant + corners.patterns[at]];
    if (!weight) return;
    const long long region = numbers[corners.rows[at]];
    if (region >= measures.regions) return;  // Labels changed since there was room for it.
    const WindowEnd where(image, corners.windows[at]);
    const int* box = measures.boxes + 6 * region;
    const bool cubes = measures.cubes;
    const double z = centred(where.z, box, job.orthant & 4, cubes, measures.spacing[0]);
    const double y = centred(where.y, box + 2, job.orthant & 2, cubes, measures.spacing[1]);
    const double x = centred(where.x, box + 4, job.orthant & 1, cubes, measures.spacing[2]);
    const double scale = measures.scales ? measures.scales[region] : 1.0;
    Sum* own = values + region * sampling.directions_count * sampling.count;
    for (int d = job.first; d < job.last; ++d) {
        const Vector u = sampling.directions[d];
        const double height = point_height(u, row_height(u, z, y), x);
        const int bin = place(height, measures.scales ? height / scale : height, sampling,
                              [&](int i) { return __dmul_rn(sampling.levels[i], scale); });
        if (bin < sampling.count)
            atomicAdd(own + (long long)sampling.rows[d] * sampling.count + bin,
                      (Sum)(long long)weight);
    }
}
