// Images of codes, and which of the 26 neighbours of a point come before it.
#pragma once
#include "device.cuh"

typedef unsigned long long Word;
typedef ECC_CODE Code;

constexpr bool kPlanar = ECC_PLANAR;    // whether there is only one slice
constexpr bool kReverse = ECC_REVERSE;  // keys are `top` minus the codes
constexpr int kThreads = ECC_THREADS, kColumns = kPlanar ? kThreads : 32;

struct Volume {
    const Code* codes;
    int depth, height, width;
    unsigned top;
    float scale;  // of ranks
};

__device__ unsigned key_of(const Volume& volume, unsigned code) {
    return kReverse ? volume.top - code : code;
}

// Sets of the 27 places of a cube are bits, in which x runs fastest.
constexpr unsigned kCenter = 1u << 13, kCube = (1u << 27) - 1, kBeforeCenter = kCenter - 1;
constexpr unsigned kLowX = 0111111111, kHighX = 0444444444;
constexpr unsigned kLowY = 0007007007, kHighY = 0700700700;
constexpr unsigned kLowZ = 0000000777, kHighZ = 0777000000;
constexpr unsigned kFaces = 1u << 4 | 1u << 10 | 1u << 12 | 1u << 14 | 1u << 16 | 1u << 22;
constexpr unsigned kCorners =
    1u << 0 | 1u << 2 | 1u << 6 | 1u << 8 | 1u << 18 | 1u << 20 | 1u << 24 | 1u << 26;
constexpr unsigned kSpace = kCube & ~kCenter & (kPlanar ? ~(kLowY | kHighY) : kCube);

// The places of a cube around a point that are not in the image.
__device__ unsigned beyond_image(const Volume& volume, int z, int y, int x) {
    unsigned beyond = 0;
    if (x == 0) beyond |= kLowX;
    if (x == volume.width - 1) beyond |= kHighX;
    if (y == 0) beyond |= kLowY;
    if (y == volume.height - 1) beyond |= kHighY;
    if (z == 0) beyond |= kLowZ;
    if (z == volume.depth - 1) beyond |= kHighZ;
    return beyond;
}

// The codes of the 3 x 3 points of a slice around a point; those beyond the border repeat the nearest.
struct Slice {
    unsigned codes[9];

    __device__ void load(const Volume& volume, int z, const int* rows, const int* columns) {
        const long long slice = (long long)volume.height * volume.width;
        const Code* const from = volume.codes + min(max(z, 0), volume.depth - 1) * slice;
#pragma unroll
        for (int i = 0; i < 9; ++i)
            if (!kPlanar || i / 3 == 1)
                codes[i] = key_of(volume, from[rows[i / 3] + columns[i % 3]]);
    }
};

// A column of points and their neighbours, slice by slice. A block takes a tile of columns, and a thread
// those of its slices from `first` to `last`.
struct Column {
    int x, y, first, last;
    bool there;
    int rows[3], columns[3];
    Slice around[3];

    __device__ Column(const Volume& volume, int slices) {
        const int across = (volume.width + kColumns - 1) / kColumns;
        const int down = (volume.height + kThreads / kColumns - 1) / (kThreads / kColumns);
        x = blockIdx.x % across * kColumns + threadIdx.x % kColumns;
        y = blockIdx.x / across % down * (kThreads / kColumns) + threadIdx.x / kColumns;
        first = blockIdx.x / across / down * slices;
        last = min(first + slices, volume.depth);
        there = x < volume.width && y < volume.height;
        for (int i = 0; i < 3; ++i) {
            rows[i] = min(max(y + i - 1, 0), volume.height - 1) * volume.width;
            columns[i] = min(max(x + i - 1, 0), volume.width - 1);
        }
        around[1].load(volume, first - 1, rows, columns);
        around[2].load(volume, first, rows, columns);
    }

    // Goes on to a slice, the one behind the last.
    __device__ void move(const Volume& volume, int z) {
        around[0] = around[1];
        around[1] = around[2];
        around[2].load(volume, z + 1, rows, columns);
    }

    __device__ unsigned key() const { return around[1].codes[4]; }
    __device__ int place(const Volume& volume, int z) const {
        return rows[1] + columns[1] + z * volume.height * volume.width;
    }

    // The neighbours that come before the point in the order of keys; equal ones in raster order.
    __device__ unsigned before() const {
        const unsigned own = key();
        unsigned before = 0;
#pragma unroll
        for (int i = 26; i >= 0; --i) {
            const unsigned other = kSpace >> i & 1 ? around[i / 9].codes[i % 9] : own;
            before = i < 13 ? shift_in_less(before, own, other) : shift_in_less(before, other, own);
        }
        return before ^ kBeforeCenter;
    }
};
