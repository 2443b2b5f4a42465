// Works on two samples in a register, as codes of 16 bits (pair_codes.cuh): finds which of them owns a
// cell, planes of comparisons and coefficients, and counts the events.
#pragma once
#include "pair_codes.cuh"

// Returns 1 where b owns the cells that a and b share, else 0.
ECC_DEVICE pair owns_shared(pair a, pair b) {
    return kLargest ? subtract_saturated(b, a) : subtract_saturated(a, b);
}

ECC_DEVICE void owns_shared(pair (&owned)[kLaneWidth], const pair (&p)[kLaneWidth],
                            const pair (&q)[kLaneWidth]) {
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) owned[x] = owns_shared(p[x], q[x]);
}

ECC_DEVICE void owned_right(pair (&owned)[kLaneWidth], const pair (&row)[kLaneWidth]) {
    const pair right = __shfl_down_sync(kWarp, row[0], 1);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x)
        owned[x] = owns_shared(row[x], x < kLaneWidth - 1 ? row[(x + 1) % kLaneWidth] : right);
}

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

    // Combines numbers by multiply-adds, since the other units have more to do.
    ECC_DEVICE static plane words(const float (&number)[4]) {
        return {__float_as_uint(number[2]) * 0x10000u + __float_as_uint(number[0]),
                __float_as_uint(number[3]) * 0x10000u + __float_as_uint(number[1])};
    }

    // Returns the planes as the rows that follow see them, before the last row is added.
    ECC_DEVICE plane before() const { return words(column); }

    // Returns the planes after all rows have been added.
    ECC_DEVICE plane own() const {
        if (!with_above) return words(column);
        constexpr float low = kNumber - kHalves, high = low + kLift - kHalvesLift;
        return words({add_truncated(column[0], low), add_truncated(column[1], low),
                      add_truncated(column[2], high), add_truncated(column[3], high)});
    }
};

// Weights of a matrix product that adds a row and the eighth below it, in the four columns of a lane, to
// the numbers of `Rows` in the same lane. Lane 4 g + t holds its columns in rows g and g + 8 of the left
// matrix, at 2 t, 2 t + 1 and eight after these, and its sums in the same rows of the product, at 2 t and
// 2 t + 1.
struct RowWeights {
    pair even, odd;

    // Begins with the weights of the first two rows, 1 and 256. With a row above, the first two rows are
    // that row and row 7, of weights 1/2 and 128.
    ECC_DEVICE explicit RowWeights(int lane, bool with_above = false) {
        const pair first = with_above ? 0x58003800u : 0x5C003C00u;
        even = lane >> 2 == 2 * (lane & 3) ? first : 0u;
        odd = lane >> 2 == 2 * (lane & 3) + 1 ? first : 0u;
    }
    // Return the same weights with zero for the other row of each pair.
    ECC_DEVICE RowWeights low() const { return masked(0xFFFFu); }
    ECC_DEVICE RowWeights high() const { return masked(0xFFFF0000u); }
    ECC_DEVICE RowWeights masked(unsigned bits) const {
        RowWeights some = *this;
        some.even &= bits;
        some.odd &= bits;
        return some;
    }
    ECC_DEVICE void next() {
        even = add_pairs(even, even);
        odd = add_pairs(odd, odd);
    }
    ECC_DEVICE void add(float (&column)[4], const pair (&owned)[kLaneWidth]) const {
        multiply_matrices(column, {owned[0], owned[2], owned[1], owned[3]}, even, odd, column);
    }
};

// Returns the high half of `a` as the low one, and the low half of `b` as the high one.
ECC_DEVICE pair between(pair a, pair b) { return __byte_perm(a, b, 0x5432); }

