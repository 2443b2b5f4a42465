// The bin of a key. For sublevel sets it is the number of thresholds below the sample, which do not admit
// it; for superlevel sets the number of thresholds up to the sample, which admit it.
#pragma once
#include "image.cuh"

struct Bins {
    const Key* thresholds;  // In increasing order; null for kTable.
    const int* table;       // kTable: the bin of each of 256 values, beginning with the least one;
                            // kCells: the first threshold of each cell; pairs: the threshold of
                            // each code, the bin of each, and the lines of pieces (pair_codes.cuh).
    int count;              // The number of thresholds; bins are 0 to count.
    // kUniform: the bin is near (low + scale * key) * last; kCells: this is the number of the cell.
    float low, scale, last;
    long long first;  // kConsecutive: thresholds are first, first + 1 and so on, as integers
                      // that to_integer gives (types of up to 32 bits).
    int span;         // kCells: a power of two; a cell has less than 2 * span thresholds.
    float dense_low, dense_scale, dense_last;  // pairs: a second line (pair_codes.cuh).
};

ECC_DEVICE bool passed(Key sample, Key threshold) {
    return kSuper ? !is_less(sample, threshold) : is_less(threshold, sample);
}

// Returns a key as an integer: for types of up to 16 bits the distance from the least value, else the key.
ECC_DEVICE int to_integer(float key) { return (int)(__float_as_uint(key) & 0xFFFFu); }
template <class T>
ECC_DEVICE long long to_integer(T key) {
    return (long long)key;
}

typedef decltype(to_integer(Key())) Integer;

// Guesses of bins, in the low 23 bits of a float. They are monotonic in the key, and the host computes
// those of all thresholds by the same arithmetic (rules.py). kUniform: the guess of threshold k is k, so
// that the guess of any key is off by at most one, and one exact comparison corrects it. kCells: the guess
// is a cell, and the key is compared with the thresholds of this cell.
constexpr unsigned kGuess = 0x4B000000u;
ECC_DEVICE unsigned guess(Key key, const Bins& bins) {
    const float unit = multiply_add_saturated((float)key, bins.scale, bins.low);
    return __float_as_uint(multiply_add(unit, bins.last, 8388608.0f));
}

// Returns the bin of a key. `thresholds` and `table` are in shared or in global memory.
ECC_DEVICE int bin_of(Key key, const Bins& bins, const Key* thresholds, const int* table) {
    if (kBins == kTable) return table[(int)to_integer(key)];
    if (kBins == kConsecutive) {
        const Integer above = to_integer(key) - (Integer)bins.first + (kSuper ? 1 : 0);
        return (int)max((Integer)0, min((Integer)bins.count, above));
    }
    if (kBins == kSearch)
        return first_failing(bins.count, [&](int i) { return passed(key, thresholds[i]); });
    int near = (int)(guess(key, bins) - kGuess);
    if (kBins != kCells) return near + (passed(key, thresholds[near]) ? 1 : 0);
    near = table[near];
    for (int step = bins.span; step; step >>= 1) {
        const int last = near + step - 1;
        if (last < bins.count && passed(key, thresholds[last])) near += step;
    }
    return near;
}

// Where thresholds are, and the table of kTable and kCells: in shared memory if they fit there.
struct SharedTable {
    const Key* thresholds;
    const int* table;
};

// Copies both to shared memory if they fit there; a barrier must follow.
ECC_DEVICE SharedTable share_table(void* memory, const Bins& bins) {
    SharedTable shared = {bins.thresholds, bins.table};
    Key* const thresholds = (Key*)memory;
    int* table = (int*)memory;
    if (kSharedTable && kBins != kTable) {
        for (int i = threadIdx.x; i < bins.count; i += blockDim.x)
            thresholds[i] = bins.thresholds[i];
        shared.thresholds = thresholds;
        table = (int*)(thresholds + bins.count);
    }
    const int words = kBins == kTable                   ? 256
                      : kBins == kCells && kSharedTable ? (int)bins.last + 1
                                                        : 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x) table[i] = bins.table[i];
    if (words) shared.table = table;
    return shared;
}
