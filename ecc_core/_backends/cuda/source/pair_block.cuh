// How lanes read the rows of 2-D images.
#pragma once
#include "pair_events.cuh"

// Loads the samples of a lane, the first of which is at `row`.
ECC_DEVICE void load_quad(Quad& quad, const Element* row, const Columns& columns) {
    if (kVector) {
        quad = *(const Quad*)row;
    } else {
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) quad.v[x] = row[columns.at[x]];
    }
}

// Bytes of a lane that are next to each other. A row of a warp in shared memory has 16 bytes of each lane,
// then, for 64-bit types, the other 16 of each, so that lanes use different banks.
constexpr int kPart = sizeof(Quad) < 16 ? (int)sizeof(Quad) : 16;

ECC_DEVICE Quad* of_lane(char* rows, int lane) { return (Quad*)(rows + lane * kPart); }

ECC_DEVICE void copy_lane_ahead(Quad* to, const Element* from) {
#pragma unroll
    for (int i = 0; i < (int)sizeof(Quad); i += kPart)
        copy_ahead<kPart>((char*)to + 32 * i, (const char*)from + i);
}

ECC_DEVICE Quad read_lane(const Quad* at) {
    if constexpr (sizeof(Quad) > kPart) {
        union {
            Quad quad;
            uint4 parts[sizeof(Quad) / kPart];
        } found;
#pragma unroll
        for (int i = 0; i < (int)sizeof(Quad) / kPart; ++i) found.parts[i] = ((const uint4*)at)[32 * i];
        return found.quad;
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

// The queue of rows that are copied to shared memory for a lane. An item is two rows that share registers.
template <int copies>
struct PairQueue {
    static constexpr int kMasks = copies * 2 * 32 * sizeof(Quad);  // bytes before the rows of masks
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
        return (Quad*)((char*)lane + (i % copies * 2 + row) * 32 * (int)sizeof(Quad));
    }
    // The lane's bytes of the mask.
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
