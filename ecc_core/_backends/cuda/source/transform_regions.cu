// Transforms of labelled regions. A window is 2 points wide along each axis. A *corner* is a label in
// a window where it has a critical point in some orthant. It is stored as the window's index, the
// label, and the pattern of the window's points that have this label. The extreme points of a
// region are critical, so the corners also determine its bounding box.
#include "transform.cuh"

typedef ECC_LABEL Label;

struct Labels {
    const Label* data;
    int slices, rows, columns;
    int deep, wide;  // whether the image has slices, and rows
};

struct RegionCorners {
    long long* windows;
    long long* labels;
    unsigned char* patterns;
};

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

// Counts the corners of all windows, and lists those for which there is room, as labels may change
// between the call that counts and the one that lists. The bits of critical[pattern] tell in which
// orthants the coefficient of the pattern is not zero.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_corners(const Labels image, const unsigned char* critical, long long windows,
                 const RegionCorners corners, unsigned long long room, unsigned long long* count) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31;
    Label window[8], label = 0;
    if (at < windows) {
        const WindowEnd place(image, at);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int z = i >> 2, y = i >> 1 & 1, x = i & 1;
            const bool present = (image.deep || !z) && (image.wide || !y);
            window[i] = present ? load(image, place.z - image.deep + z, place.y - image.wide + y,
                                       place.x - 1 + x)
                                : 0;
            label = max(label, window[i]);
        }
    }
    while (__any_sync(0xFFFFFFFFu, label > 0)) {
        unsigned pattern = 0;
        Label next = 0;
        if (label > 0) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                pattern |= (unsigned)(window[i] == label) << i;
                if (window[i] < label) next = max(next, window[i]);
            }
        }
        const bool found = label > 0 && critical[pattern];
        const unsigned some = __ballot_sync(0xFFFFFFFFu, found);
        unsigned long long first = 0;
        if (some && lane == 0) first = atomicAdd(count, (unsigned long long)__popc(some));
        first = __shfl_sync(0xFFFFFFFFu, first, 0);
        const unsigned long long i = first + __popc(some & ((1u << lane) - 1));
        if (found && i < room) {
            corners.windows[i] = at;
            corners.labels[i] = label;
            corners.patterns[i] = (unsigned char)pattern;
        }
        label = next;
    }
}

ECC_DEVICE void widen(int* box, int place, bool near, bool far) {
    const int lowest = near ? place : place + 1, highest = far ? place + 1 : place;
    if (lowest < box[0]) atomicMin(box, lowest);
    if (highest > box[1]) atomicMax(box + 1, highest);
}

// Widens the boxes (regions, axis, 2): the lowest and the highest index of each region, with padding.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    measure_regions(const Labels image, const RegionCorners corners, const long long* regions,
                    long long count, int* boxes) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const WindowEnd place(image, corners.windows[at]);
    const unsigned pattern = corners.patterns[at];
    int* box = boxes + 6 * regions[at];
    widen(box, place.z, pattern & 0x0F, pattern & 0xF0);
    widen(box + 2, place.y, pattern & 0x33, pattern & 0xCC);
    widen(box + 4, place.x, pattern & 0x55, pattern & 0xAA);
}

struct Measures {
    const int* boxes;
    const double* scales;             // units of the levels of each region; null if all are 1
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
    count_regions(const Labels image, const RegionCorners corners, const long long* regions,
                  long long count, const Measures measures, const Sampling sampling, Sum* values) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const Job job = sampling.jobs[blockIdx.y];
    const int weight = measures.coefficients[256 * job.orthant + corners.patterns[at]];
    if (!weight) return;
    const long long region = regions[at];
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