// Writes the code that never enters where the mask is 0. `low` and `high` are four bytes of the mask, for
// the two rows of the pairs.
ECC_DEVICE void mask_codes(pair (&p)[kLaneWidth], unsigned low, unsigned high) {
    constexpr unsigned rest = 0x7F7F7F7Fu;  // Adding it sets the sign of each byte that is not 0.
    low |= (low & rest) + rest, high |= (high & rest) + rest;
    const pair shown[kLaneWidth] = {permute<0xCC88>(low, high), permute<0xDD99>(low, high),
                                    permute<0xEEAA>(low, high), permute<0xFFBB>(low, high)};
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x)
        p[x] = (p[x] & shown[x]) | (kCodeZero * 0x10001u & ~shown[x]);
}

// Which columns beside a warp the image does not have. V has no cells there, and T's outer faces belong to
// the samples at the border. So in the order of ownership, V takes these columns for larger than any other,
// and T for smaller.
struct Outside {
    bool left, right;
    ECC_DEVICE Outside(int first, int width)
        : left(first == 0), right(first + kWarpWidth >= width) {}
};

// Coefficients of rows without the rows beside them.
struct Steps : Trits {
    ECC_DEVICE Steps(plane plus, plane minus) : Trits{plus, minus} {}
    // Returns what is subtracted where these rows are maxima.
    ECC_DEVICE Trits taken(plane where) const { return {minus & where, plus & where}; }
};

// A lane's place in the image.
struct Place {
    int lane;
    unsigned last_lane;  // In word b, the last column of the warp or of the image.
    plane last_column;   // The last column of the image; with kVector, `last_lane` has it.

    ECC_DEVICE Place(int lane, int x, int width)
        : lane(lane),
          last_lane(lane == 31 || (kVector && x + kLaneWidth >= width) ? 0xFFFF0000u : 0u),
          last_column(kVector ? kNone : column_bits(width - x) & ~column_bits(width - 1 - x)) {}

    // Returns the samples that lie in the image.
    ECC_DEVICE static plane columns(int x, int width) {
        if (!kVector) return column_bits(width - x);
        return x < width ? kAll : kNone;
    }

    // Returns the coefficients of rows by themselves, from comparisons with the right neighbours. `shift`
    // is 15, or 16 for planes that begin with the row above.
    ECC_DEVICE Steps steps(plane bits, Sides sides, int shift) const {
        bits.b = (bits.b & ~last_lane) | (sides.right << shift & last_lane);
        if (!kVector && !kLines) bits = force(bits, last_column);  // Lines go on in the next tile.
        const unsigned other = __shfl_up_sync(kWarp, bits.b, 1);
        const plane left = left_of(bits, lane == 0 ? sides.left << shift : other);
        return {bits & ~left, ~bits & left};
    }
};

// Returns the row below; lane i holds row i - 1 of the warp's rows.
ECC_DEVICE Border next_row(Border p) {
    return {__shfl_down_sync(kWarp, p.a, 1), __shfl_down_sync(kWarp, p.b, 1)};
}

// The code of columns outside the image.
constexpr pair kOutside = kRising ? 0x7BFF7BFFu : 0xFBFFFBFFu;

ECC_DEVICE Border beyond(Border p, Outside outside) {
    if (outside.left) p.a = __byte_perm(p.a, kOutside, 0x3254);
    if (outside.right) p.b = __byte_perm(p.b, kOutside, 0x5410);
    return p;
}

// Counts pairs whose coefficients are not zero by their codes. Counts are in units of 1/16, so that a
// coefficient is the upper half of a byte.

// If some word of the warp has more events than this, it is faster to count every sample.
constexpr unsigned kDense = 8;

// A row of a lane's pairs in shared memory, where its events find them.
constexpr int kCacheRow = 32 * kLaneWidth * sizeof(pair);  // In bytes.
constexpr int kCacheBytes = kPairRows8 * kCacheRow;        // Bytes of all rows of a warp.

// Stores a row in the order of planes: the columns of the first word, then those of the second.
ECC_DEVICE void keep(unsigned address, const pair (&p)[kLaneWidth]) {
    shared_store(address, {p[0], p[2], p[1], p[3]});
}

// A sample, which is half of a pair, and its coefficient.
struct Event {
    unsigned half;
    int amount;
};

