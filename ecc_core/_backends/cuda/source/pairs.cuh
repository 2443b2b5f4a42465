// Two samples in a register: what the bins of a curve do not tell apart needs no more than a code
// of 11 bits. Codes order samples as the filtration does or the other way round; samples of one bin
// may come in any order that stays the same.
#pragma once
#include "bins.cuh"
#include "rows.cuh"
#include "steps.cuh"

// Code k is the number 1024 + k of half precision, whose bits are kCodeZero + k.
//   kTable (types of 8 bits): the value, counted from the least.
//   kAffine, kUniform, kCells: the bin (superlevel) or the number of thresholds less the bin (sublevel), so
//     that 0 never enters. kAffine gives samples before the first threshold larger codes.
constexpr unsigned kCodeZero = 0x6400u;
constexpr bool kBytes = kBins == kTable;
constexpr bool kRising = kBytes && !kSuper;  // codes increase in the order of entry
constexpr bool kLargest = kRising != kCubes;  // a cell belongs to its point of the largest code

__device__ __forceinline__ pair owner(pair a, pair b) {
    return kLargest ? larger_pair(a, b) : smaller_pair(a, b);
}

// 1 where b owns what a and b share, else 0.
__device__ __forceinline__ pair owns_shared(pair a, pair b) {
    return kLargest ? subtract_saturated(b, a) : subtract_saturated(a, b);
}

__device__ __forceinline__ void owns_shared(pair (&owned)[kLaneWidth], const pair (&p)[kLaneWidth],
                                        const pair (&q)[kLaneWidth]) {
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) owned[x] = owns_shared(p[x], q[x]);
}

__device__ __forceinline__ void owned_right(pair (&owned)[kLaneWidth],
                                              const pair (&row)[kLaneWidth]) {
    const pair right = __shfl_down_sync(kWarp, row[0], 1);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x)
        owned[x] = owns_shared(row[x], x < kLaneWidth - 1 ? row[(x + 1) % kLaneWidth] : right);
}

// Weights that make one matrix product add a row and the eighth below it, in a lane's four columns,
// to the numbers of Rows in the same lane. With lane 4 g + t: the left matrix has the lane's
// columns in rows g and g + 8 at 2 t, 2 t + 1 and eight after, the product has the lane's sums in
// these rows at 2 t and 2 t + 1.
struct RowWeights {
    pair even, odd;

    // `with_above`: of the row above, which is a half, and the seventh row.
    __device__ __forceinline__ explicit RowWeights(int lane, bool with_above = false) {
        const pair first = with_above ? 0x58003800u : 0x5C003C00u;
        even = lane >> 2 == 2 * (lane & 3) ? first : 0u;
        odd = lane >> 2 == 2 * (lane & 3) + 1 ? first : 0u;
    }
    // Of one of the two rows only.
    __device__ __forceinline__ RowWeights low() const { return masked(0xFFFFu); }
    __device__ __forceinline__ RowWeights high() const { return masked(0xFFFF0000u); }
    __device__ __forceinline__ RowWeights masked(unsigned bits) const {
        RowWeights some = *this;
        some.even &= bits;
        some.odd &= bits;
        return some;
    }
    __device__ __forceinline__ void next() {
        even = add_pairs(even, even);
        odd = add_pairs(odd, odd);
    }
    __device__ __forceinline__ void add(float (&column)[4], const pair (&owned)[kLaneWidth]) const {
        multiply_matrices(column, {owned[0], owned[2], owned[1], owned[3]}, even, odd, column);
    }
};

// The upper row of `a` over the lower row of `b`.
__device__ __forceinline__ pair between(pair a, pair b) { return __byte_perm(a, b, 0x5432); }

// Notices NaN, and infinities and very large products too: the host then looks again.
struct PairCheck {
    float sum = 0.0f;
    __device__ __forceinline__ void see(float a, float b) { sum = multiply_add(a, b, sum); }
    __device__ __forceinline__ bool failed() const { return sum - sum != 0.0f; }
};

template <class T>
struct IsSigned {
    static constexpr bool value = false;
};
template <>
struct IsSigned<signed char> {
    static constexpr bool value = true;
};
constexpr bool kSigned = IsSigned<Element>::value;  // kBytes

// From samples to codes.
//
// kUniform: the guess of bins.cuh becomes a code by one more rounding, and its threshold is found by
// that code. kCells: the table has a threshold and the code of samples up to it (superlevel: from
// it on) for each cell. Both are then one less where the sample lies beyond the threshold.
struct Encoder {
    const Bins& bins;
    float slope, origin;  // kUniform: of the code, from the guess between 0 and 1
    unsigned table;       // kUniform, kCells: shared address of the entry of the guess 0

