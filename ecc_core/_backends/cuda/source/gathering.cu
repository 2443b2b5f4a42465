// Writes the values and the indices of points that are listed in any order.

#include "common.cuh"

typedef ECC_ITEM Item;  // A value as its bits.
typedef unsigned long long Word;

// The points at which classes are born and die; -1 where a class does not die.
struct Points {
    const long long* births;
    const long long* deaths;
    unsigned size;
};

// Writes the values at births and deaths, and `last` for classes that do not die.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_values(const Item* values, const Points points, const Word last, Item* born, Item* died) {
    const unsigned i = blockIdx.x * ECC_THREADS + threadIdx.x;
    if (i >= points.size) return;
    const long long death = points.deaths[i];
    born[i] = values[points.births[i]];
    died[i] = death < 0 ? (Item)last : values[death];
}

// Writes the indices (size, axes) of points, which are given by their places in C order; a place -1 has the
// indices -1. Images of one axis are taken as one row, and images of two as one slice.
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
