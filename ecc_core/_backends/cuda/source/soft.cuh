// Soft curves: windows around the levels, curves as sums of moments, and the gradient of an image as a
// function of its values.
//
// The logistic function s differs from a step function only where |z| < kReach, with
// z = sharpness * (level - value). The range of values is therefore divided into windows around the
// levels. Each window has bins of equal width, and one slot for the gap below it. Slots are numbered
// by increasing value; the last one holds all values above the last window. The ends of bins are
// floats unless bins are narrower than the spacing of floats: see Ruler.
#pragma once
#include "narrow.cuh"
#include "soft_totals.cuh"

constexpr bool kSuper = ECC_SUPER;  // Superlevel sets: values and levels are negated.

constexpr float kReach = 14.0f;  // Steps are complete beyond it: s(-14) = 8e-7.
constexpr int kMoments = 4;

struct Window {
    float end, high, low;  // The start is high + low.
    int first, bins;       // The slot of the gap below the window; the number of its bins.
};

struct Head {
    int count;             // The number of windows; negative if an argument is NaN.
    int slots;             // The number of slots.
    float width, per_bin;  // The width of a bin, and its reciprocal.
};

// The number of words that the windows around so many levels take, a multiple of 16 bytes.
#define ECC_WINDOW_WORDS(levels) (((levels) * 6 + 11) & ~3)

// The windows in memory: head, ends, highs, lows, sorted levels, their indices, offsets.
struct Windows {
    Head* head;
    float *ends, *highs, *lows, *sorted;
    int *places, *offsets;

    ECC_DEVICE Windows(float* memory, int levels)
        : head((Head*)memory),
          ends(memory + 4),
          highs(ends + levels),
          lows(highs + levels),
          sorted(lows + levels),
          places((int*)(sorted + levels)),
          offsets(places + levels) {}

    ECC_DEVICE Window get(int i) const {
        if (i >= head->count) return {__uint_as_float(0xFF800000u), 0.0f, 0.0f, head->slots - 2, 0};
        return {ends[i], highs[i], lows[i], offsets[i], offsets[i + 1] - offsets[i] - 1};
    }

    // Returns the first window whose end is greater than the value.
    ECC_DEVICE int find(float value) const {
        return first_failing(head->count, [&](int i) { return ends[i] <= value; });
    }
};

// The position of a value relative to a window.
struct BinPlace {
    int slot;
    float offset;  // Distance from the centre of the bin, in bins.
    bool inside;
};

constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer

// Returns the integer to which kRound was added. A conversion would take eight times as long.
ECC_DEVICE int to_int(float rounded) { return (int)(__float_as_uint(rounded) - 0x4B400000u); }

// Returns the place of a value. `window` is the first one whose end is greater than the value, or what
// get() returns if there is none.
ECC_DEVICE BinPlace locate(float value, const Window& window, const Head& head) {
    const float along = (value - window.high) - window.low;
    const float place = fminf(along * head.per_bin - 0.5f, (float)(window.bins - 1));
    const float rounded = fmaxf(place, 0.0f) + kRound;
    const float middle = ((rounded - kRound) + 0.5f) * head.width;
    const float node = window.high + middle;  // The next line corrects its rounding error.
    const float offset = ((value - node) - (middle - (node - window.high))) - window.low;
    const bool inside = along >= 0.0f && value < window.end;
    const int slot = inside ? 1 + to_int(rounded) : value < window.end ? 0 : 1 + window.bins;
    return {window.first + slot, offset * head.per_bin, inside};
}

constexpr double kStep = 0.15;  // The greatest width of a bin in units of 1 / sharpness.

ECC_DEVICE float level_of(const float* thresholds, int j) {
    return kSuper ? -thresholds[j] : thresholds[j];
}

// The width of bins has three significant bits and windows start at multiples of it, so the ends of
// bins are floats. If bins are narrower than the spacing of floats, a start is the sum of two floats.
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

