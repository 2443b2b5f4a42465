// What depends on the levels only: the windows around them, curves from moments, and the table from
// which gradients are read.
#include "soft.cuh"

constexpr bool kSuper = ECC_SUPER;
constexpr double kStep = 0.15;  // the greatest width of a bin in units of 1 / sharpness

__device__ __forceinline__ float level_of(const float* thresholds, int j) {
    return kSuper ? -thresholds[j] : thresholds[j];
}

// The width has three significant bits, and windows start at multiples of it, so that the ends of
// bins are floats; where a float is coarser than a bin, the start is the sum of two floats.
struct Ruler {
    double width, reach;

    __device__ explicit Ruler(double sharpness) : reach(kReach / sharpness) {
        int exponent;
        const double mantissa = frexp(kStep / sharpness, &exponent);
        width = ldexp(floor(8.0 * mantissa), exponent - 3);
    }

    __device__ int write(const Windows& windows, int window, int slot, double first,
                         double last) const {
        const double start = floor((first - reach) / width) * width;
        const int bins = (int)ceil((last + reach - start) / width);
        windows.highs[window] = (float)start;
        windows.lows[window] = (float)(start - (double)(float)start);
        windows.ends[window] = (float)(start + bins * width);
        windows.offsets[window] = slot;
        return slot + bins + 1;
    }
};

// One block.
extern "C" __global__ void soft_prepare(const float* thresholds, const float* sharpness,
                                        float* memory, int levels) {
    const Windows windows(memory, levels);
    const Ruler ruler(sharpness[0]);
    bool bad = !(sharpness[0] > 0.0f) || isinf(sharpness[0]), wide = false;
    for (int i = threadIdx.x; i < levels; i += blockDim.x) {
        const float level = level_of(thresholds, i);
        bad |= level != level;
        int place = 0;
        for (int j = 0; j < levels; ++j) {
            const float other = level_of(thresholds, j);
            place += other < level || (other == level && j < i);
        }
        windows.sorted[place] = level;
        windows.places[place] = i;
    }
    bad = __syncthreads_or(bad);
    for (int i = threadIdx.x; i < levels && !bad; i += blockDim.x) {
        const double level = windows.sorted[i], before = windows.sorted[max(i - 1, 0)];
        wide |= isinf(level) || level - before > 2.0 * ruler.reach;
    }
    wide = __syncthreads_or(wide);
    if (threadIdx.x != 0) return;
    int count = bad ? -1 : 0, slot = 0;
    if (!bad && !wide && levels) {
        slot = ruler.write(windows, 0, 0, windows.sorted[0], windows.sorted[levels - 1]);
        count = 1;
    } else if (!bad) {
        for (int i = 0, next; i < levels; i = next) {
            next = i + 1;
            double last = windows.sorted[i];
            if (isinf(last)) continue;
            while (next < levels && windows.sorted[next] - last <= 2.0 * ruler.reach &&
                   !isinf(windows.sorted[next]))
                last = windows.sorted[next++];
            slot = ruler.write(windows, count++, slot, windows.sorted[i], last);
        }
    }
    if (count >= 0) windows.offsets[count] = slot;
    *windows.head = {count, slot + 1, (float)ruler.width, (float)(1.0 / ruler.width)};
}

__device__ __forceinline__ double warp_sum(double value) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    return value;
}

struct Logistic {
    float s, first, second, third, fourth, fifth;
    __device__ __forceinline__ explicit Logistic(float z) {
        const float e = __expf(-fabsf(z)), small = e / (1.0f + e);
        s = z < 0.0f ? small : 1.0f - small;
        first = small * (1.0f - small);
        second = first * (z < 0.0f ? 1.0f - 2.0f * small : 2.0f * small - 1.0f);
        third = first * (1.0f - 6.0f * first);
        fourth = second * (1.0f - 12.0f * first);
        fifth = third * (1.0f - 12.0f * first) - 12.0f * second * second;
    }
};

