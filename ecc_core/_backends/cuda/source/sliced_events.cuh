// Counts the samples of 8-bit images whose coefficient is not zero.
#pragma once
#include "sliced.cuh"

// If some column of a warp has more events than this, it is faster to count every sample.
constexpr unsigned kDense = 8;

// Counts samples whose coefficient is not zero. Counts are by value, in units of 1/16.
struct SlicedCounter {
    unsigned step;    // Bytes from value to value.
    unsigned counts;  // Shared address of the lane's copy of the count of value 0.

    ECC_DEVICE explicit SlicedCounter(const Histogram& histogram)
        : step(4u * histogram.copies),
          counts(shared_address(histogram.counts + histogram.lane_copy)) {
        if (kSigned) counts += 128 * step;
    }

    // Counts the next event of a column. If there is none, adds zero to the bin of whatever the row before
    // the first one holds, so that lanes do not diverge.
    ECC_DEVICE void one(unsigned rows, const Numbers4& c, plane& events) const {
        const plane bit = events & (0u - events);
        const unsigned value = shared_byte(rows + shift_to_sign(bit) * kRowBytes);
        const int amount = 16 * __popc(c.b0 & bit) + 32 * __popc(c.b1 & bit) +
                           64 * __popc(c.b2 & bit) - 128 * __popc(c.b3 & bit);
        shared_add(dot_bytes<kSigned>(value, step, counts), amount);
        events ^= bit;
    }

    // Counts up to `most` events in each column one by one, in all lanes at the same time.
    ECC_DEVICE void sparse(unsigned rows, const Numbers4 (&c)[kLaneWidth],
                           plane (&events)[kLaneWidth], unsigned most) const {
        for (unsigned k = 0; k < most; ++k) {
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) one(rows + x, c[x], events[x]);
        }
    }

    // Adds the samples of the row whose bit is 8 * byte + t. Their coefficients are the upper halves of
    // bytes.
    template <int byte>
    ECC_DEVICE void add_row(unsigned rows, int t, const unsigned (&amounts)[4],
                            const unsigned (&weights)[4]) const {
        const unsigned four = shared_word(rows + (kRows - 1 - 8 * byte - t) * kRowBytes);
        constexpr unsigned selector = (8 + byte) * 0x1110u + byte;
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x)
            shared_add(dot_bytes<kSigned>(four, weights[x], counts),
                       (int)permute<selector>(amounts[x], 0));
    }

    // Counts all samples, in all lanes at the same time.
    ECC_DEVICE void dense(unsigned rows, const Numbers4 (&c)[kLaneWidth],
                          const plane (&events)[kLaneWidth]) const {
        const unsigned weights[4] = {step, step << 8, step << 16, step << 24};
        unsigned words[kLaneWidth][4];
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            const Numbers4 own = only(c[x], events[x]);
            spread(own.b0, own.b1, own.b2, own.b3, words[x]);
        }
#pragma unroll
        for (int t = 0; t < 8; ++t) {
            unsigned amounts[kLaneWidth];
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x)
                amounts[x] = (t < 4 ? words[x][t % 4] << 4 : words[x][t % 4]) & 0xF0F0F0F0u;
            add_row<0>(rows, t, amounts, weights);
            add_row<1>(rows, t, amounts, weights);
            add_row<2>(rows, t, amounts, weights);
            add_row<3>(rows, t, amounts, weights);
        }
    }

    // Counts the samples of the rows `own`. `rows` is the shared address of the lane's columns in the first
    // row.
    ECC_DEVICE void operator()(unsigned rows, const Numbers4 (&c)[kLaneWidth], plane own) const {
        plane events[kLaneWidth];
        int most = 0;
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            events[x] = (c[x].b0 | c[x].b1 | c[x].b2 | c[x].b3) & own;
            most = max(most, __popc(events[x]));
        }
        const unsigned of_warp = __reduce_max_sync(kWarp, (unsigned)most);
        if (of_warp > kDense)
            dense(rows, c, events);
        else
            sparse(rows, c, events, of_warp);
    }
};
