// Where the warps of a volume work that take sixteen rows at a time.
#pragma once
#include "tiling.cuh"

// A column of slices, or a part of one.
struct Unit {
    int left, rows_before;  // first column; rows above, which other warps own
    int y;                  // first row: less where the last rows are repeated
    int begin, end, start;  // slices that it owns, and the first one that it reads

    Unit() = default;
    __device__ __forceinline__ Unit(const Image& image, const Tiling& tiling, int column, int begin,
                                    int end)
        : left(column % tiling.across * kWarpWidth),
          rows_before(column / tiling.across % tiling.down * kPairRows),
          y(min(rows_before, image.height - kPairRows)),
          begin(begin),
          end(end),
          start(max(begin - 1, 0)) {}

    // The first slice, of an image of a batch.
    __device__ __forceinline__ const Element* data(const Image& image, int index) const {
        return image.data + index * image.batch + start * image.slice;
    }
};

// What a warp does: a chunk of a column; or, if `tails`, a part of what chunks leave.
template <bool tails>
struct Work : Unit {
    int from, to;  // of the slices that are left, column by column

    Work() = default;
    __device__ __forceinline__ Work(const Image& image, const Tiling& tiling, int index)
        : Unit{}, from(0), to(0) {
        const int columns = tiling.across * tiling.down, whole = columns * tiling.chunks;
        if (tails && index >= whole) {
            from = (index - whole) * tiling.tail;
            to = min(from + tiling.tail, columns * slices_left(tiling));
            if (more()) next(image, tiling);
        } else {
            const int begin = tiling.first + index / columns * tiling.chunk;
            unit() = Unit(image, tiling, index, begin, min(begin + tiling.chunk, tiling.last));
        }
    }

    // Whether there is work, and whether there is more.
    __device__ __forceinline__ bool some() const { return begin < end; }
    __device__ __forceinline__ bool more() const { return tails && from < to; }

    // Goes on to the next column.
    __device__ __forceinline__ void next(const Image& image, const Tiling& tiling) {
        const int slices = slices_left(tiling), column = from / slices;
        const int begin = tiling.last - slices + from - column * slices;
        unit() = Unit(image, tiling, column, begin, min(begin + to - from, tiling.last));
        from += end - begin;
    }

    __device__ __forceinline__ Unit& unit() { return *this; }

    __device__ __forceinline__ static int slices_left(const Tiling& tiling) {
        return tiling.last - tiling.first - tiling.chunks * tiling.chunk;
    }
};
