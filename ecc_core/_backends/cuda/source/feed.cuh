// Copies the rows of a warp that scans through a volume to shared memory.
#pragma once
#include "pairs.cuh"

constexpr int kSpan = 32 / kFold;  // Lanes of a row.

// Returns the number of the lane among those of a row.
ECC_DEVICE int lane_of_row() { return kFold > 1 ? lane_index() % kSpan : lane_index(); }

// A unit of sixteen rows.
struct PairUnit : Unit {
    // The number of rows above, which other warps own; `y` is less where the warp would go beyond the
    // image.
    int rows_before;

    ECC_DEVICE PairUnit(const Image& image, const Tiling& tiling, int index)
        : Unit(tiling, index, kFold * kPairRows),
          rows_before(y + (kFold > 1 ? lane_index() / kSpan * kPairRows : 0)) {
        y = min(rows_before, image.height - kPairRows);
    }
};

// A slice comes in items of two rows that share registers, from the row above a warp's rows to the
// row below: item i is rows i - 1 and i + 7.
constexpr int kItems = kPairRows8 + 2;

// The number of items that shared memory has room for.
constexpr int kRing = sizeof(Quad) < 16 ? kItems : kItems / 2;

// A row of a warp in shared memory: the first quad of each lane, then the other ones.
constexpr int kRowQuads = 32 * kStep;

// Returns the samples of a lane whose first quad in shared memory is given.
ECC_DEVICE Quad samples_of(const Quad* lane) {
    if (kStep == 1) return *lane;
    union {
        Span span;
        Quad quads[kStep];
    } found;
#pragma unroll
    for (int k = 0; k < kStep; ++k) found.quads[k] = lane[32 * k];
    return found.span.samples();
}

// Copies rows up to a slice ahead.
struct Feed {
    // Bytes of the rows of samples of a warp, behind which the rows of masks lie, and of both.
    static constexpr int kMasks = kRing * 2 * kRowQuads * sizeof(Quad);
    static constexpr int kBytes = kMasks + (kMask ? kRing * 64 * sizeof(unsigned) : 0);

    const Columns* columns;  // Used where samples are copied one by one.
    Quad* ring;
    const char* next;           // The lane's first row and column in the slice that is asked for.
    const unsigned char* mask;  // kMask: the same place in the mask.
    int row;                    // Bytes from row to row.
    int first, last;            // Bytes from `next` to the first row, and to the last one.
    long long slice;            // Bytes from slice to slice.
    int slices;                 // The number of slices that may still be asked for.

    // `index` is that of the image in its batch.
    ECC_DEVICE Feed(const Image& image, const PairUnit& unit, int index, void* ring,
                    const Columns& columns)
        : columns(&columns),
          ring((Quad*)ring),
          row((int)image.row * (int)sizeof(Element)),
          slice(image.slice * (long long)sizeof(Element)),
          slices(image.depth - unit.start) {
        const Element* const data = unit.data(image, index) + unit.y * image.row;
        const bool above = unit.y > 0, below = unit.y + kPairRows < image.height;
        next = (const char*)(data + (unit.left + (int)columns.first) * kStep);
        if (kMask) mask = image.shown((const Element*)next);
        first = above ? -row : 0;
        last = row * (below ? kPairRows : kPairRows - 1);
    }

    ECC_DEVICE void copy(Quad* to, long long offset) const {
        const char* const from = next + offset;
        const int lane = lane_index();
        if (kVector) {
#pragma unroll
            for (int k = 0; k < kStep; ++k)
                copy_ahead<sizeof(Quad)>(to + 32 * k + lane, from + k * (int)sizeof(Quad));
        } else {
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x)
                to[lane].v[x] = ((const Element*)from)[columns->at[x]];
        }
    }

    // Returns where the lane's bytes of the mask are; `place` is 32 for the second row of an item.
    ECC_DEVICE unsigned* shown(int i, int place) const {
        return (unsigned*)((char*)ring + kMasks) + i % kRing * 64 + place + lane_index();
    }
    ECC_DEVICE void copy_mask(int i, int place, long long offset) const {
        copy_ahead<4>(shown(i, place), mask + offset / (int)sizeof(Element));
    }

    // Starts to copy item `i` of a slice, without row 7 of the first item and row 8 of the last one, which
    // other items have. After the last item, moves on to the next slice.
    ECC_DEVICE void ask(int i) {
        Quad* const to = ring + i % kRing * 2 * kRowQuads;
        const bool at_end = i == kItems - 1;
        const long long offset = (long long)row * (i - 1), low = i == 0 ? first : offset,
                        high = at_end ? last : offset + row * kPairRows8;
        if (!at_end) copy(to, low);
        if (i > 0) copy(to + kRowQuads, high);
        if (kMask && !at_end) copy_mask(i, 0, low);
        if (kMask && i > 0) copy_mask(i, 32, high);
        if (kVector || kMask) end_of_copy();
        if (at_end) {
            // The code chooses what is added rather than whether to add: before CUDA 13.4 the compiler may
            // spill a pointer only where it was changed, and then reload an older one
            // (docs/design/cuda.md).
            const long long step = --slices > 0 ? slice : 0;
            next += step;
            if (kMask) mask += step / (int)sizeof(Element);
        }
    }

    // Starts the first copies.
    ECC_DEVICE void begin() {
#pragma unroll
        for (int i = 0; i < kRing - 1; ++i) ask(i);
    }

    // Returns the lane's samples of item `i`, of which the second row is kRowQuads after the first. Items
    // are taken in order, and each call starts to copy another one.
    ECC_DEVICE const Quad* take(int i) {
        if (kVector || kMask) wait_for_copy<kRing - 2>();
        ask((i + kRing - 1) % kItems);
        return ring + i % kRing * 2 * kRowQuads + lane_index();
    }
};

// Volumes whose slices are the channels of an image, next to each other in memory: a warp reads its rows
// of all slices at once, and keeps their codes in shared memory.
struct ChannelFeed {
    // Bytes of a slice of a warp, and of all its slices.
    static constexpr int kSlice = kItems * kCacheRow, kBytes = kChannels * kSlice;

    unsigned next;  // Shared address of the lane's pairs in the slice to be taken next.
    int slices;     // The number of slices that may still be taken.

    // Writes the codes of all slices to shared memory, in items like those of Feed; both rows of the last
    // item are the row below the unit. The first and the last row of the image stand for those beyond it.
    template <class Encode, class Check>
    ECC_DEVICE ChannelFeed(const Image& image, const PairUnit& unit, int index, unsigned room,
                           const Encode& encode, Check& check)
        : next(room + lane_index() * kLaneWidth * (int)sizeof(pair)), slices(kChannels) {
        const int column = min(unit.left + lane_index() * kLaneWidth, image.width - kLaneWidth);
        const Quad* const quads =
            (const Quad*)(image.data + index * image.batch + kChannels * column);
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

    ECC_DEVICE static const Quad* row_of(const Image& image, const Quad* quads, int y) {
        return (const Quad*)((const Element*)quads + y * image.row);
    }

    ECC_DEVICE void take(int i, pair (&out)[kLaneWidth]) {
        unsigned words[4];
        shared_load(next + i * kCacheRow, words);
        out[0] = words[0], out[1] = words[2], out[2] = words[1], out[3] = words[3];
        // What is added is chosen, as in Feed.
        if (i == kItems - 1) next += --slices > 0 ? kSlice : 0;
    }
};
