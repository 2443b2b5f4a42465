// Samples as codes of 16 bits, two of them in a register. A curve depends only on the bins of its samples,
// so that a code stands for a bin. Codes increase or decrease in the order of the filtration; samples of
// one bin may have any order among each other, as long as all comparisons use the same.
#pragma once
#include "histogram.cuh"
#include "tiling.cuh"

// Code k is the number of half precision whose bits are kCodeZero + k: 1024 + k up to 2048, then numbers
// further and further apart. Two codes that differ do so by 1 at least, and 6144 are below infinity.
//   kTable (types of 8 bits): the value, counted from the least.
//   kAffine, kComplement, kUniform: the bin (superlevel) or the number of thresholds less the bin (sublevel),
//     so that 0 never enters. With the first two, samples that all thresholds admit may have larger codes.
//   kCells, kPieces: several codes may stand for one bin.
constexpr unsigned kCodeZero = 0x6400u;
constexpr bool kBytes = kBins == kTable;
constexpr bool kRising = kBytes && !kSuper;  // Codes increase in the order of entry.

// Notices NaN. Infinities and very large products look the same here, so that the host then looks again.
struct PairCheck {
    float sum = 0.0f;

    ECC_DEVICE void see(Element low, Element high) {
        if (kNan == kNanReport) sum = multiply_add((float)to_key(low), (float)to_key(high), sum);
    }
    ECC_DEVICE bool failed() const { return sum - sum != 0.0f; }
};

// Whether values are signed bytes.
template <class T>
__device__ constexpr bool is_signed(T) {
    return false;
}
__device__ constexpr bool is_signed(signed char) { return true; }
constexpr bool kSigned = is_signed(Element());

// Returns the key from which kAffine and kComplement compute the code.
template <class T>
ECC_DEVICE Key code_key(T sample) {
    return to_key(sample);
}
ECC_DEVICE float code_key(unsigned short sample) {
    return to_key((unsigned short)(kBins == kComplement ? ~sample : sample));
}
ECC_DEVICE float code_key(short sample) {
    return to_key((short)(kBins == kComplement ? ~sample : sample));
}

// Returns the bins, with kFound those with the line that guesses follow, which a kernel has found and
// written behind the table (even.cu).
ECC_DEVICE Bins with_line(Bins bins) {
    if (kFound) {
        const float* const line = (const float*)bins.table + bins.count + 1;
        bins.low = line[0], bins.scale = line[1];
    }
    return bins;
}

// Turns samples into codes. All rules but kTable, kAffine and kComplement guess a code and look up its
// threshold; the code of a sample that does not reach it is one less. No two different thresholds have the
// same guess.
// kUniform: the guess of bins.cuh. Keys other than float32 are only compared with thresholds of their
//   own type.
// kCells: the sum of two guesses, one over the range of all thresholds, and one where they are dense.
// kPieces: the first line guesses a piece of the range, and each piece has a line of its own.
// Samples that reach no threshold have the guess 0, and so does NaN.
//
// Lanes look up different entries, and entries of one bank are read one after the other. Each entry of the
// table is therefore repeated kTableCopies times, and a lane always reads the same copy. The lines of
// pieces are repeated up to 16 times.
struct Encoder {
    const Bins& bins;
    unsigned table;  // Shared address of the threshold of the guess 0.
    unsigned lines;  // kPieces: shared address of the line of the first piece.

    // Bytes from code to code in the table, and from piece to piece in the lines.
    static constexpr unsigned kStep = (unsigned)sizeof(Key) * kTableCopies;
    static constexpr unsigned kLineStep = 8u * kLineCopies;

    ECC_DEVICE Encoder(const Bins& bins, const SharedLayout& layout)
        : bins(bins), table(0), lines(0) {
        const int copy = lane_index() & (kTableCopies - 1);
        if (kLooksUp)
            table = computed_once(shared_address(layout.thresholds) + (unsigned)sizeof(Key) * copy -
                                  kStep * (kGuess + kCodeZero));
        if (kBins == kPieces)
            lines = computed_once(shared_address(layout.lines) + 8u * (copy & (kLineCopies - 1)) -
                                  kLineStep * kGuess);
    }

    // Returns the code of a key in the low half.
    ECC_DEVICE unsigned code(Key key) const {
        const unsigned near =
            kBins == kPieces ? guess_by_piece((float)key) : guess_code((float)key);
        const Key threshold = shared_key(table + kStep * near, key);
        return kSuper ? one_less(near, key, threshold) : one_less(near, threshold, key);
    }

    ECC_DEVICE unsigned guess_code(float key) const {
        const float unit = multiply_add_saturated(key, bins.scale, bins.low);
        const float first = multiply_add(unit, bins.last, 8388608.0f + kCodeZero);
        if (kBins == kUniform) return __float_as_uint(first);
        const float dense = multiply_add_saturated(key, bins.dense_scale, bins.dense_low);
        return __float_as_uint(multiply_add(dense, bins.dense_last, first));
    }

    ECC_DEVICE unsigned guess_by_piece(float key) const {
        const uint2 line = shared_words(lines + kLineStep * guess(key, bins));
        const float unit =
            multiply_add_saturated(key, __uint_as_float(line.y), __uint_as_float(line.x));
        return __float_as_uint(multiply_add(unit, bins.dense_last, 8388608.0f + kCodeZero));
    }

    ECC_DEVICE pair operator()(Element low, Element high) const {
        const Key a = to_key(low), b = to_key(high);
        if (kBytes)
            return kCodeZero * 0x10001u + (unsigned)to_integer(a) + ((unsigned)to_integer(b) << 16);
        if (!kIsAffine) return __byte_perm(code(a), code(b), 0x5410);
        if (kManyCodes)
            return __byte_perm(__float_as_uint(affine(code_key(low))),
                               __float_as_uint(affine(code_key(high))), 0x5410);
        return to_pair(affine(code_key(low)), affine(code_key(high)));
    }

    // Returns the code as a number, or with kManyCodes a number whose last 16 bits are the code.
    ECC_DEVICE float affine(float key) const {
        const float unit = multiply_add_down_saturated(key, bins.scale, bins.low);
        return multiply_add_down(unit, bins.last, kManyCodes ? 8388608.0f + kCodeZero : 1024.0f);
    }

    // Writes the codes of two rows of a lane.
    template <class Check>
    ECC_DEVICE void operator()(const Quad* low, const Quad* high, pair (&out)[kLaneWidth],
                               Check& check) const {
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
            for (int x = 0; x < kLaneWidth; ++x) {
                check.see(a.v[x], b.v[x]);
                out[x] = (*this)(a.v[x], b.v[x]);
            }
        }
    }
};
