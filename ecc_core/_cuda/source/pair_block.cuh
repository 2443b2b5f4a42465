// Shared memory of a block that works on pairs, and how its lanes read rows.
#pragma once
#include "pair_events.cuh"

__device__ __forceinline__ void load_quad(Quad& quad, const Element* row, const Columns& columns) {
    if (kVector) {
        quad = *(const Quad*)(row + columns.at[0]);
    } else {
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) quad.v[x] = row[columns.at[x]];
    }
}

// Rows of a lane on their way to it, two at a time, through shared memory.
constexpr bool kAsync = kVector && ECC_ASYNC;

template <int copies>
struct Queue {
    static constexpr int kBytes = copies * 2 * 32 * sizeof(Quad);  // of a warp
    Quad* lane;

    __device__ __forceinline__ static void copy(Quad* to, const Element* row,
                                                const Columns& columns) {
        if (kAsync) {
            constexpr int bytes = sizeof(Quad) < 16 ? sizeof(Quad) : 16;
            copy_ahead<bytes>(to, row + columns.at[0]);
        } else {
            load_quad(*to, row, columns);
        }
    }

    __device__ __forceinline__ Quad* slot(int i) const { return lane + i % copies * 64; }

    // Item `i`: the first or the second row may not be needed.
    __device__ __forceinline__ void ask(int i, bool first, const Element* low, bool second,
                                        const Element* high, const Columns& columns) const {
        if (first) copy(slot(i), low, columns);
        if (second) copy(slot(i) + 32, high, columns);
        if (kAsync) end_of_copy();
    }

    // A row that was not asked for counts as the other one.
    __device__ __forceinline__ void take(int i, bool first, bool second, const Encoder& encode,
                                         pair (&out)[kLaneWidth], PairCheck& check) const {
        if (kAsync) wait_for_copy<copies - 1>();
        encode(slot(i) + (first ? 0 : 32), slot(i) + (second ? 32 : 0), out, check);
    }
};

constexpr int kStashBytes = kPairRows8 * kStashRow;

// Each warp has `warp_bytes` for its stash and what else it keeps; then come thresholds or a table,
// and the counts.
struct PairBlock {
    Histogram histogram;
    const Key* thresholds;  // kUniform

    __device__ __forceinline__ PairBlock(char* memory, int warp_bytes, const Bins& bins,
                                         const Result& result, int index, int lane) {
        const SharedLayout layout = lay_out(memory + (blockDim.x >> 5) * warp_bytes, bins);
        thresholds = layout.thresholds;
        histogram = {layout.counts, result.counts_of(index, bins.count + 1), bins.count + 1,
                     result.copies, lane & (result.copies - 1),
                     kBytes ? 256 : kBins == kAffine ? (int)bins.last + 1 : bins.count + 1,
                     layout.table};
        histogram.clear();
    }
};
