// The gradients of soft curves of the heights of weighted points, by the same sums as soft_project.cu.
#include "soft_projected.cuh"
#include "soft_totals.cuh"

// Adds up the sums of a block, and writes them.
ECC_DEVICE void write_block_sums(double (&sums)[kAxes], double* out) {
    __shared__ double scratch[kAxes][kThreads / 32];
    __syncthreads();  // All threads have read the sums of the call before.
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) {
        const double own = warp_sum(sums[axis]);
        if (threadIdx.x % 32 == 0) scratch[axis][threadIdx.x / 32] = own;
    }
    __syncthreads();
    if (threadIdx.x >= kAxes) return;
    double total = 0;
    for (int warp = 0; warp < kThreads / 32; ++warp) total += scratch[threadIdx.x][warp];
    out[threadIdx.x] = total;
}

// The gradients of the loss by the curves of the images of a block at a level.
typedef Weights Gradients;

// Threads that share a point. Each takes every so many levels, then every so many images. More than one
// keep a device busy with few points.
constexpr int kParts = ECC_PARTS;
constexpr int kPoints = kThreads / kParts;  // Points that a block takes at once.
constexpr int kOwnImages = kImages < kParts ? 1 : kImages / kParts;  // Images of a thread.

// Sums over levels of the steps of a point, and of their slopes, times the gradients of the curves of each
// image.
struct PointSums {
    Real curve[kImages] = {}, slope[kImages] = {};

    ECC_DEVICE void add_levels(const Real* levels, const Gradients* gradients, int count,
                               Real height, Real l) {
#pragma unroll 4
        for (int j = part(); j < count; j += kParts) {
            const Sigmoid s(l * (levels[j] - height));
            const Gradients upstream = gradients[j];
#pragma unroll
            for (int image = 0; image < kImages; ++image) {
                curve[image] += upstream.of[image] * s.s;
                slope[image] += upstream.of[image] * s.slope;
            }
        }
    }
    // Adds up the sums of the threads of a point, in order. The first sums of a thread become those of its
    // own images. Called by all threads.
    ECC_DEVICE void add_parts() {
        if constexpr (kParts > 1) {
            __shared__ Real shared[2][kImages][kThreads];
#pragma unroll
            for (int image = 0; image < kImages; ++image) {
                shared[0][image][threadIdx.x] = curve[image];
                shared[1][image][threadIdx.x] = slope[image];
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < kOwnImages; ++i) {
                const int image = min(image_of(i), kImages - 1), point = threadIdx.x % kPoints;
                curve[i] = slope[i] = 0;
#pragma unroll
                for (int part = 0; part < kParts; ++part) {
                    curve[i] += shared[0][image][part * kPoints + point];
                    slope[i] += shared[1][image][part * kPoints + point];
                }
            }
            __syncthreads();
        }
    }
    // Returns which part of the levels and images this thread takes.
    static ECC_DEVICE int part() { return kParts == 1 ? 0 : threadIdx.x / kPoints; }
    // Returns an image of this thread, as counted in its block.
    static ECC_DEVICE int image_of(int i) { return part() + i * kParts; }
};

// Adds up the sums of a block for each of the images, whose rows are so far apart, or those of all images if
// `images` is 0. Called by all threads.
ECC_DEVICE void write_image_sums(const double (&sums)[kOwnImages][kAxes], double* out,
                                 long long between_rows, int images) {
    double own[kAxes] = {};
    if (!images) {
#pragma unroll
        for (int i = 0; i < kOwnImages; ++i)
#pragma unroll
            for (int axis = 0; axis < kAxes; ++axis) own[axis] += sums[i][axis];
        write_block_sums(own, out);
        return;
    }
#pragma unroll
    for (int i = 0; i < kOwnImages; ++i)
        for (int image = i * kParts; image < min((i + 1) * kParts, images); ++image) {
#pragma unroll
            for (int axis = 0; axis < kAxes; ++axis)
                own[axis] = image == PointSums::image_of(i) ? sums[i][axis] : 0;
            write_block_sums(own, out + image * between_rows);
        }
}

