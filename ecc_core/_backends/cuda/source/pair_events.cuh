// Counts pairs whose coefficients are not zero by their codes. Counts are in units of 1/16, so that a
// coefficient is the upper half of a byte.
#pragma once
#include "histogram.cuh"
#include "pairs.cuh"

// If some word of the warp has more events than this, it is faster to count every sample.
constexpr unsigned kDense = 8;

// A row of a lane's pairs in shared memory, where its events find them.
constexpr int kCacheRow = 32 * kLaneWidth * sizeof(pair);  // bytes
constexpr int kCacheBytes = kPairRows8 * kCacheRow;        // of all rows of a warp

// The columns of one word of planes, then of the other.
ECC_DEVICE void keep(unsigned address, const pair (&p)[kLaneWidth]) {
    shared_store(address, {p[0], p[2], p[1], p[3]});
}

// A sample, which is half of a pair, and its coefficient.
struct Event {
    unsigned half;
    int amount;
};

// Takes an event off a word. `columns`: address of the columns of the word in the first row. If there
// is none left, returns any sample with amount 0, so that the lanes of a warp do not diverge.
ECC_DEVICE Event take_event(unsigned columns, unsigned b0, unsigned b1, unsigned b2, unsigned b3,
                            unsigned& events) {
    const unsigned last = columns + 7 * kCacheRow + 3 * 2;  // of bit 31
    const unsigned later = events - 1u;
    const int shift = shift_to_sign(events ^ later);
    const unsigned half =
        shared_short(last - shift * kCacheRow + (shift >> 3) * (8 * kCacheRow - 2));
    const int amount = events ? coefficient(b0, b1, b2, b3, shift) : 0;
    events &= later;
    return {half, amount};
}

// The four planes of a word as eight words: word r holds in its bytes the coefficients of rows r
// and r + 8 of its first column, then of its second.
ECC_DEVICE void spread_rows(unsigned b0, unsigned b1, unsigned b2, unsigned b3,
                            unsigned (&rows)[8]) {
    unsigned words[4];
    spread(b0, b1, b2, b3, words);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        rows[r] = (words[r] << 4) & 0xF0F0F0F0u;
        rows[r + 4] = words[r] & 0xF0F0F0F0u;
    }
}

struct PairCounter {
    unsigned cache;   // shared address of the lane's pairs
    unsigned step;    // bytes from code to code
    unsigned counts;  // shared address of the count of a half of zero, in the copy of the lane

    ECC_DEVICE PairCounter(const pair* cache, const Histogram& histogram)
        : cache(shared_address(cache)),
          step(4u * histogram.copies),
          counts(shared_address(histogram.counts + histogram.lane_copy) - kCodeZero * step) {}

    ECC_DEVICE void put(int row, const pair (&four)[kLaneWidth]) const {
        keep(cache + row * kCacheRow, four);
    }

    // Counts events one by one, all lanes at the same time. A word has at most `most` events.
    ECC_DEVICE void sparse(const Numbers4& c, plane events, unsigned most) const {
        for (unsigned k = 0; k < most; ++k) {
            const Event a = take_event(cache, c.b0.a, c.b1.a, c.b2.a, c.b3.a, events.a),
                        b = take_event(cache + 8, c.b0.b, c.b1.b, c.b2.b, c.b3.b, events.b);
            shared_add(counts + a.half * step, 16 * a.amount);
            shared_add(counts + b.half * step, 16 * b.amount);
        }
    }

    ECC_DEVICE void add(pair codes, int low, int high) const {
        shared_add(counts + (codes & 0xFFFFu) * step, low);
        shared_add(counts + (codes >> 16) * step, high);
    }

    // Counts every sample row by row, all lanes at the same time.
    ECC_DEVICE void dense(const Numbers4& c, plane events) const {
        const Numbers4 own = only(c, events);
        unsigned first[8], second[8];
        spread_rows(own.b0.a, own.b1.a, own.b2.a, own.b3.a, first);
        spread_rows(own.b0.b, own.b1.b, own.b2.b, own.b3.b, second);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            pair four[kLaneWidth];
            shared_load(cache + r * kCacheRow, four);
            add(four[0], permute<0x8880>(first[r], 0), permute<0x9991>(first[r], 0));
            add(four[1], permute<0xAAA2>(first[r], 0), permute<0xBBB3>(first[r], 0));
            add(four[2], permute<0x8880>(second[r], 0), permute<0x9991>(second[r], 0));
            add(four[3], permute<0xAAA2>(second[r], 0), permute<0xBBB3>(second[r], 0));
        }
    }

    ECC_DEVICE void operator()(const Numbers4& c, plane own) const {
        const plane events = (c.b0 | c.b1 | c.b2 | c.b3) & own;
        const int most = max(__popc(events.a), __popc(events.b));
        const unsigned of_warp = __reduce_max_sync(kWarp, (unsigned)most);
        if (of_warp > kDense)
            dense(c, events);
        else
            sparse(c, events, of_warp);
    }
};
