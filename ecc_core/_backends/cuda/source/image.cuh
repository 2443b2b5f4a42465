// Types of samples, each with keys in exactly the order of the samples; the image in memory, and how a lane
// reads four consecutive samples.
#pragma once
#include "narrow.cuh"
#include "options.cuh"

struct Bool {
    unsigned char byte;  // True unless it is 0.
};
typedef ECC_ELEMENT Element;

// Integers of up to 16 bits become floats just above 2^23, where consecutive integers are
// consecutive floats.
constexpr unsigned kMagic = 0x4B000000u;

ECC_DEVICE float to_key(float v) { return v; }
ECC_DEVICE double to_key(double v) { return v; }
ECC_DEVICE float to_key(Bool v) { return __uint_as_float(kMagic | (v.byte != 0)); }
ECC_DEVICE float to_key(unsigned char v) { return __uint_as_float(kMagic | v); }
ECC_DEVICE float to_key(signed char v) {
    return __uint_as_float(kMagic | (unsigned char)(v ^ 0x80));
}
ECC_DEVICE float to_key(unsigned short v) { return __uint_as_float(kMagic | v); }
ECC_DEVICE float to_key(short v) { return __uint_as_float(kMagic | (unsigned short)(v ^ 0x8000)); }
ECC_DEVICE int to_key(int v) { return v; }
ECC_DEVICE int to_key(unsigned int v) { return (int)(v ^ 0x80000000u); }
ECC_DEVICE long long to_key(long long v) { return v; }
ECC_DEVICE long long to_key(unsigned long long v) { return (long long)(v ^ (1ull << 63)); }
ECC_DEVICE float to_key(Half v) { return widen(v); }
ECC_DEVICE float to_key(BFloat v) { return widen(v); }

#if ECC_DIRECTIONAL
typedef double Key;
#else
typedef decltype(to_key(Element())) Key;
#endif

template <class T>
ECC_DEVICE double to_double(T v) {
    return (double)v;
}
ECC_DEVICE double to_double(Bool v) { return v.byte != 0; }
ECC_DEVICE double to_double(Half v) { return to_double(widen(v)); }
ECC_DEVICE double to_double(BFloat v) { return to_double(widen(v)); }

// Returns the key of a point that never enters, the last in the order of the filtration.
ECC_DEVICE float never(float) { return __uint_as_float(kSuper ? 0xFF800000u : 0x7F800000u); }
ECC_DEVICE double never(double) { return (double)never(0.0f); }
ECC_DEVICE int never(int) { return kSuper ? (-2147483647 - 1) : 2147483647; }
ECC_DEVICE long long never(long long) {
    return kSuper ? (-9223372036854775807ll - 1) : 9223372036854775807ll;
}

template <class T>
ECC_DEVICE bool is_nan(T v) {
    return v != v;
}

// Returns the key of the sample that owns the cells of two samples.
ECC_DEVICE float later(float a, float b) {
    if (kNan == kNanReport) return kDown ? smaller_or_nan(a, b) : larger_or_nan(a, b);
    return kDown ? smaller(a, b) : larger(a, b);
}
ECC_DEVICE double later(double a, double b) {
    return (kDown ? b < a : a < b) || (kNan == kNanReport && b != b) ? b : a;
}
template <class T>
ECC_DEVICE T later(T a, T b) {
    return (kDown ? b < a : a < b) ? b : a;
}

// Appends the bit [a before b]. The sign of a float difference is exact, infinities and subnormals
// included, and a subtraction runs at twice the rate of a comparison.
ECC_DEVICE void push(unsigned& bits, float a, float b) {
    bits = __funnelshift_l(__float_as_uint(kDown ? subtract_floats(b, a) : subtract_floats(a, b)),
                           bits, 1);
}
template <class T>
ECC_DEVICE void push(unsigned& bits, T a, T b) {
    bits = bits * 2u + (unsigned)(kDown ? b < a : a < b);
}

struct Image {
    const Element* data;
    long long batch, slice, row;  // Strides, in samples; the last axis is contiguous.
    int depth, height, width;
    const unsigned char* mask;  // kMask: a mask of the same strides.

    // Returns the place of a sample in the mask.
    ECC_DEVICE const unsigned char* shown(const Element* sample) const {
        return mask + (sample - data);
    }
};

constexpr int kLaneWidth = 4;  // Columns that a lane owns.
constexpr int kLaneRows = 8;   // Rows that a lane owns: 4 x 8 samples fill one plane word.

struct __align__(4 * sizeof(Element) < 16 ? 4 * sizeof(Element) : 16) Quad {
    Element v[kLaneWidth];
};

// The memory from the first sample of a lane to its last.
struct __align__(kStep * sizeof(Quad) < 16 ? kStep * sizeof(Quad) : 16) Span {
    Element v[kStep * kLaneWidth];

    ECC_DEVICE Quad samples() const {
        Quad found;
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) found.v[x] = v[x * kStep];
        return found;
    }
};

// The four columns of a lane, clamped to the image: `first` counts from the first column of the warp, and
// `at` from `first`.
struct Columns {
    unsigned first, at[kLaneWidth];

    ECC_DEVICE Columns(int lane, int left, int width) {
        const int own = lane * kLaneWidth, last = width - 1 - left;
        first = min(own, kVector ? last + 1 - kLaneWidth : last);
#pragma unroll
        for (int i = 0; i < kLaneWidth; ++i) at[i] = min(own + i, last) - first;
    }
};