// A warp a level: curves and their derivatives by the level and by the sharpness, (images, levels),
// from moments (images, kMoments * room + 1) of the scales in soft_scan.cu.
extern "C" __global__ void soft_evaluate(const float* thresholds, const float* sharpness,
                                         float* memory, const long long* moments, float* curves,
                                         float* slopes, float* spreads, int levels, int room,
                                         float scale) {
    const int lane = threadIdx.x & 31, image = blockIdx.y;
    const int j = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (j >= levels) return;
    const Windows windows(memory, levels);
    const Head head = *windows.head;
    moments += (long long)image * (kMoments * room + 1);
    const double l = sharpness[0], level = level_of(thresholds, j);
    double sum = 0.0, by_level = 0.0, by_sharpness = 0.0;
    if (head.count < 0 || moments[kMoments * room]) {
        sum = by_level = by_sharpness = __longlong_as_double(0x7FF8000000000000ll);
    } else if (!(isinf(level) && level < 0.0)) {
        const Window window = windows.get(windows.find((float)level));
        const double width = head.width, reach = kReach / l;
        const double start = (double)window.high + (double)window.low;
        int from = 0, to = 0;
        if (window.bins) {
            from = (int)fmax((level - reach - start) / width, 0.0);
            to = min((int)((level + reach - start) / width) + 1, window.bins);
        }
        const int below = window.bins ? window.first + 1 + from : head.slots;
        long long entered = 0;
#pragma unroll 8
        for (int slot = lane; slot < below; slot += 32) entered += moments[slot];
        sum = (double)entered;
        // Taylor's polynomial, and what its next term has in common with the second and the zeroth
        // moment: e^4 ~ 3/14 e^2 - 3/560.
        const double a = l * width, a4 = a * a * a * a / 24.0;
        const double m0 = -3.0 / 560.0 * a4, m1 = -a / scale, m2 = 0.5 / scale,
                     m3 = -a * a * a / (24.0 * scale), m4 = 3.0 / 14.0 * a4;
        for (int bin = from + lane; bin < to; bin += 32) {
            const long long* m = moments + window.first + 1 + bin;
            const float z = (float)(l * (level - start - (bin + 0.5) * width));
            const Logistic s(z);
            const double c0 = (double)m[0], c1 = m1 * (double)m[room],
                         c2 = m2 * (double)m[2 * room], c3 = m3 * (double)m[3 * room];
            const double even = 0.5 * a * a * c2, next = m0 * c0 + m4 * c2;
            sum += c0 * s.s + c1 * s.first + even * s.second + c3 * s.third + next * s.fourth;
            by_level += c0 * s.first + c1 * s.second + even * s.third + c3 * s.fourth +
                        next * s.fifth;
            by_sharpness += c0 * (z * s.first) + c1 * (s.first + z * s.second) +
                            even * (2.0f * s.second + z * s.third) +
                            c3 * (3.0f * s.third + z * s.fourth) +
                            next * (4.0f * s.fourth + z * s.fifth);
        }
        sum = warp_sum(sum);
        by_level = warp_sum(by_level) * l * (kSuper ? -1.0 : 1.0);
        by_sharpness = warp_sum(by_sharpness) / l;
    }
    if (lane == 0) {
        const long long at = (long long)image * levels + j;
        curves[at] = (float)sum;
        slopes[at] = (float)by_level;
        spreads[at] = (float)by_sharpness;
    }
}

// The index of the first level above a value.
__device__ __forceinline__ int first_above(const float* sorted, int levels, double value) {
    int from = 0;
    for (int end = levels; from < end;) {
        const int middle = (from + end) >> 1;
        if (sorted[middle] <= value)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

struct Weighted {
    const float *gradients, *slopes, *spreads;  // (images, levels)
    float* by_level;                            // (images, levels): gradient * slope
    float* by_sharpness;                        // (images,): the sum of gradient * spread

    // One warp an image.
    __device__ __forceinline__ void write(int image, int levels, int lane) const {
        double sum = 0.0;
        for (int j = lane; j < levels; j += 32) {
            const long long at = (long long)image * levels + j;
            by_level[at] = gradients[at] * slopes[at];
            sum += (double)gradients[at] * (double)spreads[at];
        }
        sum = warp_sum(sum);
        if (lane == 0) by_sharpness[image] = (float)sum;
    }
};

// The sum over the levels of gradient * sharpness * s'(z), and its slope by the bin, at the start of
// each bin: (images, room). The first block of an image does the rest of the backward pass as well.
extern "C" __global__ void soft_tabulate(const float* gradients, const float* slopes,
                                         const float* spreads, float* by_level, float* by_sharpness,
                                         const float* sharpness, float* memory, float2* table,
                                         int levels, int room) {
    const Weighted weighted = {gradients, slopes, spreads, by_level, by_sharpness};
    const Windows windows(memory, levels);
    const Head head = *windows.head;
    const int image = blockIdx.y;
    const float l = sharpness[0];
    gradients += (long long)image * levels;
    if (blockIdx.x == 0 && threadIdx.x < 32) weighted.write(image, levels, threadIdx.x);
    for (int slot = blockIdx.x * blockDim.x + threadIdx.x; slot < head.slots - 1;
         slot += gridDim.x * blockDim.x) {
        int low = 0, high = head.count - 1;  // the last window that starts at or before the slot
        while (low < high) {
            const int middle = (low + high + 1) >> 1;
            if (windows.offsets[middle] <= slot)
                low = middle;
            else
                high = middle - 1;
        }
        const Window window = windows.get(low);
        const double x = (double)window.high + (double)window.low +
                         (double)(slot - window.first) * (double)head.width;
        const double reach = (double)kReach / l;
        const int from = first_above(windows.sorted, levels, x - reach);
        const int to = first_above(windows.sorted, levels, x + reach);
        float value = 0.0f, slope = 0.0f;
#pragma unroll 4
        for (int i = from; i < to; ++i) {
            const Logistic s(l * (float)(windows.sorted[i] - x));
            const float g = gradients[windows.places[i]];
            value += g * s.first;
            slope -= g * s.second;
        }
        table[(long long)image * room + slot] = make_float2(l * value, l * l * head.width * slope);
    }
}
