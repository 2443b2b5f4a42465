// Units of images: tiles of columns, their coefficients, and the moments of their points.
//
// A block holds a tile of columns in shared memory. Each thread has a column of kOwn points, with its
// neighbours. Tiles overlap by one column on each side, whose threads only assist their neighbours.
#pragma once
#include "soft_planes.cuh"

typedef ECC_ELEMENT Element;
constexpr bool kMask = ECC_MASK;
constexpr bool kDirectional = ECC_DIRECTIONAL;

struct Image {
    const Element* data;
    const unsigned char* mask;
    // With kDirectional; null for axes that the image does not have.
    const Real *offset_z, *offset_y, *offset_x;
    long long strides[4];  // batch, z, y, x, in samples
    long long mask_strides[4];
    int depth, height, width;
};

// A column of the image. For one outside of it, `inside` is false and the nearest column is read.
struct Column {
    const Element* data;
    const unsigned char* mask;
    Real offset;
    bool inside;
};

__device__ __forceinline__ Real infinity() { return (Real)__uint_as_float(0x7F800000u); }

__device__ __forceinline__ Column find_column(const Image& image, int index, int y, int x) {
    const int row = min(max(y, 0), image.height - 1), place = min(max(x, 0), image.width - 1);
    Column column = {image.data, image.mask, 0, row == y && place == x};
    column.data += index * image.strides[0] + row * image.strides[2] + place * image.strides[3];
    if (kMask)
        column.mask += index * image.mask_strides[0] + row * image.mask_strides[2] +
                       place * image.mask_strides[3];
    if (kDirectional)
        column.offset =
            kFlat ? image.offset_x[place] : image.offset_y[row] + image.offset_x[place];
    return column;
}

// Values of the sublevel filtration from z on, infinite where there is no point. Loads do not depend on
// conditions, so all of them are issued at once.
__device__ __forceinline__ void load(const Image& image, const Column& column, int z,
                                     Real (&v)[kSteps]) {
    Element sample[kSteps];
    unsigned char kept[kSteps];
    Real offset[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
        const int at = min(max(z + i, 0), image.depth - 1);
        sample[i] = column.data[at * image.strides[1]];
        if (kMask) kept[i] = column.mask[at * image.mask_strides[1]];
        if (kDirectional) offset[i] = image.offset_z ? image.offset_z[at] : (Real)0;
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
        Real number = to_real(sample[i]);
        if (kDirectional) number += offset[i] + column.offset;
        number = (kSuper ? -number : number) + (Real)0;  // -0 to 0: they are equal
        const bool there = column.inside && (unsigned)(z + i) < (unsigned)image.depth;
        v[i] = there && (!kMask || kept[i]) ? number : infinity();
    }
}

// Adds points to moments, by counts.add(moment, slot, amount).
template <class Counts>
struct Deposit {
    const Windows windows;
    const Head head;
    const Window only;  // if there is a single window
    const float scale;  // of the first moment; that of the second is twice as large, and so on
    const Counts counts;

    template <bool kOneWindow>
    __device__ __forceinline__ void point(float v, int c) const {
        if (v >= infinity()) return;
        const Window window = kOneWindow ? only : windows.get(windows.find(v));
        const Place place = locate(v, window, head);
        if (!counts.has(place.slot)) return;
        counts.add(0, place.slot, c);
        if (!place.inside) return;
        const float first = place.offset * scale, twice = 2.0f * place.offset;
        counts.add(1, place.slot, c * to_int(first + kRound));
        counts.add(2, place.slot, c * to_int(first * twice + kRound));
        counts.add(3, place.slot, c * to_int(first * twice * twice + kRound));
    }

    // The points from step `step` on, with the coefficients in a word.
    template <bool kOneWindow>
    __device__ __forceinline__ void points(plane packed, const Tile& tile, int step) const {
        while (packed) {
            const int i = __clz(packed) >> 2;
            const int c = (int)(packed << (4 * i)) >> 28;
            packed &= (1u << (28 - 4 * i)) - 1u;
            const Real key = tile.own(step + i);
            point<kOneWindow>(kCubes ? -key : key, c);
        }
    }
};

__device__ __forceinline__ void wait_for_tile() {
    if (kFlat)
        __syncwarp();
    else
        __syncthreads();
}

// Tiles of an image along x, y, z. In flat images each row of a block has a tile of its own.
struct Units {
    int across, down, chunks;

    __device__ __forceinline__ int count(int rows) const {
        const int tiles = across * down * chunks;
        return kFlat ? (tiles + rows - 1) / rows : tiles;
    }
};

// Writes the packed coefficients of a unit unless `packed` is null, and adds its points to the moments.
// Returns whether the thread has seen NaN.
template <bool kDeposit, class Counts>
__device__ __forceinline__ bool scan_unit(const Image& image, const Units& units, int index, int unit,
                                          const Tile& tile, plane* exchange, plane* packed_words,
                                          const Deposit<Counts>& deposit) {
    const int rows = tile.rows, row = tile.row, lane = tile.lane;
    const int words = (image.depth + kPacked - 1) / kPacked;
    const int at = kFlat ? unit * rows + row : unit, rest = at / units.across;
    const int x = at % units.across * (kLanes - 2) + lane - 1;
    const int y = kFlat ? 0 : rest % units.down * (rows - 2) + row - 1;
    const int z = (kFlat ? rest : rest / units.down) * kOwn;
    const Column column = find_column(image, index, y, x);
    Real v[kSteps];
    load(image, column, z - 1, v);
    plane present = ~0u;
    bool nan = false;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
        nan |= v[step] != v[step];
        tile.own(step) = kCubes ? (Real)0 - v[step] : v[step];
        if (kMask && step > 0 && step <= kOwn && v[step] >= infinity())
            present &= ~(1u << (kOwn - step));
    }
    wait_for_tile();
    Digits c = coefficients(compare(tile, exchange));
    if (kMask) c = {c.b0 & present, c.b1 & present, c.b2 & present, c.b3 & present};
    const bool own = column.inside && lane > 0 && lane < kLanes - 1 &&
                     (kFlat || (row > 0 && row < rows - 1));
#pragma unroll
    for (int first = 0; first < kOwn; first += kPacked) {
        if (!own || z + first >= image.depth) continue;
        const plane packed = c.pack(first);
        const long long word = (long long)index * words + z / kPacked + first / kPacked;
        if (packed_words) packed_words[(word * image.height + y) * image.width + x] = packed;
        if (kDeposit && deposit.head.count == 1)
            deposit.template points<true>(packed, tile, 1 + first);
        else if (kDeposit)
            deposit.template points<false>(packed, tile, 1 + first);
    }
    wait_for_tile();
    return nan;
}
