// Arithmetic on bit planes: every operation acts on all samples of a lane at once.
#pragma once
#if defined(ECC_PAIRS)
#include "plane64.cuh"
typedef Plane64 plane;
#else
#include "plane32.cuh"
typedef Plane32 plane;
#endif

// Functions of three bits as `logic` takes them: their values where a, b and c are 0xF0, 0xCC and 0xAA.
// The compiler finds only some of them.
constexpr unsigned kParity = 0x96, kMajority = 0xE8, kChoice = 0xCA;
constexpr unsigned kNotParity = 0x69, kNotMajority = 0x17, kNotAllEqual = 0x7E;
constexpr unsigned kMajorityNotA = 0x8E, kMajorityNotBC = 0x71;

// A digit in {-1, 0, 1} for each sample: plus - minus.
struct Trits {
    plane plus, minus;
};

// A number for each sample. Three planes hold [-3, 3], three more than the number; four hold
// [-8, 7] in two's complement.
struct Numbers3 {
    plane b0, b1, b2;
};
struct Numbers4 {
    plane b0, b1, b2, b3;
};

ECC_DEVICE Numbers3 zeros() { return {kAll, kAll, kNone}; }

ECC_DEVICE Numbers3 sum(Trits a, Trits b, Trits c) {
    // Plus and not-minus.
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

// In two's complement; the last plane counts twice.
ECC_DEVICE Numbers4 extend(Numbers3 a) {
    const plane negative = ~(a.b2 | (a.b1 & a.b0));
    return {~a.b0, a.b1 ^ a.b0, negative, negative};
}

// a - b - c: as they hold three more, that is a + ~b + ~c + 5 in four bits.
ECC_DEVICE Numbers4 subtract(Numbers3 a, Numbers3 b, Numbers3 c) {
    const plane s0 = logic<kParity>(a.b0, b.b0, c.b0),
                m0 = logic<kMajorityNotBC>(a.b0, b.b0, c.b0);
    const plane s1 = logic<kParity>(a.b1, b.b1, c.b1),
                m1 = logic<kMajorityNotBC>(a.b1, b.b1, c.b1);
    const plane s2 = logic<kParity>(a.b2, b.b2, c.b2),
                m2 = logic<kMajorityNotBC>(a.b2, b.b2, c.b2);
    const plane carry = logic<kMajority>(s1, m0, s0);
    return {~s0, logic<kParity>(s1, m0, s0), logic<kNotParity>(s2, m1, carry),
            m2 ^ logic<kNotAllEqual>(s2, m1, carry)};
}

ECC_DEVICE Numbers4 minus(Numbers4 a) {
    const plane low = a.b0 | a.b1;
    return {a.b0, a.b1 ^ a.b0, a.b2 ^ low, a.b3 ^ (a.b2 | low)};
}

// The coefficient of the sample whose bit a shift by `shift` makes the sign.
ECC_DEVICE int coefficient(unsigned b0, unsigned b1, unsigned b2, unsigned b3, int shift) {
    unsigned digits = (int)(b3 << shift) >> 31;
    digits = __funnelshift_l(b2 << shift, digits, 1);
    digits = __funnelshift_l(b1 << shift, digits, 1);
    return (int)__funnelshift_l(b0 << shift, digits, 1);
}

// The coefficients of a word as numbers of four bits: that of bit 4 i + j is number i of word j.
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
