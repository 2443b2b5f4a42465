// From rows of samples to planes: what a comparison makes of samples, and how matrix products whose
// weights are powers of two collect that.
#pragma once
#include "tiling.cuh"

#ifdef ECC_PAIRS
typedef pair Sample;  // two of them
#else
typedef float Sample;
#endif

// 1 where b owns what a and b share, else 0.
__device__ __forceinline__ Sample contest(Sample a, Sample b);

__device__ __forceinline__ void contest(Sample (&won)[kLaneWidth], const Sample (&p)[kLaneWidth],
                                        const Sample (&q)[kLaneWidth]) {
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) won[x] = contest(p[x], q[x]);
}

__device__ __forceinline__ void contest_right(Sample (&won)[kLaneWidth],
                                              const Sample (&row)[kLaneWidth]) {
    const Sample right = __shfl_down_sync(kWarp, row[0], 1);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x)
        won[x] = contest(row[x], x < kLaneWidth - 1 ? row[(x + 1) % kLaneWidth] : right);
}

// A number for each of the lane's four columns, a bit a row. With a row above, that row is the last
// bit, of half the weight of the first. The numbers are the last bits of floats: columns 2 and 3 are
// ahead by as much as makes up for the other bits of 0 and 1 when both are put into a word.
template <bool with_above>
struct Rows {
    static constexpr float kNumber = 8388608.0f, kLift = 0x10000 - 0x4B00;
    static constexpr float kHalves = 4194304.0f, kHalvesLift = (0x10000 - 0x4A80) / 2;
    float column[4];

    // `first`: nothing has been added before.
    template <class Won, class Weights>
    __device__ __forceinline__ void add(bool first, const Won& won, const Weights& weights) {
        constexpr float low = with_above ? kHalves : kNumber;
        constexpr float high = low + (with_above ? kHalvesLift : kLift);
        const Won a = {won[0], won[2], won[1], won[3]};
        const float before[4] = {first ? low : column[0], first ? low : column[1],
                                 first ? high : column[2], first ? high : column[3]};
        multiply_matrices(column, a, weights.even, weights.odd, before);
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
