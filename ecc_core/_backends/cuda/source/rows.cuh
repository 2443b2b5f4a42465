// From rows of samples to planes, by way of numbers.
#pragma once
#include "tiling.cuh"

// A number for each of the lane's four columns, a bit a row. With a row above, that row is the last
// bit, of half the weight of the first. The numbers are the last bits of floats: columns 2 and 3 are
// ahead by as much as makes up for the other bits of 0 and 1 when both are put into a word.
template <bool with_above>
struct Rows {
    static constexpr float kNumber = 8388608.0f, kLift = 0x10000 - 0x4B00;
    static constexpr float kHalves = 4194304.0f, kHalvesLift = (0x10000 - 0x4A80) / 2;
    static constexpr float kLow = with_above ? kHalves : kNumber;
    static constexpr float kHigh = kLow + (with_above ? kHalvesLift : kLift);
    float column[4] = {kLow, kLow, kHigh, kHigh};

    template <class Won, class Weights>
    __device__ __forceinline__ void add(const Won& owned, const Weights& weights) {
        weights.add(column, owned);
    }

    // On the multiply-add units, as the others have more to do.
    __device__ __forceinline__ static plane words(const float (&number)[4]) {
        return {__float_as_uint(number[2]) * 0x10000u + __float_as_uint(number[0]),
                __float_as_uint(number[3]) * 0x10000u + __float_as_uint(number[1])};
    }

    // As the rows see them that follow: when all but the last row are there.
    __device__ __forceinline__ plane before() const { return words(column); }

    // When all rows are there.
    __device__ __forceinline__ plane own() const {
        if (!with_above) return words(column);
        constexpr float low = kNumber - kHalves, high = low + kLift - kHalvesLift;
        return words({add_truncated(column[0], low), add_truncated(column[1], low),
                      add_truncated(column[2], high), add_truncated(column[3], high)});
    }
};
