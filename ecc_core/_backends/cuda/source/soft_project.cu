// Soft curves of the heights of weighted points in several directions.
//
// Sums run over all points and levels, without windows or tables. Each block writes the sums of a chunk of
// points, and these are added in order, so that results do not depend on the schedule. The sigmoids of a
// direction depend only on points and levels, so that a block computes them once for several images.
#include "soft_projected.cuh"

constexpr int kMostChunks = 8;  // The most chunks of points whose sums the last block adds up.
constexpr int kTogether = 4;    // Points of a thread at once, to hide the latency of sigmoids.

// The number of levels that the threads of a block take at a time, and the number of parts into which the
// threads of one level divide the points. Both are powers of two, whose product is the number of threads.
struct Division {
    int levels, count;

    ECC_DEVICE explicit Division(int wanted) : levels(1) {
        while (levels < wanted && levels < kThreads) levels *= 2;
        count = kThreads / levels;
    }
};

// The sums of an image over the points that a thread takes.
template <class Number>
struct Sums {
    Number curve, by_level, by_sharpness;
};

// The results: curves (images, directions, levels), and their derivatives by the level and by the
// sharpness.
struct Projected {
    Real *curves, *slopes, *spreads;

    // Adds up the sums of all chunks, in order, for a direction and the images of a block. It is not
    // inlined, since the sums of chunks need all registers.
    __device__ __noinline__ void add_chunks(const double* partial, int chunks, int images,
                                            int directions, int levels) const {
        const int direction = blockIdx.y, first_image = blockIdx.z * kImages;
        const int own = min(kImages, images - first_image) * levels;
        const long long size = (long long)images * directions * levels;
        for (int i = threadIdx.x; i < 3 * own; i += kThreads) {
            const int kind = i / own, image = first_image + i % own / levels;
            const long long at = ((long long)image * directions + direction) * levels + i % levels;
            double parts[kMostChunks];  // All are read before they are added.
#pragma unroll
            for (int chunk = 0; chunk < kMostChunks; ++chunk)
                parts[chunk] = chunk < chunks ? partial[(3LL * chunk + kind) * size + at] : 0;
            double total = 0;
#pragma unroll
            for (int chunk = 0; chunk < kMostChunks; ++chunk) total += parts[chunk];
            (kind == 0 ? curves : kind == 1 ? slopes : spreads)[at] = (Real)total;
        }
    }
};

// The sums of each thread over the points that it takes, of the kinds of `Sums` for each image. They are in
// shared memory, since they change once for a tile of points, and registers are short.
struct BlockSums {
    double (*of)[kThreads];  // (3 * kImages, threads)

    ECC_DEVICE void clear() const {
#pragma unroll
        for (int i = 0; i < 3 * kImages; ++i) of[i][threadIdx.x] = 0;
    }
    ECC_DEVICE void add(const Sums<Real> (&sums)[kImages]) const {
#pragma unroll
        for (int k = 0; k < kImages; ++k) {
            of[3 * k][threadIdx.x] += sums[k].curve;
            of[3 * k + 1][threadIdx.x] += sums[k].by_level;
            of[3 * k + 2][threadIdx.x] += sums[k].by_sharpness;
        }
    }
    // Returns a sum over all parts of the block, in order, at a level of those that it takes.
    ECC_DEVICE double total(int i, const Division& parts, int level) const {
        double sum = 0;
        for (int part = 0; part < parts.count; ++part) sum += of[i][part * parts.levels + level];
        return sum;
    }
};

