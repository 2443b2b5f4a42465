// Coefficients one point at a time: which of its 26 neighbours a point comes after, and so which
// cells it owns. Slower than the marching kernels, and free of their conditions: ties go to the
// first point in C order, and a point that never enters is told apart from one at the last value.
// Images of fewer axes have size 1 along the rest.
#include "histogram.cuh"

enum Output { kCoefficients = 0, kCounts = 1 };
constexpr int kOutput = ECC_OUTPUT;
constexpr bool kRegions = ECC_REGIONS;

struct Points {
    signed char* coefficients;  // (images, depth, height, width)
    const int*
        regions;      // kRegions: (depth, height, width), row of `counts` plus one, 0: background
    long long total;  // points of all images
};

constexpr int kSelf = 13;  // of 27 neighbours in raster order

__device__ constexpr unsigned corners(int z, int y, int x) {
    unsigned set = 0;
    for (int i = 0; i <= 1; ++i)
        for (int j = 0; j <= 1; ++j)
            for (int k = 0; k <= 1; ++k) set |= 1u << (kSelf + 9 * i * z + 3 * j * y + k * x);
    return set;
}

__device__ constexpr int sign(int z, int y, int x) {
    const int moved = (z != 0) + (y != 0) + (x != 0);
    return (kDual ? 3 - moved : moved) % 2 ? -1 : 1;
}

// The sum over the cells at a point of which it owns every corner.
__device__ __forceinline__ int coefficient(unsigned owned) {
    int sum = 0;
#pragma unroll
    for (int z = -1; z <= 1; ++z) {
#pragma unroll
        for (int y = -1; y <= 1; ++y) {
#pragma unroll
            for (int x = -1; x <= 1; ++x) {
                const unsigned all = corners(z, y, x);
                if ((owned & all) == all) sum += sign(z, y, x);
            }
        }
    }
    return sum;
}

__device__ __forceinline__ float without_sign_of_zero(float key) {
    return subtract_floats(key, -0.0f);
}
template <class T>
__device__ __forceinline__ T without_sign_of_zero(T key) {
    return key;
}

struct Point {
    Key key;
    int region;
    bool present;
};

__device__ __forceinline__ Point look(const Image& image, const Points& points, int index, int z,
                                      int y, int x) {
    const long long at = index * image.batch + z * image.slice + y * image.row + x;
    Point point = {without_sign_of_zero(to_key(image.data[at])), 0, true};
    if (kMask)
        point.present =
            image.mask[index * image.mask_batch + z * image.mask_slice + y * image.mask_row + x];
    if (kNan == kNanOmit && is_nan(point.key)) point.present = false;
    if (kRegions) {
        point.region = points.regions[((long long)z * image.height + y) * image.width + x];
        if (!point.region) point.present = false;
    }
    return point;
}

__device__ __forceinline__ unsigned owned_by(const Image& image, const Points& points, Point self,
                                             int index, int z, int y, int x) {
    unsigned owned = 0;
    for (int i = 0; i < 27; ++i) {
        const int u = z + i / 9 - 1, v = y + i / 3 % 3 - 1, w = x + i % 3 - 1;
        bool wins = i == kSelf || kDual;
        if (i != kSelf && u >= 0 && u < image.depth && v >= 0 && v < image.height && w >= 0 &&
            w < image.width) {
            const Point other = look(image, points, index, u, v, w);
            if (other.present && other.region == self.region) {
                const bool before =
                    kDown ? is_less(self.key, other.key) : is_less(other.key, self.key);
                const bool after =
                    kDown ? is_less(other.key, self.key) : is_less(self.key, other.key);
                wins = before || (i > kSelf && !after);
            }
        }
        owned |= (unsigned)wins << i;
    }
    return owned;
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    points(const Image image, const Points points, const Bins bins, const Result result) {
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long p = (long long)blockIdx.x * blockDim.x + threadIdx.x; p < points.total;
         p += stride) {
        const int x = (int)(p % image.width);
        const long long rows = p / image.width, slices = rows / image.height;
        const int y = (int)(rows % image.height), z = (int)(slices % image.depth),
                  index = (int)(slices / image.depth);
        const Point self = look(image, points, index, z, y, x);
        if (kNan == kNanReport && self.present && is_nan(self.key)) result.not_finite[0] = 1;
        const int c = self.present ? coefficient(owned_by(image, points, self, index, z, y, x)) : 0;
        if (kOutput == kCoefficients) {
            points.coefficients[p] = (signed char)c;
        } else if (c) {
            const long long row = kRegions ? self.region - 1 : index;
            const int bin = bin_of(self.key, bins, bins.thresholds, bins.table);
            atomicAdd(result.counts + row * (bins.count + 1) + bin,
                      (unsigned long long)(long long)c);
        }
    }
}
