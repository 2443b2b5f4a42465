// Images of codes, and which of the 26 neighbours of a point come before it.
#pragma once
#include "device.cuh"

typedef unsigned long long Word;
typedef ECC_CODE Code;

constexpr bool kPlanar = ECC_PLANAR;    // Whether there is only one slice.
constexpr bool kReverse = ECC_REVERSE;  // Keys are `top` minus the codes.
// Whether the image is a torus: along each axis of more than one point, the last one touches the first.
constexpr bool kTorus = ECC_TORUS;
constexpr int kThreads = ECC_THREADS, kColumns = kPlanar ? kThreads : 32;

struct Volume {
    const Code* codes;
    int depth, height, width;
    unsigned top;
    float scale;  // The factor from keys to ranks (betti.cu).
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

// Returns which of the places around a point are beyond the ends of one axis: `low` beyond the first point
// and `high` beyond the last, for the point `at` of `length`.
__device__ unsigned beyond_ends(int at, int length, unsigned low, unsigned high) {
    if (kTorus) return length == 1 ? low | high : 0;
    return (at == 0 ? low : 0) | (at == length - 1 ? high : 0);
}

// Return the places of the cube around a point that are not in the image.
__device__ unsigned beyond_row(const Volume& volume, int y, int x) {
    return beyond_ends(x, volume.width, kLowX, kHighX) |
           beyond_ends(y, volume.height, kLowY, kHighY);
}
__device__ unsigned beyond_image(const Volume& volume, int z, int y, int x) {
    return beyond_row(volume, y, x) | beyond_ends(z, volume.depth, kLowZ, kHighZ);
}

// Returns the places whose points come before a point of a torus in raster order, from the places that come
// before it along each axis.
__device__ unsigned earlier_ends(int at, int length, unsigned low, unsigned high) {
    return (at > 0 ? low : 0) | (at == length - 1 && length > 1 ? high : 0);
}
__device__ unsigned earlier_places(const Volume& volume, int z, int y, int x) {
    const unsigned in_row = earlier_ends(x, volume.width, kLowX, kHighX);
    const unsigned rows = earlier_ends(y, volume.height, kLowY, kHighY);
    const unsigned slices = earlier_ends(z, volume.depth, kLowZ, kHighZ);
    const unsigned in_slice = rows | (in_row & ~(kLowY | kHighY));
    return slices | (in_slice & ~(kLowZ | kHighZ));
}

// Returns the index along an axis of a point that may be beyond an end: a torus goes on there at the other
// end, and other images repeat their last point.
__device__ int index_inside(int at, int length) {
    if (at < 0) return kTorus ? length - 1 : 0;
    if (at >= length) return kTorus ? 0 : length - 1;
    return at;
}

// A point, or one beyond the image.
struct Point {
    int z, y, x;

    __device__ Point(int z, int y, int x) : z(z), y(y), x(x) {}
    __device__ Point(const Volume& volume, int place) {
        const int row = place / volume.width;
        x = place - row * volume.width;
        z = row / volume.height;
        y = row - z * volume.height;
    }
    // Returns the point at one of the 27 places around this one.
    __device__ Point beside(int i) const {
        return {z + i / 9 - 1, y + i / 3 % 3 - 1, x + i % 3 - 1};
    }
    __device__ bool inside(const Volume& volume) const {
        return (unsigned)z < (unsigned)volume.depth && (unsigned)y < (unsigned)volume.height &&
               (unsigned)x < (unsigned)volume.width;
    }
    // Returns the same point of a torus inside the image. Points of other images stay where they are.
    __device__ Point at_home(const Volume& volume) const {
        if (!kTorus) return *this;
        return {index_inside(z, volume.depth), index_inside(y, volume.height),
                index_inside(x, volume.width)};
    }
    __device__ int place(const Volume& volume) const {
        return (z * volume.height + y) * volume.width + x;
    }
};

// Returns the place of the point at one of the 27 places around a point; it must be in the image.
__device__ int place_beside(const Volume& volume, int place, int i) {
    if (!kTorus)
        return place + ((i / 9 - 1) * volume.height + i / 3 % 3 - 1) * volume.width + i % 3 - 1;
    return Point(volume, place).beside(i).at_home(volume).place(volume);
}

// The codes of the 3 x 3 points of a slice around a point. Points beyond an end have those of
// `index_inside`.
struct Slice {
    unsigned codes[9];

    __device__ void load(const Volume& volume, int z, const int* rows, const int* columns) {
        const long long slice = (long long)volume.height * volume.width;
        const Code* const from = volume.codes + index_inside(z, volume.depth) * slice;
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
            rows[i] = index_inside(y + i - 1, volume.height) * volume.width;
            columns[i] = index_inside(x + i - 1, volume.width);
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

    // Returns the neighbours that come before the point in the order of keys, those of equal keys in raster
    // order.
    __device__ unsigned before(const Volume& volume, int z) const {
        const unsigned own = key();
        unsigned before = 0;
        if (kTorus) {
            unsigned behind = 0;
#pragma unroll
            for (int i = 26; i >= 0; --i) {
                const unsigned other = kSpace >> i & 1 ? around[i / 9].codes[i % 9] : own;
                before = shift_in_less(before, other, own);
                behind = shift_in_less(behind, own, other);
            }
            return before | (earlier_places(volume, z, y, x) & ~behind);
        }
#pragma unroll
        for (int i = 26; i >= 0; --i) {
            const unsigned other = kSpace >> i & 1 ? around[i / 9].codes[i % 9] : own;
            before = i < 13 ? shift_in_less(before, own, other) : shift_in_less(before, other, own);
        }
        return before ^ kBeforeCenter;
    }
};
