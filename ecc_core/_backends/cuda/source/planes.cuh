// Arithmetic on bit planes: every operation acts on all samples of a lane at once.
#pragma once
#include "image.cuh"

#if defined(ECC_PAIRS)
// A bit for each of a lane's 64 samples, sixteen rows of four columns, in two words.
// Sample (row r, column x) is bit r + 16 * (x / 2) of word a (columns 0 and 2) or b (1 and 3).
struct Plane64 {
    unsigned a, b;
};

ECC_DEVICE Plane64 operator&(Plane64 p, Plane64 q) { return {p.a & q.a, p.b & q.b}; }
ECC_DEVICE Plane64 operator|(Plane64 p, Plane64 q) { return {p.a | q.a, p.b | q.b}; }
ECC_DEVICE Plane64 operator^(Plane64 p, Plane64 q) { return {p.a ^ q.a, p.b ^ q.b}; }
ECC_DEVICE Plane64 operator~(Plane64 p) { return {~p.a, ~p.b}; }

template <unsigned table>
ECC_DEVICE Plane64 logic(Plane64 p, Plane64 q, Plane64 r) {
    return {logic<table>(p.a, q.a, r.a), logic<table>(p.b, q.b, r.b)};
}

constexpr int kPairRows = 16;
constexpr int kPairRows8 = kPairRows / 2;    // A lane's pairs in a column: of rows r and r + 8.
constexpr unsigned kFirstRow = 0x00010001u;  // The first row in both halves.
constexpr Plane64 kNone = {0u, 0u}, kAll = {~0u, ~0u};

// Returns the bits of the left neighbours; the high half of `other` has those of the first column.
ECC_DEVICE Plane64 left_of(Plane64 bits, unsigned other) {
    return {__byte_perm(other, bits.b, 0x5432), bits.a};
}

// Returns at each sample the bit of the row above it; the first row gets the first row of `above`.
ECC_DEVICE Plane64 next_row(Plane64 bits, Plane64 above) {
    return {((bits.a << 1) & ~kFirstRow) | (above.a & kFirstRow),
            ((bits.b << 1) & ~kFirstRow) | (above.b & kFirstRow)};
}

// Returns a plane whose first row is the last row of another.
ECC_DEVICE Plane64 last_row(Plane64 bits) { return {bits.a >> 15, bits.b >> 15}; }

// Returns the bits of the samples that lie in columns [0, columns) of the lane.
ECC_DEVICE Plane64 column_bits(int columns) {
    return {(columns > 0 ? 0xFFFFu : 0u) | (columns > 2 ? 0xFFFF0000u : 0u),
            (columns > 1 ? 0xFFFFu : 0u) | (columns > 3 ? 0xFFFF0000u : 0u)};
}

// Returns the bits of the samples that lie in rows [0, rows) of the lane.
ECC_DEVICE Plane64 row_bits(int rows) {
    const unsigned column = rows <= 0 ? 0u : rows >= kPairRows ? 0xFFFFu : (1u << rows) - 1u;
    return {column * 0x00010001u, column * 0x00010001u};
}
typedef Plane64 plane;

#else
// A bit for each of a lane's 32 samples, eight rows of four columns.
// Sample (row r, column x) is bit 31 - (4 r + x).
typedef unsigned int Plane32;

constexpr Plane32 kNone = 0u, kAll = ~0u;

constexpr Plane32 kFirstColumn = 0x88888888u;

// Returns the bits of the left neighbours; `shifted` has those that the first column gets.
ECC_DEVICE Plane32 left_of(Plane32 bits, Plane32 shifted) {
    return ((bits >> 1) & ~kFirstColumn) | (shifted & kFirstColumn);
}

// Returns at each sample the bit of the row above it; the first row gets the low four bits of `above`.
ECC_DEVICE Plane32 next_row(Plane32 bits, Plane32 above) { return (bits >> 4) | (above << 28); }

// Returns the bits of the samples that lie in columns [0, columns) of the lane.
ECC_DEVICE Plane32 column_bits(int columns) {
    const Plane32 nibble = columns <= 0            ? 0u
                           : columns >= kLaneWidth ? 0xFu
                                                   : 0xFu & ~(0xFu >> columns);
    return nibble * 0x11111111u;
}

// Returns the bits of the samples that lie in rows [0, rows) of the lane.
ECC_DEVICE Plane32 row_bits(int rows) {
    return rows <= 0 ? 0u : rows >= kLaneRows ? 0xFFFFFFFFu : ~(0xFFFFFFFFu >> (4 * rows));
}
typedef Plane32 plane;

#endif

