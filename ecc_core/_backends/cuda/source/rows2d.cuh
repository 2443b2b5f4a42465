// Copies the rows of a 2-D image to shared memory for a warp of pairs2d.cu, in a queue.
#pragma once
#include "pairs.cuh"

// Loads the samples of a lane, the first of which is at `row`.
ECC_DEVICE void load_quad(Quad& quad, const Element* row, const Columns& columns) {
    if (kVector) {
        quad = kStep == 1 ? *(const Quad*)row : ((const Span*)row)->samples();
    } else {
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) quad.v[x] = row[columns.at[x]];
    }
}

// Bytes of a lane that are next to each other. A row of a warp in shared memory has 16 bytes of each lane,
// then the other bytes of each, 16 at a time, so that lanes use different banks.
constexpr int kPart = sizeof(Span) < 16 ? (int)sizeof(Span) : 16;

ECC_DEVICE Quad* of_lane(char* rows, int lane) { return (Quad*)(rows + lane * kPart); }

ECC_DEVICE void copy_lane_ahead(Quad* to, const Element* from) {
#pragma unroll
    for (int i = 0; i < (int)sizeof(Span); i += kPart)
        copy_ahead<kPart>((char*)to + 32 * i, (const char*)from + i);
}

ECC_DEVICE Quad read_lane(const Quad* at) {
    if constexpr (sizeof(Span) > kPart) {
        union {
            Span span;
            uint4 parts[sizeof(Span) / kPart];
        } found;
#pragma unroll
        for (int i = 0; i < (int)sizeof(Span) / kPart; ++i)
            found.parts[i] = ((const uint4*)at)[32 * i];
        return found.span.samples();
    } else if constexpr (kStep > 1) {
        const Span found = *(const Span*)at;
        return found.samples();
    } else {
        return *at;
    }
}

ECC_DEVICE void write_lane(Quad* to, const Quad& samples) {
    if constexpr (sizeof(Quad) > kPart) {
#pragma unroll
        for (int i = 0; i < (int)sizeof(Quad) / kPart; ++i)
            ((uint4*)to)[32 * i] = ((const uint4*)&samples)[i];
    } else {
        *to = samples;
    }
}

constexpr int kHeight = kLines ? ECC_LINES : 1;  // Rows of the image.
constexpr int kTiles = kPairRows / kHeight;      // Tiles of a step.

// Returns the rows at a place in their tiles as bits, one for each row of a step, in both halves.
__device__ constexpr unsigned rows_at(int place) {
    unsigned rows = 0;
    for (int r = 0; r < kPairRows; ++r)
        if (r % kHeight == place) rows |= kFirstRow << r;
    return rows;
}
constexpr unsigned kFirstRows = rows_at(0), kLastRows = rows_at(kHeight - 1);

// The queue of rows that are copied to shared memory for a lane. An item is two rows that share registers.
template <int copies>
struct PairQueue {
    static constexpr int kMasks = copies * 2 * 32 * sizeof(Span);  // Bytes before rows of masks.
    static constexpr int kBytes = kMasks + (kMask ? copies * 2 * 32 * sizeof(unsigned) : 0);
    Quad* lane;

    ECC_DEVICE static void copy(Quad* to, const Element* row, const Columns& columns) {
        if (kVector) {
            copy_lane_ahead(to, row);
        } else {
            Quad samples;
            load_quad(samples, row, columns);
            write_lane(to, samples);
        }
    }

    ECC_DEVICE Quad* slot(int i, int row = 0) const {
        return (Quad*)((char*)lane + (i % copies * 2 + row) * 32 * (int)sizeof(Span));
    }
    // Returns where the lane's bytes of the mask are.
    ECC_DEVICE unsigned* shown(int i) const {
        const int own = lane_index();
        return (unsigned*)((char*)lane - own * kPart + kMasks) + own + i % copies * 64;
    }

    // Starts to copy item `i`.
    ECC_DEVICE void ask(int i, const Element* low, const Element* high, const Columns& columns,
                        const Image& image) const {
        copy(slot(i), low, columns);
        copy(slot(i, 1), high, columns);
        if (kMask) {
            copy_ahead<4>(shown(i), image.shown(low));
            copy_ahead<4>(shown(i) + 32, image.shown(high));
        }
        if (kVector || kMask) end_of_copy();
    }

    ECC_DEVICE void take(int i, const Encoder& encode, pair (&out)[kLaneWidth],
                         PairCheck& check) const {
        if (kVector || kMask) wait_for_copy<copies - 1>();
        const Quad low = read_lane(slot(i)), high = read_lane(slot(i, 1));
        encode(&low, &high, out, check);
        if (kMask) mask_codes(out, shown(i)[0], shown(i)[32]);
    }
};

// Pairs of rows in the queue. It divides the number of pairs in a step, so that each pair of a step always
// has the same slot.
constexpr int kCopies = sizeof(Key) < 8 ? 4 : 2;
typedef PairQueue<kCopies> RowQueue;
