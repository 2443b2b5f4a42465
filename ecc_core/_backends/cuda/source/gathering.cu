// The values and the indices of points that are listed in any order.

#include "common.cuh"

typedef ECC_ITEM Item;  // a value as its bits
typedef unsigned long long Word;

// Points at which classes are born and die, or -1.
struct Points {
    const long long* births;
    const long long* deaths;
    unsigned size;
};

// Writes the values at births and deaths; `last` for those that do not die.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_values(const Item* values, const Points points, const Word last, Item* born, Item* died) {
    const unsigned i = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (i >= points.size) return;
    const long long death = points.deaths[i];
    born[i] = values[points.births[i]];
    died[i] = death < 0 ? (Item)last : values[death];
}

// Writes the indices of points in C order (size, axes), -1 for -1, of an image (length 0, length 1, length 2)
// whose last axes are those that it has.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_indices(const long long* points, const unsigned size, const int height, const int width,
                 const int axes, long long* indices) {
    const unsigned i = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (i >= size) return;
    const long long point = points[i];
    long long* const own = indices + (long long)i * axes;
    if (point < 0) {
        for (int axis = 0; axis < axes; ++axis) own[axis] = -1;
        return;
    }
    const long long row = quotient(point, width), slice = quotient(row, height);
    own[axes - 1] = point - row * width;
    if (axes > 1) own[axes - 2] = row - slice * height;
    if (axes > 2) own[0] = slice;
}
