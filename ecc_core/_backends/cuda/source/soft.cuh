// Soft curves: sample types, and the windows around the levels.
//
// The logistic function s differs from a step only where |z| < kReach, z = sharpness * (level -
// value). So the line of values is cut into windows around the levels, with a slot for the gap below
// each window and even bins within it. Slots count up along the line; the last is all above the last
// window. The ends of bins are floats as long as a float can tell them apart: see soft_levels.cu.
#pragma once
#include "device.cuh"

typedef unsigned int plane;

constexpr float kReach = 14.0f;  // s(-14) = 8e-7
constexpr int kMoments = 4;
constexpr int kPacked = 8;  // coefficients in a word, along z, the first in the highest bits

struct Half {
    unsigned short bits;
};
struct BFloat {
    unsigned short bits;
};

__device__ __forceinline__ float to_real(float v) { return v; }
__device__ __forceinline__ double to_real(double v) { return v; }
__device__ __forceinline__ float to_real(Half v) { return half_to_float(v.bits); }
__device__ __forceinline__ float to_real(BFloat v) {
    return __uint_as_float((unsigned)v.bits << 16);
}

__device__ __forceinline__ void store(float* to, float v) { *to = v; }
__device__ __forceinline__ void store(double* to, double v) { *to = v; }
__device__ __forceinline__ void store(Half* to, float v) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(v));
}
__device__ __forceinline__ void store(BFloat* to, float v) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(v));
}

struct Window {
    float end, high, low;  // it starts at high + low
    int first, bins;       // `first` is the slot of the gap below
};

// In memory: (head, ends, highs, lows, sorted levels, their places, offsets).
struct Head {
    int count;  // of windows; negative where an argument is NaN
    int slots;
    float width, per_bin;  // of a bin
};

struct Windows {
    Head* head;
    float *ends, *highs, *lows, *sorted;
    int *places, *offsets;

    __device__ __forceinline__ Windows(float* memory, int levels)
        : head((Head*)memory),
          ends(memory + 4),
          highs(ends + levels),
          lows(highs + levels),
          sorted(lows + levels),
          places((int*)(sorted + levels)),
          offsets(places + levels) {}

    __device__ __forceinline__ Window get(int i) const {
        if (i >= head->count)
            return {__uint_as_float(0xFF800000u), 0.0f, 0.0f, head->slots - 2, 0};
        return {ends[i], highs[i], lows[i], offsets[i], offsets[i + 1] - offsets[i] - 1};
    }

    // The first window that ends above the value.
    __device__ __forceinline__ int find(float value) const {
        int low = 0, high = head->count;
        while (low < high) {
            const int middle = (low + high) >> 1;
            if (ends[middle] <= value)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
};

// Where a value lies in a window that ends above it.
struct Place {
    int slot;
    float offset;  // from the middle of its bin, in bins
    bool inside;
};

constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number

// Rounded to the nearest integer; a conversion would take eight times as long.
__device__ __forceinline__ int to_int(float rounded) {
    return (int)(__float_as_uint(rounded) - 0x4B400000u);
}

// `window` is the first that ends above the value, or the last of all.
__device__ __forceinline__ Place locate(float value, const Window& window, const Head& head) {
    const float along = (value - window.high) - window.low;
    const float place = fminf(along * head.per_bin - 0.5f, (float)(window.bins - 1));
    const float rounded = fmaxf(place, 0.0f) + kRound;
    const float middle = ((rounded - kRound) + 0.5f) * head.width;
    const float node = window.high + middle;  // its rounding error comes back in the next line
    const float offset = ((value - node) - (middle - (node - window.high))) - window.low;
    const bool inside = along >= 0.0f && value < window.end;
    const int slot = inside ? 1 + to_int(rounded) : value < window.end ? 0 : 1 + window.bins;
    return {window.first + slot, offset * head.per_bin, inside};
}