// Functions of three bits as `logic` takes them: their values where a, b and c are 0xF0, 0xCC and 0xAA.
// The compiler combines only some expressions into such an instruction by itself.
constexpr unsigned kParity = 0x96, kMajority = 0xE8, kChoice = 0xCA;
constexpr unsigned kNotParity = 0x69, kNotMajority = 0x17, kNotAllEqual = 0x7E;
constexpr unsigned kMajorityNotA = 0x8E, kMajorityNotBC = 0x71;

// A digit in {-1, 0, 1} for each sample: plus - minus.
struct Trits {
    plane plus, minus;
};

// A number for each sample. For numbers from -3 to 3, three planes hold the number plus three; for numbers
// from -8 to 7, four planes hold it in two's complement.
struct Numbers3 {
    plane b0, b1, b2;
};
struct Numbers4 {
    plane b0, b1, b2, b3;
};

ECC_DEVICE Numbers3 zeros() { return {kAll, kAll, kNone}; }

ECC_DEVICE Numbers3 sum(Trits a, Trits b, Trits c) {
    // The bits of `plus` and the inverted bits of `minus` add up to the number plus three.
    const plane plus = logic<kParity>(a.plus, b.plus, c.plus),
                plus2 = logic<kMajority>(a.plus, b.plus, c.plus);
    const plane minus = logic<kNotParity>(a.minus, b.minus, c.minus),
                minus2 = logic<kNotMajority>(a.minus, b.minus, c.minus);
    const plane carry = plus & minus;
    return {plus ^ minus, logic<kParity>(plus2, minus2, carry),
            logic<kMajority>(plus2, minus2, carry)};
}

ECC_DEVICE Numbers3 only(Numbers3 a, plane where) {
    return {a.b0 | ~where, a.b1 | ~where, a.b2 & where};
}

ECC_DEVICE Numbers4 only(const Numbers4& a, plane where) {
    return {a.b0 & where, a.b1 & where, a.b2 & where, a.b3 & where};
}

// Returns the same numbers in two's complement.
ECC_DEVICE Numbers4 extend(Numbers3 a) {
    const plane negative = ~(a.b2 | (a.b1 & a.b0));
    return {~a.b0, a.b1 ^ a.b0, negative, negative};
}

// Returns a - b - c. As planes hold three more than each number, it is a + ~b + ~c + 5 in four bits.
ECC_DEVICE Numbers4 subtract(Numbers3 a, Numbers3 b, Numbers3 c) {
    const plane s0 = logic<kParity>(a.b0, b.b0, c.b0), m0 = logic<kMajorityNotBC>(a.b0, b.b0, c.b0);
    const plane s1 = logic<kParity>(a.b1, b.b1, c.b1), m1 = logic<kMajorityNotBC>(a.b1, b.b1, c.b1);
    const plane s2 = logic<kParity>(a.b2, b.b2, c.b2), m2 = logic<kMajorityNotBC>(a.b2, b.b2, c.b2);
    const plane carry = logic<kMajority>(s1, m0, s0);
    return {~s0, logic<kParity>(s1, m0, s0), logic<kNotParity>(s2, m1, carry),
            m2 ^ logic<kNotAllEqual>(s2, m1, carry)};
}

ECC_DEVICE Numbers4 minus(Numbers4 a) {
    const plane low = a.b0 | a.b1;
    return {a.b0, a.b1 ^ a.b0, a.b2 ^ low, a.b3 ^ (a.b2 | low)};
}

// Returns the coefficient of the sample whose bit a left shift by `shift` makes the sign.
ECC_DEVICE int coefficient(unsigned b0, unsigned b1, unsigned b2, unsigned b3, int shift) {
    unsigned digits = (int)(b3 << shift) >> 31;
    digits = __funnelshift_l(b2 << shift, digits, 1);
    digits = __funnelshift_l(b1 << shift, digits, 1);
    return (int)__funnelshift_l(b0 << shift, digits, 1);
}

// Writes the coefficients of a word as numbers of four bits: that of bit 4 i + j is number i of word j.
ECC_DEVICE void spread(unsigned b0, unsigned b1, unsigned b2, unsigned b3, unsigned (&words)[4]) {
    constexpr unsigned kTwos = 0x55555555u, kFours = 0x33333333u;
    const unsigned even01 = (b0 & kTwos) | ((b1 & kTwos) << 1),
                   odd01 = ((b0 >> 1) & kTwos) | (b1 & ~kTwos);
    const unsigned even23 = (b2 & kTwos) | ((b3 & kTwos) << 1),
                   odd23 = ((b2 >> 1) & kTwos) | (b3 & ~kTwos);
    words[0] = (even01 & kFours) | ((even23 & kFours) << 2);
    words[1] = (odd01 & kFours) | ((odd23 & kFours) << 2);
    words[2] = ((even01 >> 2) & kFours) | (even23 & ~kFours);
    words[3] = ((odd01 >> 2) & kFours) | (odd23 & ~kFours);
}