// Computes the windows. All threads of a block call it, and synchronize before they use the result.
ECC_DEVICE void prepare(const Windows& windows, const float* thresholds, float sharpness,
                        int levels) {
    const Ruler ruler(sharpness);
    bool bad = !(sharpness > 0.0f) || isinf(sharpness), wide = false;
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

// The logistic function and its derivatives.
struct Logistic {
    float s, first, second, third, fourth, fifth;
    ECC_DEVICE explicit Logistic(float z) {
        const float e = __expf(-fabsf(z)), small = e / (1.0f + e);
        s = z < 0.0f ? small : 1.0f - small;
        first = small * (1.0f - small);
        second = first * (z < 0.0f ? 1.0f - 2.0f * small : 2.0f * small - 1.0f);
        third = first * (1.0f - 6.0f * first);
        fourth = second * (1.0f - 12.0f * first);
        fifth = third * (1.0f - 12.0f * first) - 12.0f * second * second;
    }
};

// A curve at a level, and its derivatives by the level and by the sharpness. The lanes of a warp each
// add up a part.
struct Evaluation {
    double sum, by_level, by_sharpness;

    // Adds the moments of the slots from `begin` to `end`, which moments(moment, slot) returns.
    template <class Moments>
    ECC_DEVICE void add(const Windows& windows, const Head& head, double l, double level,
                        double scale, const Moments& moments, int begin, int end, int lane) {
        if (head.count < 0 || (isinf(level) && level < 0.0)) return;
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
        for (int slot = begin + lane; slot < min(below, end); slot += 32)
            entered += moments(0, slot);
        sum += (double)entered;
        // Taylor's polynomial, and the part of its next term that is a combination of the second and
        // the zeroth moment: e^4 ~ 3/14 e^2 - 3/560.
        const double a = l * width, a4 = a * a * a * a / 24.0;
        const double m0 = -3.0 / 560.0 * a4, m1 = -a / scale, m2 = 0.5 / scale,
                     m3 = -a * a * a / (24.0 * scale), m4 = 3.0 / 14.0 * a4;
        const int first = window.first + 1;
        for (int bin = max(from, begin - first) + lane; bin < min(to, end - first); bin += 32) {
            const int slot = first + bin;
            const float z = (float)(l * (level - start - (bin + 0.5) * width));
            const Logistic s(z);
            const double c0 = (double)moments(0, slot), c1 = m1 * (double)moments(1, slot),
                         c2 = m2 * (double)moments(2, slot), c3 = m3 * (double)moments(3, slot);
            const double even = 0.5 * a * a * c2, next = m0 * c0 + m4 * c2;
            sum += c0 * s.s + c1 * s.first + even * s.second + c3 * s.third + next * s.fourth;
            by_level +=
                c0 * s.first + c1 * s.second + even * s.third + c3 * s.fourth + next * s.fifth;
            by_sharpness += c0 * (z * s.first) + c1 * (s.first + z * s.second) +
                            even * (2.0f * s.second + z * s.third) +
                            c3 * (3.0f * s.third + z * s.fourth) +
                            next * (4.0f * s.fourth + z * s.fifth);
        }
    }

    // Returns the sums over all lanes.
    ECC_DEVICE Evaluation total() const {
        return {warp_sum(sum), warp_sum(by_level), warp_sum(by_sharpness)};
    }
};

// Curves (images / positions, levels, positions), and their derivatives (images, levels), which are null
// where they are not wanted.
struct Curves {
    float *curves, *slopes, *spreads;
    int positions;

    ECC_DEVICE void write(int image, int levels, int j, const Evaluation& found, double l,
                          bool nan) const {
        const double spoilt = __longlong_as_double(0x7FF8000000000000ll);
        const long long group = image / positions;
        const int position = image % positions;
        curves[(group * levels + j) * positions + position] = (float)(nan ? spoilt : found.sum);
        if (!slopes) return;
        const long long at = (long long)image * levels + j;
        slopes[at] = (float)(nan ? spoilt : found.by_level * l * (kSuper ? -1.0 : 1.0));
        spreads[at] = (float)(nan ? spoilt : found.by_sharpness / l);
    }
};

// Returns the sum over the levels of gradient * sharpness * s'(z) at the value x, and its slope by x times
// `width`.
ECC_DEVICE float2 response(const Windows& windows, const Upstream& upstream, int image, int levels,
                           float l, double x, float width) {
    const double reach = (double)kReach / l;
    const auto first_above = [&](double value) {
        return first_failing(levels, [&](int i) { return windows.sorted[i] <= value; });
    };
    const int from = first_above(x - reach), to = first_above(x + reach);
    float value = 0.0f, slope = 0.0f;
#pragma unroll 4
    for (int i = from; i < to; ++i) {
        const Logistic s(l * (float)(windows.sorted[i] - x));
        const float g = upstream.get(image, windows.places[i]);
        value += g * s.first;
        slope -= g * s.second;
    }
    return make_float2(l * value, l * l * width * slope);
}

// Returns the response at the start of a bin; for the slot of a gap, the result has no meaning.
ECC_DEVICE float2 response_at(const Windows& windows, const Head& head, const Upstream& upstream,
                              int image, int levels, float l, int slot) {
    // This finds the last window that starts at or before the slot.
    const auto starts = [&](int i) { return windows.offsets[i + 1] <= slot; };
    const Window window = windows.get(first_failing(head.count - 1, starts));
    const double x = (double)window.high + (double)window.low +
                     (double)(slot - window.first) * (double)head.width;
    return response(windows, upstream, image, levels, l, x, head.width);
}
