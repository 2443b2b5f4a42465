// Volumes whose slices are the channels of an image, next to each other in memory: a warp reads its rows
// of all slices at once, and keeps their codes in shared memory.
#pragma once
#include "pair_events.cuh"
#include "volume.cuh"

struct ChannelFeed {
    static constexpr int kSlice = kItems * kCacheRow, kBytes = kChannels * kSlice;  // of a warp

    unsigned next;  // shared address of the lane's pairs of the slice to be taken next
    int slices;     // that may still be taken

    // Writes the codes of all slices to shared memory, in items like those of Feed; both rows of the last
    // item are the row below the unit. The first and the last row of the image stand for those beyond it.
    template <class Encode, class Check>
    __device__ __forceinline__ ChannelFeed(const Image& image, const PairUnit& unit, int index,
                                           unsigned room, const Encode& encode, Check& check)
        : next(room + lane_index() * kLaneWidth * (int)sizeof(pair)), slices(kChannels) {
        const Quad* const quads = lane_quads(image, unit, index);
#pragma unroll 2
        for (int i = 0; i < kItems; ++i) {
            const int high = min(unit.y + i - 1 + kPairRows8, image.height - 1);
            const int low = i < kItems - 1 ? max(unit.y + i - 1, 0) : high;
            const Quad* const above = row_of(image, quads, low);
            const Quad* const below = row_of(image, quads, high);
            Quad a[kChannels], b[kChannels];
#pragma unroll
            for (int k = 0; k < kChannels; ++k) a[k] = above[k], b[k] = below[k];
#pragma unroll
            for (int channel = 0; channel < kChannels; ++channel) {
                pair p[kLaneWidth];
#pragma unroll
                for (int x = 0; x < kLaneWidth; ++x) {
                    const int at = kChannels * x + channel;
                    const Element low = a[at / 4].v[at % 4], high = b[at / 4].v[at % 4];
                    check.see(low, high);
                    p[x] = encode(low, high);
                }
                keep(next + channel * kSlice + i * kCacheRow, p);
            }
        }
    }

    __device__ __forceinline__ static const Quad* lane_quads(const Image& image, const PairUnit& unit,
                                                             int index) {
        const int column = min(unit.left + lane_index() * kLaneWidth, image.width - kLaneWidth);
        return (const Quad*)(image.data + index * image.batch + kChannels * column);
    }
    __device__ __forceinline__ static const Quad* row_of(const Image& image, const Quad* quads, int y) {
        return (const Quad*)((const Element*)quads + y * image.row);
    }

    __device__ __forceinline__ void take(int i, pair (&out)[kLaneWidth]) {
        unsigned words[4];
        shared_load(next + i * kCacheRow, words);
        out[0] = words[0], out[1] = words[2], out[2] = words[1], out[3] = words[3];
        if (i == kItems - 1) next += --slices > 0 ? kSlice : 0;  // chosen, as in Feed
    }
};