// Writes partial sums (chunks, 3, images, directions, levels) of the results. With tickets (groups of
// images, directions), which are zero at launch, the last block of a direction and of its images adds them
// up.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_project(const ProjectedPoints points, double* partial, unsigned* tickets,
                 const Projected found) {
    __shared__ Real heights[kThreads];
    __shared__ Weights weights[kThreads];
    __shared__ unsigned has_weight[kThreads / kTogether];  // A byte for each point.
    __shared__ double scratch[3 * kImages][kThreads];
    const BlockSums totals{scratch};
    const int direction = blockIdx.y, first_image = blockIdx.z * kImages;
    const int orthant = points.orthant(direction), images = points.images;
    const long long begin = (long long)blockIdx.x * points.chunk,
                    end = min(begin + points.chunk, points.points);
    const Real l = points.sharpness[0];
    const long long size = (long long)images * points.directions_count * points.levels_count;
    const Division parts(points.levels_count);
    const int part = threadIdx.x / parts.levels;
    for (int first = 0; first < points.levels_count; first += parts.levels) {
        const int j = first + threadIdx.x % parts.levels;
        const Real level = j < points.levels_count ? points.levels[j] : 0;
        __syncthreads();  // The sums of other levels have been read.
        totals.clear();
        for (long long tile = begin; tile < end; tile += kThreads) {
            const long long point = tile + threadIdx.x;
            __syncthreads();
            bool is_needed = false;
#pragma unroll
            for (int k = 0; k < kImages; ++k) {
                const bool inside = point < end && first_image + k < images;
                const Real own = inside ? points.weight(first_image + k, orthant, point) : 0;
                weights[threadIdx.x].of[k] = own;
                is_needed = is_needed || own != 0;
            }
            ((unsigned char*)has_weight)[threadIdx.x] = is_needed;
            Real at[kAxes];
            points.places(point, at);
            heights[threadIdx.x] = points.height(direction, at);
            __syncthreads();
            Sums<Real> sums[kImages] = {};
            for (int i = kTogether * part; i < kThreads; i += kTogether * parts.count) {
                if (has_weight[i / kTogether] == 0) continue;
#pragma unroll
                for (int own = i; own < i + kTogether; ++own) {
                    const Weights weight = weights[own];
                    const Real distance = level - heights[own];
                    const Sigmoid s(l * distance);
                    const Real by_sharpness = s.slope * distance;
#pragma unroll
                    for (int k = 0; k < kImages; ++k) {
                        sums[k].curve += weight.of[k] * s.s;
                        sums[k].by_level += weight.of[k] * s.slope;
                        sums[k].by_sharpness += weight.of[k] * by_sharpness;
                    }
                }
            }
            totals.add(sums);
        }
        __syncthreads();
        const int levels = min(parts.levels, points.levels_count - first);
        const int own_images = min(kImages, images - first_image);
        for (int i = threadIdx.x; i < 3 * own_images * parts.levels; i += kThreads) {
            const int sum = i / parts.levels, own = i % parts.levels;
            if (own >= levels) continue;
            const int image = first_image + sum / 3, kind = sum % 3;
            const double factor = kind == 1 ? (double)l : 1.0;
            const long long row = (long long)image * points.directions_count + direction;
            partial[((long long)blockIdx.x * 3 + kind) * size + row * points.levels_count + first +
                    own] = totals.total(sum, parts, own) * factor;
        }
    }
    if (!tickets) return;
    __shared__ bool is_last;
    __threadfence();  // Other blocks read the sums from memory.
    __syncthreads();
    unsigned* ticket = tickets + blockIdx.z * points.directions_count + direction;
    if (threadIdx.x == 0) is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    found.add_chunks(partial, gridDim.x, images, points.directions_count, points.levels_count);
}

// Adds up partial sums (chunks, gridDim.y, size) over chunks; blocks of each y write an array.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_total(const double* partial, Real* first, Real* second, Real* third, long long size,
               int chunks) {
    const long long index = (long long)blockIdx.x * kThreads + threadIdx.x;
    if (index >= size) return;
    double total = 0;
    for (int chunk = 0; chunk < chunks; ++chunk)
        total += partial[((long long)chunk * gridDim.y + blockIdx.y) * size + index];
    (blockIdx.y == 0 ? first : blockIdx.y == 1 ? second : third)[index] = (Real)total;
}
