// Shared by all kernels that scan: units of work, and the borders of the image.
#pragma once
#include "planes.cuh"

constexpr int kWarpWidth = 32 * kLaneWidth;

// Returns a value that is the same in every lane, such that the compiler knows it.
ECC_DEVICE int uniform(int value) { return __shfl_sync(kWarp, value, 0); }

// How an image is cut into units of work. A unit spans kWarpWidth columns and `chunk` steps of the
// scan.
struct Tiling {
    int across;       // Units along x.
    int down;         // 3-D: units along y
    int chunk;        // 2-D: rows, a multiple of those of a step; 3-D: slices
    int first, last;  // The rows or slices that are counted; others are only their neighbours.
    int images;
};

// Returns comparisons, those with samples beyond the border as the construction needs them: V has no such
// cells, and T's outer faces belong to the samples at the border.
ECC_DEVICE plane force(plane bits, plane border) { return kCubes ? bits & ~border : bits | border; }

// A part of a column of slices of a volume.
struct Unit {
    int left, y;            // First column and row.
    int begin, end, start;  // Slices that it owns, and the first one that it reads.

    // `rows` is the distance from one unit to the unit below.
    ECC_DEVICE Unit(const Tiling& tiling, int index, int rows)
        : left(index % tiling.across * kWarpWidth),
          y(index / tiling.across % tiling.down * rows),
          begin(tiling.first + index / (tiling.across * tiling.down) * tiling.chunk),
          end(min(begin + tiling.chunk, tiling.last)),
          start(max(begin - 1, 0)) {}

    // Whether there is work.
    ECC_DEVICE bool some() const { return begin < end; }

    // Returns the first slice of an image of a batch.
    ECC_DEVICE const Element* data(const Image& image, int index) const {
        return image.data + index * image.batch + start * image.slice;
    }
};

// Whether a cell belongs to its point of the largest code. Codes of images of bytes are their values.
constexpr bool kLargest = (kBins == kTable && !kSuper) != kCubes;

ECC_DEVICE pair owner(pair a, pair b) { return kLargest ? larger_pair(a, b) : smaller_pair(a, b); }

// Codes of the columns on both sides of a warp's two borders: `a` is left of a border, `b` right of it. Low
// halves belong to the left border, and high halves to the right one. Each lane has a row.
struct Border {
    pair a, b;
};
ECC_DEVICE Border owner(Border p, Border q) { return {owner(p.a, q.a), owner(p.b, q.b)}; }

// Comparisons across the two borders, a bit for each row: what lane 0 sees left of its first column, and
// the bits of the last column of lane 31.
struct Sides {
    unsigned left, right;
};
ECC_DEVICE Sides sides(Border border) {
    Sides owned;
    if (kLargest)
        vote_less(border.a, border.b, owned.left, owned.right);
    else
        vote_less(border.b, border.a, owned.left, owned.right);
    return owned;
}