    __device__ __forceinline__ Encoder(const Bins& bins, const SharedLayout& layout)
        : bins(bins), slope(0.0f), origin(0.0f), table(0) {
        if (kBins == kUniform) {
            const unsigned zero = kCodeZero + (kSuper ? 1 : bins.count);
            slope = kSuper ? bins.last : -bins.last;
            origin = __uint_as_float(kGuess + zero);
            const unsigned first = shared_address(layout.thresholds), bytes = 4u * (kGuess + zero);
            table = opaque(kSuper ? first - bytes : first + bytes);
        }
        if (kBins == kCells) table = opaque(shared_address(layout.table) - 8u * kGuess);
    }

    // In the low half.
    __device__ __forceinline__ unsigned code(float key) const {
        if (kNan == kNanOmit) key = omit_nan(key);
        unsigned near;
        float threshold;
        if (kBins == kCells) {
            const uint2 entry = shared_words(table + 8u * guess(key, bins));
            threshold = __uint_as_float(entry.x), near = entry.y;
        } else {
            const float unit = multiply_add_saturated(key, bins.scale, bins.low);
            near = __float_as_uint(multiply_add(unit, slope, origin));
            threshold = shared_float(kSuper ? table + 4u * near : table - 4u * near);
        }
        return kSuper ? one_less(near, key, threshold) : one_less(near, threshold, key);
    }

    __device__ __forceinline__ pair operator()(Element low, Element high, PairCheck& check) const {
        const Key a = to_key(low), b = to_key(high);
        if (kBytes) return kCodeZero * 0x10001u + (unsigned)to_integer(a) + ((unsigned)to_integer(b) << 16);
        if (kNan == kNanReport) check.see(a, b);
        if (kBins != kAffine) return __byte_perm(code(a), code(b), 0x5410);
        return to_pair(affine(a), affine(b));
    }

    __device__ __forceinline__ float affine(float key) const {
        const float unit = multiply_add_down_saturated(key, bins.scale, bins.low);
        return multiply_add_down(unit, bins.last, 1024.0f);
    }

    // Two rows of a lane.
    __device__ __forceinline__ void operator()(const Quad* low, const Quad* high,
                                               pair (&out)[kLaneWidth], PairCheck& check) const {
        if (kBytes && kVector) {
            constexpr unsigned zero = kCodeZero * 0x10001u, flip = kSigned ? 0x80808080u : 0u;
            const unsigned a = *(const unsigned*)low ^ flip, b = *(const unsigned*)high ^ flip;
            const unsigned left = __byte_perm(a, b, 0x5410), right = __byte_perm(a, b, 0x7632);
            out[0] = __byte_perm(left, zero, 0x5250);
            out[1] = __byte_perm(left, zero, 0x5351);
            out[2] = __byte_perm(right, zero, 0x5250);
            out[3] = __byte_perm(right, zero, 0x5351);
        } else {
            const Quad a = *low, b = *high;
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) out[x] = (*this)(a.v[x], b.v[x], check);
        }
    }
};

// The columns left and right of the two borders of a warp, those of the left border in the low
// halves. Lane i holds row i - 1 of the warp's rows.
struct PairBorder {
    pair a, b;
};

__device__ __forceinline__ PairBorder owner(PairBorder p, PairBorder q) {
    return {owner(p.a, q.a), owner(p.b, q.b)};
}

__device__ __forceinline__ PairBorder next_row(PairBorder p) {
    return {__shfl_down_sync(kWarp, p.a, 1), __shfl_down_sync(kWarp, p.b, 1)};
}

// The code of columns that the image does not have.
constexpr pair kOutside = kRising ? 0x7BFF7BFFu : 0xFBFFFBFFu;

__device__ __forceinline__ PairBorder beyond(PairBorder p, Outside outside) {
    if (outside.left) p.a = __byte_perm(p.a, kOutside, 0x3254);
    if (outside.right) p.b = __byte_perm(p.b, kOutside, 0x5410);
    return p;
}

__device__ __forceinline__ PairSides sides(PairBorder border) {
    PairSides owned;
    if (kLargest)
        vote_less(border.a, border.b, owned.left, owned.right);
    else
        vote_less(border.b, border.a, owned.left, owned.right);
    return owned;
}
