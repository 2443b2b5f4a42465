// Rows and columns of the boundary matrix of tunnels (tunnels.cu), as they are traced and reduced.
#pragma once
#include "common.cuh"

typedef unsigned long long Word;

constexpr int kSpanBits = 24, kMostRows = (1 << kSpanBits) - 1;  // Bounds of the rows of a column.

struct Row {
    int place, ends;  // As in RawEdge (betti.cu); mark_rows writes the root's number to `ends`.
};

// Columns that are traced or reduced. Where local memory is not enough, each thread or block has `own_room`
// words from `memory` on.
struct Columns {
    const Row* edges;  // Edges of columns: those of the wide forest, with second ends in the holes.
    const int* chosen;  // The numbers of the columns that are traced or reduced.
    int count;
    Word* spans;     // Where the rows of a column begin in `rows`, and in low bits their number.
    int* rows;       // The rows of all columns; those of a column increase.
    long long room;  // The number of rows for which `rows` has room.
    Word* taken;     // The number of rows, then the number of columns that do not fit.
    int* late;       // The columns that do not fit.
    Word* memory;
    long long own_room;
};

__device__ void add_late(const Columns& columns, int column) {
    columns.late[atomicAdd(columns.taken + 1, (Word)1)] = column;
}