// Writes the gradients of weights and partial sums (chunks, rows, directions, axes) of the gradients of
// vectors, where they are wanted. There is a row for each image if `by_image`, otherwise one for the images
// of a block. A block takes a chunk of points in all directions of an orthant. Further blocks along z,
// behind those of the images, write the gradients of levels and sharpness.
extern "C" __global__ void __launch_bounds__(kThreads)
    soft_by_points(const ProjectedPoints points, const Real* gradients, Real* by_weights,
                   double* partial, int chunk, int by_image, const Totals totals) {
    __shared__ Real levels[kThreads];
    __shared__ Gradients steps[kThreads];
    const int groups = (points.images + kImages - 1) / kImages;
    if ((int)blockIdx.z >= groups) {
        totals.write(((blockIdx.z - groups) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
        return;
    }
    const int orthant = blockIdx.y, first_image = blockIdx.z * kImages;
    const int images = min(points.images - first_image, kImages);
    const long long begin = (long long)blockIdx.x * chunk, end = min(begin + chunk, points.points);
    const long long between_images = points.points << kAxes;
    const long long block = first_image * between_images + orthant * points.points;
    const Real l = points.sharpness[0];
    const Real* const weights = points.weights + block;
    if (by_weights) by_weights += block;
    bool is_first = true;
    for (int k = 0; k < points.directions_count; ++k) {
        if (points.orthant(k) != orthant) continue;
        double sums[kOwnImages][kAxes] = {};
        for (int first = 0; first < points.levels_count; first += kThreads) {
            const int count = min(points.levels_count - first, kThreads);
            __syncthreads();
            if ((int)threadIdx.x < count) {
                levels[threadIdx.x] = points.levels[first + threadIdx.x];
#pragma unroll
                for (int image = 0; image < kImages; ++image) {
                    const long long row =
                        (long long)(first_image + image) * points.directions_count + k;
                    steps[threadIdx.x].of[image] =
                        image < images ? gradients[row * points.levels_count + first + threadIdx.x]
                                       : 0;
                }
            }
            __syncthreads();
            for (long long tile = begin; tile < end; tile += kPoints) {
                const long long point = tile + threadIdx.x % kPoints;
                const bool inside = point < end;
                Real own[kOwnImages];
#pragma unroll
                for (int i = 0; i < kOwnImages; ++i) {
                    const int image = PointSums::image_of(i);
                    own[i] = inside && image < images ? weights[image * between_images + point] : 0;
                }
                // A thread that does not share a point may leave it out if no image has it.
                bool is_needed = inside && (by_weights || kParts > 1);
#pragma unroll
                for (int i = 0; i < kOwnImages; ++i) is_needed = is_needed || own[i] != 0;
                Real at[kAxes];
                points.places(point, at);
                PointSums found;
                if (is_needed) found.add_levels(levels, steps, count, points.height(k, at), l);
                found.add_parts();
                if (!is_needed) continue;
#pragma unroll
                for (int i = 0; i < kOwnImages; ++i) {
                    const int image = PointSums::image_of(i);
                    if (by_weights && image < images) {
                        Real* const to = by_weights + image * between_images + point;
                        *to = is_first ? found.curve[i] : *to + found.curve[i];
                    }
#pragma unroll
                    for (int axis = 0; axis < kAxes; ++axis)
                        sums[i][axis] -= own[i] * l * found.slope[i] * at[axis];
                }
            }
            is_first = false;
        }
        if (!partial) continue;
        const long long between_rows = (long long)points.directions_count * kAxes;
        const long long rows = by_image ? points.images : groups;
        const long long row = blockIdx.x * rows + (by_image ? first_image : (int)blockIdx.z);
        double* const out = partial + row * between_rows + k * kAxes;
        write_image_sums(sums, out, between_rows, by_image ? images : 0);
    }
    if (!is_first || !by_weights) return;
    for (long long point = begin + threadIdx.x; point < end; point += kThreads)
        for (int image = 0; image < images; ++image) by_weights[image * between_images + point] = 0;
}
