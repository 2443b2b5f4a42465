// A bit for each of a lane's 32 samples, eight rows of four columns.
// Sample (row r, column x) is bit 31 - (4 r + x).
#pragma once
#include "image.cuh"

typedef unsigned int Plane32;

constexpr Plane32 kNone = 0u, kAll = ~0u;

constexpr Plane32 kFirstColumn = 0x88888888u;

// Bits of the left neighbours. `shifted` holds what the first column gets.
ECC_DEVICE Plane32 left_of(Plane32 bits, Plane32 shifted) {
    return ((bits >> 1) & ~kFirstColumn) | (shifted & kFirstColumn);
}

// The same plane seen from the next row; `above` is what the first row sees, in the low four bits.
ECC_DEVICE Plane32 next_row(Plane32 bits, Plane32 above) { return (bits >> 4) | (above << 28); }

// Bits of the samples that lie in columns [0, columns) of the lane.
ECC_DEVICE Plane32 column_bits(int columns) {
    const Plane32 nibble = columns <= 0            ? 0u
                         : columns >= kLaneWidth ? 0xFu
                                                 : 0xFu & ~(0xFu >> columns);
    return nibble * 0x11111111u;
}

// Bits of the samples that lie in rows [0, rows) of the lane.
ECC_DEVICE Plane32 row_bits(int rows) {
    return rows <= 0 ? 0u : rows >= kLaneRows ? 0xFFFFFFFFu : ~(0xFFFFFFFFu >> (4 * rows));
}
