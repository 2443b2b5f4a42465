// A bit for each of a lane's 64 samples, sixteen rows of four columns, in two words.
// Sample (row r, column x) is bit r + 16 * (x / 2) of word a (columns 0 and 2) or b (1 and 3).
#pragma once
#include "image.cuh"

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
constexpr int kPairRows8 = kPairRows / 2;  // a lane's pairs in a column: of rows r and r + 8
constexpr unsigned kFirstRow = 0x00010001u;  // of two columns
constexpr Plane64 kNone = {0u, 0u}, kAll = {~0u, ~0u};

// Bits of the left neighbours. The high half of `other` holds those of the first column.
ECC_DEVICE Plane64 left_of(Plane64 bits, unsigned other) {
    return {__byte_perm(other, bits.b, 0x5432), bits.a};
}

// The same plane seen from the next row; the first row sees the first row of `above`.
ECC_DEVICE Plane64 next_row(Plane64 bits, Plane64 above) {
    return {((bits.a << 1) & ~kFirstRow) | (above.a & kFirstRow),
            ((bits.b << 1) & ~kFirstRow) | (above.b & kFirstRow)};
}

// The last row as the first one.
ECC_DEVICE Plane64 last_row(Plane64 bits) { return {bits.a >> 15, bits.b >> 15}; }

// Bits of the samples that lie in columns [0, columns) of the lane.
ECC_DEVICE Plane64 column_bits(int columns) {
    return {(columns > 0 ? 0xFFFFu : 0u) | (columns > 2 ? 0xFFFF0000u : 0u),
            (columns > 1 ? 0xFFFFu : 0u) | (columns > 3 ? 0xFFFF0000u : 0u)};
}

// Bits of the samples that lie in rows [0, rows) of the lane.
ECC_DEVICE Plane64 row_bits(int rows) {
    const unsigned column = rows <= 0 ? 0u : rows >= kPairRows ? 0xFFFFu : (1u << rows) - 1u;
    return {column * 0x00010001u, column * 0x00010001u};
}
