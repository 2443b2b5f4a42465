// Numbers that collect the bits of rows, and the planes that they become.
#pragma once
#include "tiling.cuh"

// A number for each of the lane's four columns, with a bit for each row. The row above, if there is one,
// is the last bit, of half the weight of the first row. The numbers are the last bits of floats. Columns 2
// and 3 begin with a larger number, which cancels the exponents of columns 0 and 1 when two numbers are
// combined into a word.
template <bool with_above>
struct Rows {
    static constexpr float kNumber = 8388608.0f, kLift = 0x10000 - 0x4B00;
    static constexpr float kHalves = 4194304.0f, kHalvesLift = (0x10000 - 0x4A80) / 2;
    static constexpr float kLow = with_above ? kHalves : kNumber;
    static constexpr float kHigh = kLow + (with_above ? kHalvesLift : kLift);
    float column[4] = {kLow, kLow, kHigh, kHigh};

    template <class Owned, class Weights>
    __device__ __forceinline__ void add(const Owned& owned, const Weights& weights) {
        weights.add(column, owned);
    }

    // By multiply-adds, since the other units have more to do.
    __device__ __forceinline__ static plane words(const float (&number)[4]) {
        return {__float_as_uint(number[2]) * 0x10000u + __float_as_uint(number[0]),
                __float_as_uint(number[3]) * 0x10000u + __float_as_uint(number[1])};
    }

    // The planes as seen from the rows that follow, before the last row is added.
    __device__ __forceinline__ plane before() const { return words(column); }

    // The planes after all rows have been added.
    __device__ __forceinline__ plane own() const {
        if (!with_above) return words(column);
        constexpr float low = kNumber - kHalves, high = low + kLift - kHalvesLift;
        return words({add_truncated(column[0], low), add_truncated(column[1], low),
                      add_truncated(column[2], high), add_truncated(column[3], high)});
    }
};
