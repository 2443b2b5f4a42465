// Rows of a warp on their way to it, up to a slice ahead, through shared memory.
#pragma once
#include "units.cuh"

// A slice comes in items of two rows that share registers, from the row above a warp's rows to the
// row below: item i is rows i - 1 and i + 7.
constexpr int kItems = kPairRows8 + 2;

// A copy is 16 bytes a lane where several rows take no more: lanes then read what others have
// copied. Else it is one item, and lanes copy their own samples; row 7 of the first item and
// row 8 of the last are not copied.
constexpr bool kAhead = kVector && ECC_ASYNC;
constexpr int kCopyRows = kWide && kAhead && sizeof(Quad) < 16 ? 16 / (int)sizeof(Quad) : 1;
constexpr bool kShares = kCopyRows > 1;
constexpr int kCopyItems = kCopyRows > 2 ? kCopyRows / 2 : 1;
constexpr int kCopies = kItems / kCopyItems;  // of a slice
// Room for so many.
constexpr int kRing = sizeof(Quad) < 16 && !kShorts ? kCopies : kCopies / 2;

struct Feed {
    static constexpr int kLaneBytes = kShares ? 16 : sizeof(Quad);         // of a copy
    static constexpr int kMasks = kRing * kCopyItems * 64 * sizeof(Quad);  // where those begin
    static constexpr int kBytes = kMasks + (kMask ? kRing * 64 * sizeof(unsigned) : 0);  // of a warp

    const Columns* columns;  // where samples are copied one by one
    Quad* ring;
    const char* next;  // of the slice asked for: the lane's first row and column
    const unsigned char* mask;  // kMask: of the same place
    int row;           // bytes from row to row
    int first, last;   // bytes from `next` to the first row, and to the last one
    long long slice;   // bytes from slice to slice
    int slices;        // that may still be asked for

    // Of an image of a batch.
    __device__ __forceinline__ Feed(const Image& image, const Unit& unit, int index, void* ring,
                                    const Columns& columns)
        : columns(&columns), ring((Quad*)ring), row((int)image.row * (int)sizeof(Element)),
          slice(image.slice * (long long)sizeof(Element)), slices(image.depth - unit.start) {
        const Element* const data = unit.data(image, index) + unit.y * image.row + unit.left;
        const bool above = unit.y > 0, below = unit.y + kPairRows < image.height;
        constexpr int lanes = 32 / kCopyRows;
        const int lane = lane_again(), part = kShares ? lane / lanes : 0;
        const int columns_in = (image.width - unit.left) * (int)sizeof(Element);
        const int column = kVector ? min(lane % (lanes / kFold) * kLaneBytes, columns_in - kLaneBytes) : 0;
        next = (const char*)data + (long long)row * (part / 2 + part % 2 * kPairRows8) + column;
        if (kMask) mask = image.shown((const Element*)next);
        first = part > 0 || above ? -row : 0;
        last = row * ((kCopies - 1) * kCopyItems - 1);
        if (!kShares) last += row * kPairRows8;
        if (!below && part == kCopyRows - 1) last -= row;
    }

    __device__ __forceinline__ void copy(Quad* to, long long offset) const {
        const char* const from = next + offset;
        const int lane = lane_again();
        if (kShares) {
            copy_ahead<16>((char*)to + lane * 16, from);
        } else if (kAhead) {
            copy_quad_ahead(to + lane, from);
        } else if (kVector) {
            to[lane] = *(const Quad*)from;
        } else {
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x)
                to[lane].v[x] = ((const Element*)from)[columns->at[x]];
        }
    }

    // The lane's bytes of the mask; `place` is 32 for the second row of an item.
    __device__ __forceinline__ unsigned* shown(int k, int place) const {
        return (unsigned*)((char*)ring + kMasks) + k % kRing * 64 + place + lane_again();
    }
    __device__ __forceinline__ void copy_mask(int k, int place, long long offset) const {
        copy_ahead<4>(shown(k, place), mask + offset / (int)sizeof(Element));
    }

    // Copy `k` of a slice; after the last one comes the next slice.
    __device__ __forceinline__ void ask(int k) {
        Quad* const to = ring + k % kRing * kCopyItems * 64;
        const bool at_end = k == kCopies - 1;
        const long long offset = (long long)row * (k * kCopyItems - 1);
        if (kShares) {
            copy(to, k == 0 ? first : at_end ? last : offset);
        } else {
            if (!at_end) copy(to, k == 0 ? first : offset);
            if (k > 0) copy(to + 32, at_end ? last : offset + row * kPairRows8);
            if (kMask && !at_end) copy_mask(k, 0, k == 0 ? first : offset);
            if (kMask && k > 0) copy_mask(k, 32, at_end ? last : offset + row * kPairRows8);
        }
        if (kAhead || kMask) end_of_copy();
        if (at_end && --slices > 0) {
            next += slice;
            if (kMask) mask += slice / (int)sizeof(Element);
        }
    }

    // Before anything is taken.
    __device__ __forceinline__ void begin() {
#pragma unroll
        for (int k = 0; k < kRing - 1; ++k) ask(k);
    }

    // The lane's samples of the items of a slice, in order: the second row is 32 quads after the
    // first.
    __device__ __forceinline__ const Quad* take(int i) {
        const int k = i / kCopyItems;
        if (i % kCopyItems == 0) {
            if (kAhead || kMask) wait_for_copy<kRing - 2>();
            if (kShares) __syncwarp();
            ask((k + kRing - 1) % kCopies);
        }
        return ring + (k % kRing * kCopyItems + i % kCopyItems) * 64 + lane_again();
    }
};
