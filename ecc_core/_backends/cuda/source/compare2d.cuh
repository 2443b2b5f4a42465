// Comparisons of samples with their right neighbours and those in the row below, for sixteen rows of
// a warp at a time.
#pragma once
#include "pair_block.cuh"

// Pairs of rows in the queue. It divides their number in a step, so that each always has the same slot.
constexpr int kCopies = sizeof(Key) < 8 ? 4 : 2;
typedef PairQueue<kCopies> RowQueue;

struct PairPlanes2 {
    plane g, m, below;
};  // g, m as in pairs2d.cu; below: whether the row below owns what both share

// Compares sixteen rows from row `y` on. `p` holds rows y and y + 8 on entry and rows
// y + 16 and y + 24 on return; the queue holds the rows after. The next step is at row `y_after` of
// `after`.
template <class Strip>
__device__ __forceinline__ PairPlanes2 compare(const Strip& strip, int y, pair (&p)[kLaneWidth],
                                               const Strip& after, int y_after, const RowQueue& queue,
                                               const Encoder& encode, const PairCounter& count,
                                               PairCheck& check) {
    Rows<false> g, m, below;
    RowWeights weights(lane_index());
    pair first[kLaneWidth], next[kLaneWidth];
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) first[x] = p[x];
#pragma unroll
    for (int r = 0; r < kPairRows8; ++r) {
        pair q[kLaneWidth], both[kLaneWidth], owned[kLaneWidth];
        queue.take(r + 1, encode, next, check);
        const int coming = r + 1 + kCopies;
        if (coming < kPairRows8)
            strip.ask(queue, y, coming);
        else if (coming == kPairRows8)
            strip.ask(queue, y + kPairRows, 0);
        else
            after.ask(queue, y_after, coming - kPairRows8);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            q[x] = r < kPairRows8 - 1 ? next[x] : between(first[x], next[x]);
            both[x] = owner(p[x], q[x]);
        }
        owned_right(owned, p);
        g.add(owned, weights);
        owned_right(owned, both);
        m.add(owned, weights);
        owns_shared(owned, p, q);
        below.add(owned, weights);
        weights.next();
        count.put(r, p);
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) p[x] = next[x];
    }
    return {g.own(), m.own(), below.own()};
}
