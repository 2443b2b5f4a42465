// The image in memory, and how a lane reads four consecutive samples.
#pragma once
#include "element.cuh"

struct Image {
    const Element* data;
    long long batch, slice, row;  // strides, in samples; the last axis is contiguous
    int depth, height, width;
    const unsigned char* mask;  // kMask: of the same strides

    // Where the mask has the place of a sample.
    ECC_DEVICE const unsigned char* shown(const Element* sample) const {
        return mask + (sample - data);
    }
};

constexpr int kLaneWidth = 4;  // columns a lane owns
constexpr int kLaneRows = 8;   // rows a lane owns: 4 x 8 samples fill one plane word

struct __align__(4 * sizeof(Element) < 16 ? 4 * sizeof(Element) : 16) Quad {
    Element v[kLaneWidth];
};

// The four columns of a lane, clamped to the image: `first` counts from the first column of the warp, `at`
// from `first`.
struct Columns {
    unsigned first, at[kLaneWidth];

    ECC_DEVICE Columns(int lane, int left, int width) {
        const int own = lane * kLaneWidth, last = width - 1 - left;
        first = min(own, kVector ? last + 1 - kLaneWidth : last);
#pragma unroll
        for (int i = 0; i < kLaneWidth; ++i) at[i] = min(own + i, last) - first;
    }
};
