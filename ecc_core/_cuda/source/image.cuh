// The image in memory, and how a lane reads four consecutive samples and the one after them.
#pragma once
#include "element.cuh"

struct Image {
    const Element* data;
    const unsigned char* mask;
    long long batch, slice, row;                 // strides, in samples
    long long mask_batch, mask_slice, mask_row;  // the last axis of both is contiguous
    int depth, height, width;
};

constexpr int kLaneWidth = 4;  // columns a lane owns
constexpr int kLaneRows = 8;   // rows a lane owns: 4 x 8 samples fill one plane word

struct __align__(4 * sizeof(Element) < 16 ? 4 * sizeof(Element) : 16) Quad { Element v[kLaneWidth]; };
struct __align__(4) MaskQuad { unsigned char v[kLaneWidth]; };

// The five columns of a lane, clamped to the image.
struct Columns {
    int at[kLaneWidth + 1];

    __device__ __forceinline__ Columns(int x, int width) {
        #pragma unroll
        for (int i = 0; i <= kLaneWidth; ++i) at[i] = min(x + i, width - 1);
        if (kVector) at[0] = min(x, width - kLaneWidth);
    }
};

__device__ __forceinline__ void load_four(const Element* row, const Columns& columns, Element (&out)[kLaneWidth]) {
    if (kVector) {
        const Quad quad = *(const Quad*)(row + columns.at[0]);
        #pragma unroll
        for (int i = 0; i < kLaneWidth; ++i) out[i] = quad.v[i];
    } else {
        #pragma unroll
        for (int i = 0; i < kLaneWidth; ++i) out[i] = row[columns.at[i]];
    }
}

__device__ __forceinline__ void load_keys(const Element* row, const unsigned char* mask, const Columns& columns,
                                          Key (&out)[kLaneWidth + 1]) {
    Element raw[kLaneWidth];
    load_four(row, columns, raw);
    const Element next = row[columns.at[kLaneWidth]];
    #pragma unroll
    for (int i = 0; i < kLaneWidth; ++i) out[i] = admit(raw[i], !kMask || mask[columns.at[i]]);
    out[kLaneWidth] = admit(next, !kMask || mask[columns.at[kLaneWidth]]);
}

__device__ __forceinline__ Key load_key(const Element* row, const unsigned char* mask, int column) {
    return admit(row[column], !kMask || mask[column]);
}

// Bits of the samples of one word that lie in columns [0, columns) of the lane.
__device__ __forceinline__ plane column_bits(int columns) {
    const plane nibble = columns <= 0 ? 0u : columns >= kLaneWidth ? 0xFu : 0xFu & ~(0xFu >> columns);
    return nibble * 0x11111111u;
}

// Bits of the samples of one word that lie in rows [0, rows) of the lane.
__device__ __forceinline__ plane row_bits(int rows) {
    return rows <= 0 ? 0u : rows >= kLaneRows ? 0xFFFFFFFFu : ~(0xFFFFFFFFu >> (4 * rows));
}
