// Rows and columns of the boundary matrix of tunnels (tunnels.cu), as they are traced and reduced.
#pragma once
#include "common.cuh"

typedef unsigned long long Word;

constexpr int kSpanBits = 24, kMostRows = (1 << kSpanBits) - 1;  // bounds of the rows of a column

struct Row {
    int place, ends;  // as in RawEdge (betti.cu); mark_rows writes the number of the root to `ends`
};

// Columns that are traced or reduced. Where local memory is not enough, each thread or block has `own_room`
// words from `memory` on.
struct Columns {
    const Row* edges;   // of columns: those of the wide forest, whose second ends lie in the holes
    const int* chosen;  // the numbers of the columns that are traced or reduced
    int count;
    Word* spans;     // of columns: where their rows begin in `rows`, and in low bits their number
    int* rows;       // the rows of all columns; those of a column increase
    long long room;  // the number of rows for which `rows` has room
    Word* taken;     // the number of rows, then the number of columns that do not fit
    int* late;       // the columns that do not fit
    Word* memory;
    long long own_room;
};

__device__ void add_late(const Columns& columns, int column) {
    columns.late[atomicAdd(columns.taken + 1, (Word)1)] = column;
}
