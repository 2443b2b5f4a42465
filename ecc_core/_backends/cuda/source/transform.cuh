// Heights of grid points in directions, and their bins.
//
// A height is (u[0] * z + u[1] * y) + u[2] * x in float64, where every product and every sum is
// rounded as on the CPU: the compiler never fuses __dmul_rn and __dadd_rn. The bin of a height is the
// number of levels below it; a height above all levels has none.
#pragma once
#include "common.cuh"

struct Vector {
    double z, y, x;
};

// Returns the part of a height that all points of a row have in common.
ECC_DEVICE double row_height(const Vector& u, double z, double y) {
    return __dadd_rn(__dmul_rn(u.z, z), __dmul_rn(u.y, y));
}

ECC_DEVICE double point_height(const Vector& u, double row, double x) {
    return __dadd_rn(row, __dmul_rn(u.x, x));
}

// An axis of points, centred. Axes that the image does not have hold one point.
struct Axis {
    double centre, step;
    int points;
    int present;

    ECC_DEVICE double position(int index) const { return __dmul_rn((double)index - centre, step); }
};

struct Grid {
    Axis z, y, x;
};

// Directions of one orthant that a block counts together: from `first` to before `last`.
struct Job {
    int first, last, orthant;
};

struct Sampling {
    const Vector* directions;  // Sorted by orthant.
    const double* levels;      // In increasing order.
    const int* rows;           // The row of each direction in the result.
    const Job* jobs;
    int count;             // Levels, at least one.
    int directions_count;  // Rows of the result.
    double origin, scale;  // Level k is near origin + k / scale, unless scale is 0.
};

// Returns the number of levels below a height. level(k) is level k in the unit of `height`; `measure` is
// the height in the unit of the sampling. The host has checked that evenly spaced levels lie within a
// quarter of a step of their places, so that the guess is the bin or the one before it.
template <class Level>
ECC_DEVICE int place(double height, double measure, const Sampling& sampling, const Level& level) {
    if (sampling.scale > 0) {
        const int guess = __double2int_rn((measure - sampling.origin) * sampling.scale);
        const int near = max(0, min(sampling.count - 1, guess));
        return near + (height > level(near) ? 1 : 0);
    }
    return first_failing(sampling.count, [&](int i) { return height > level(i); });
}

ECC_DEVICE int place(double height, const Sampling& sampling, const double* levels) {
    return place(height, height, sampling, [levels](int i) { return levels[i]; });
}

// Sums of 64 bits, which are unsigned so that they wrap.
typedef unsigned long long Sum;

// The two points along an axis that a cell spans, as offsets: its owner, and the other point. In the
// T-construction these are the cubes on both sides of a corner, and the owner is the one that comes
// first along the direction.
struct Pair {
    int here, far;

    ECC_DEVICE Pair(bool negative, bool cubes)
        : here(cubes && !negative ? -1 : 0),
          far(cubes ? (negative ? -1 : 0) : (negative ? 1 : -1)) {}
};

// Where the cells of an orthant lie.
struct Owner {
    Pair z, y, x;

    ECC_DEVICE Owner(int orthant, bool cubes)
        : z(orthant & 4, cubes), y(orthant & 2, cubes), x(orthant & 1, cubes) {}
};

// The planes of a mask, with a border that is outside. A word has the bits of 32 points, or those of their
// complement if `outside` is all ones. Word w of row y of a slice is at
// bits[((slice * tiles + y / 32) * words + w) * 32 + y % 32], so that the words of 32 rows lie next to each
// other.
struct Planes {
    unsigned* bits;
    int deep;  // Slices of the border on each side; rows and words have one on each side.
    int slices, tiles, words;
    int cubes;
    unsigned outside;
    int sign;  // The sign of the construction, 1 or -1.
};
