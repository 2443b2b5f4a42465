// Soft curves: the types of samples, and the windows around the levels.
//
// The logistic function s differs from a step function only where |z| < kReach, with
// z = sharpness * (level - value). The range of values is therefore divided into windows around the
// levels. Each window has bins of equal width, and one slot for the gap below it. Slots are numbered
// by increasing value; the last one holds all values above the last window. The ends of bins are
// floats unless bins are narrower than the spacing of floats: see soft_levels.cuh.
#pragma once
#include "narrow.cuh"

constexpr bool kSuper = ECC_SUPER;  // superlevel sets: values and levels are negated

constexpr float kReach = 14.0f;  // s(-14) = 8e-7
constexpr int kMoments = 4;

struct Window {
    float end, high, low;  // the start is high + low
    int first, bins;       // `first` is the slot of the gap below
};

struct Head {
    int count;  // of windows; negative if an argument is NaN
    int slots;
    float width, per_bin;  // the width of a bin, and its reciprocal
};

// Words of the windows around so many levels, a multiple of 16 bytes.
#define ECC_WINDOW_WORDS(levels) (((levels) * 6 + 11) & ~3)

// The layout in memory: head, ends, highs, lows, sorted levels, their indices, offsets.

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
        if (i >= head->count)
            return {__uint_as_float(0xFF800000u), 0.0f, 0.0f, head->slots - 2, 0};
        return {ends[i], highs[i], lows[i], offsets[i], offsets[i + 1] - offsets[i] - 1};
    }

    // The first window whose end is greater than the value.
    ECC_DEVICE int find(float value) const {
        return first_failing(head->count, [&](int i) { return ends[i] <= value; });
    }
};

// The position of a value relative to a window.
struct BinPlace {
    int slot;
    float offset;  // distance from the centre of the bin, in bins
    bool inside;
};

constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer

// The integer to which kRound was added. A conversion would take eight times as long.
ECC_DEVICE int to_int(float rounded) { return (int)(__float_as_uint(rounded) - 0x4B400000u); }

// `window` is the first one whose end is greater than the value, or what get() returns if none is.
ECC_DEVICE BinPlace locate(float value, const Window& window, const Head& head) {
    const float along = (value - window.high) - window.low;
    const float place = fminf(along * head.per_bin - 0.5f, (float)(window.bins - 1));
    const float rounded = fmaxf(place, 0.0f) + kRound;
    const float middle = ((rounded - kRound) + 0.5f) * head.width;
    const float node = window.high + middle;  // the next line corrects its rounding error
    const float offset = ((value - node) - (middle - (node - window.high))) - window.low;
    const bool inside = along >= 0.0f && value < window.end;
    const int slot = inside ? 1 + to_int(rounded) : value < window.end ? 0 : 1 + window.bins;
    return {window.first + slot, offset * head.per_bin, inside};
}
