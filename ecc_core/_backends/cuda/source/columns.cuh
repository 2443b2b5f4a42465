// Rows and columns of the boundary matrix of tunnels (tunnels.cu), as they are traced and reduced.
#pragma once
#include "common.cuh"

typedef unsigned long long Word;

constexpr int kSpanBits = 24, kMostRows = (1 << kSpanBits) - 1;  // of a column

struct Row {
    int place, ends;  // as of an edge of the forest, and then the number of the root
};

// Columns that are traced or reduced. Where local memory is not enough, each thread or block has `own_room`
// words from `memory` on.
struct Columns {
    const Row* edges;   // of all columns: those of the wide forest, whose second end tells the hole
    const int* chosen;  // the numbers of these columns
    int count;
    Word* spans;  // where the rows of each column begin in `rows`, and in the low bits their number
    int* rows;    // of all columns, those of each one in order
    long long room;  // of `rows`
    Word* taken;     // the number of rows, and behind it that of columns that do not fit
    int* late;       // these columns
    Word* memory;
    long long own_room;
};

__device__ void add_late(const Columns& columns, int column) {
    columns.late[atomicAdd(columns.taken + 1, (Word)1)] = column;
}
