// A lane's pairs in shared memory, where its events find them.
#pragma once
#include "planes.cuh"

constexpr int kCacheRow = 32 * kLaneWidth * sizeof(pair);  // bytes

// A row: the columns of one word of planes, then of the other.
__device__ __forceinline__ void keep(unsigned address, const pair (&p)[kLaneWidth]) {
    shared_store(address, {p[0], p[2], p[1], p[3]});
}

// A sample, which is half of a pair, and its coefficient.
struct Event {
    unsigned half;
    int amount;
};

// Takes an event off a word. `columns`: address of the columns of the word in the first row. If there
// is none left, returns any sample with amount 0, so that the lanes of a warp do not diverge.
__device__ __forceinline__ Event take_event(unsigned columns, unsigned b0, unsigned b1, unsigned b2,
                                            unsigned b3, unsigned& events) {
    const unsigned last = columns + 7 * kCacheRow + 3 * 2;  // of bit 31
    const unsigned later = events - 1u;
    const int shift = shift_to_sign(events ^ later);
    const unsigned half =
        shared_short(last - shift * kCacheRow + (shift >> 3) * (8 * kCacheRow - 2));
    const int amount = events ? coefficient(b0, b1, b2, b3, shift) : 0;
    events &= later;
    return {half, amount};
}

// One of each word.
struct Events {
    Event a, b;
};
__device__ __forceinline__ Events take_events(unsigned columns, const Numbers4& c, plane& events) {
    return {take_event(columns, c.b0.a, c.b1.a, c.b2.a, c.b3.a, events.a),
            take_event(columns + 8, c.b0.b, c.b1.b, c.b2.b, c.b3.b, events.b)};
}

// Counts the samples of a warp that are its own: one by one up to `many` in a word of any lane, and
// else every sample.
template <class Counter>
__device__ __forceinline__ void count_events(const Counter& counter, const Numbers4& c, plane own,
                                             unsigned many) {
    const plane events = (c.b0 | c.b1 | c.b2 | c.b3) & own;
    const unsigned most =
        __reduce_max_sync(0xFFFFFFFFu, (unsigned)max(__popc(events.a), __popc(events.b)));
    if (most > many)
        counter.dense(c, events);
    else
        counter.sparse(c, events, most);
}