// Takes an event off a word. `columns`: address of the columns of the word in the first row. If there
// is none left, returns any sample with amount 0, so that the lanes of a warp do not diverge.
ECC_DEVICE Event take_event(unsigned columns, unsigned b0, unsigned b1, unsigned b2, unsigned b3,
                            unsigned& events) {
    const unsigned last = columns + 7 * kCacheRow + 3 * 2;  // The address of the sample of bit 31.
    const unsigned later = events - 1u;
    const int shift = shift_to_sign(events ^ later);
    const unsigned half =
        shared_short(last - shift * kCacheRow + (shift >> 3) * (8 * kCacheRow - 2));
    const int amount = events ? coefficient(b0, b1, b2, b3, shift) : 0;
    events &= later;
    return {half, amount};
}

// Writes the four planes of a word as eight words: word r has in its bytes the coefficients of rows r and
// r + 8 of its first column, then those of its second.
ECC_DEVICE void spread_rows(unsigned b0, unsigned b1, unsigned b2, unsigned b3,
                            unsigned (&rows)[8]) {
    unsigned words[4];
    spread(b0, b1, b2, b3, words);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        rows[r] = (words[r] << 4) & 0xF0F0F0F0u;
        rows[r + 4] = words[r] & 0xF0F0F0F0u;
    }
}

struct PairCounter {
    unsigned cache;   // Shared address of the lane's pairs.
    unsigned step;    // Bytes from code to code.
    unsigned counts;  // Shared address of the count of a half of zero, in the copy of the lane.

    ECC_DEVICE PairCounter(const pair* cache, const Histogram& histogram)
        : cache(shared_address(cache)),
          step(4u * histogram.copies),
          counts(shared_address(histogram.counts + histogram.lane_copy) - kCodeZero * step) {}

    ECC_DEVICE void put(int row, const pair (&four)[kLaneWidth]) const {
        keep(cache + row * kCacheRow, four);
    }

    // Counts events one by one, all lanes at the same time. A word has at most `most` events.
    ECC_DEVICE void sparse(const Numbers4& c, plane events, unsigned most) const {
        for (unsigned k = 0; k < most; ++k) {
            const Event a = take_event(cache, c.b0.a, c.b1.a, c.b2.a, c.b3.a, events.a),
                        b = take_event(cache + 8, c.b0.b, c.b1.b, c.b2.b, c.b3.b, events.b);
            shared_add(counts + a.half * step, 16 * a.amount);
            shared_add(counts + b.half * step, 16 * b.amount);
        }
    }

    ECC_DEVICE void add(pair codes, int low, int high) const {
        shared_add(counts + (codes & 0xFFFFu) * step, low);
        shared_add(counts + (codes >> 16) * step, high);
    }

    // Counts every sample row by row, all lanes at the same time.
    ECC_DEVICE void dense(const Numbers4& c, plane events) const {
        const Numbers4 own = only(c, events);
        unsigned first[8], second[8];
        spread_rows(own.b0.a, own.b1.a, own.b2.a, own.b3.a, first);
        spread_rows(own.b0.b, own.b1.b, own.b2.b, own.b3.b, second);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            pair four[kLaneWidth];
            shared_load(cache + r * kCacheRow, four);
            add(four[0], permute<0x8880>(first[r], 0), permute<0x9991>(first[r], 0));
            add(four[1], permute<0xAAA2>(first[r], 0), permute<0xBBB3>(first[r], 0));
            add(four[2], permute<0x8880>(second[r], 0), permute<0x9991>(second[r], 0));
            add(four[3], permute<0xAAA2>(second[r], 0), permute<0xBBB3>(second[r], 0));
        }
    }

    ECC_DEVICE void operator()(const Numbers4& c, plane own) const {
        const plane events = (c.b0 | c.b1 | c.b2 | c.b3) & own;
        const int most = max(__popc(events.a), __popc(events.b));
        const unsigned of_warp = __reduce_max_sync(kWarp, (unsigned)most);
        if (of_warp > kDense)
            dense(c, events);
        else
            sparse(c, events, of_warp);
    }
};
