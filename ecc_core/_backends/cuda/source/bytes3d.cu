// The Euler characteristic curve of 3-D images of 8-bit types (sliced.cuh).
//
// A warp moves through the slices of a unit; if slices are channels, it takes several units. The first and
// the last of its rows belong to the warps above and below, unless they are the first and the last of the
// image. pairs3d.cu states the formula.
#include "sliced_events.cuh"

struct SlicedUnit : Unit {
    ECC_DEVICE SlicedUnit(const Tiling& tiling, int index) : Unit(tiling, index, kRows - 2) {}

    // Returns the rows that it owns; `rest` is the number of rows down to the last one of the image.
    ECC_DEVICE plane own(int rest) const {
        const int rows = rest < kRows ? rest + 1 : kRows - 1;
        return (kAll << (kRows - rows)) & (y > 0 ? kAll >> 1 : kAll);
    }
};

// Counts the slices of a unit, of which the first one has been asked for.
ECC_DEVICE void scan(const Image& image, const SlicedUnit& unit, Room room, SlicedFeed& feed,
                     const SlicedCounter& count) {
    const auto ask = [&](int s, unsigned to) {
        if (s >= image.depth) return;
        feed.advance(image.slice);
        if (kChannels > 1)
            feed.ask_beside();
        else
            feed.ask(room.at(to));
    };
    Column p[kLaneWidth];
    Numbers3 given_behind[kLaneWidth];  // What slice s - 1 gives to slice s.
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) given_behind[x] = zeros();

    room.wait();
    if (kChannels > 1) {
        separate_channels(room.here);
        __syncwarp();
    }
    load_columns(room.here, p);
    Border border_p = border_of(feed, room.rows(room.here));
    ask(unit.start + 1, room.there);
    for (int s = unit.start; s < unit.end; ++s) {
        const SlicedPlace place(unit.y, feed.rest, unit.left, image.width);
        const Sides beyond = outside(unit.left, image.width);
        plane right[kLaneWidth], maxima[kLaneWidth], below[kLaneWidth], behind[kLaneWidth];
        Numbers3 flat[kLaneWidth], deep[kLaneWidth];
        // Rows above give nothing to the first row: the warp does not own it, or there are none.
        Trits no_rows[kLaneWidth] = {}, none[kLaneWidth] = {};
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) flat[x] = zeros();
        if (s >= unit.begin) {
            compare_right(p, right);
            compare_below(p, NoRows(), place.bottom, below, maxima);
            combine(right, maxima, below, sides(border_p, beyond),
                    sides(owner(border_p, next_row(border_p)), beyond), place, no_rows, flat);
        }

        if (s < image.depth - 1) {
            room.wait();
            Column m[kLaneWidth], q[kLaneWidth];
            load_columns(room.there, q);
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) {
                behind[x] = owned_by_second(p[x], q[x]);
                m[x] = choose(behind[x], p[x], q[x]);
                p[x] = q[x];
            }
            compare_right(m, right);
            compare_below(m, NoRows(), place.bottom, below, maxima);
            const Border border_q = border_of(feed, room.rows(room.there)),
                         border_m = owner(border_p, border_q);
            border_p = border_q;
            combine(right, maxima, below, sides(border_m, beyond),
                    sides(owner(border_m, next_row(border_m)), beyond), place, none, deep);
        } else {  // The last slice is its own next one for cubes, and has none for vertices.
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) {
                behind[x] = kCubes ? kNone : kAll;
                deep[x] = flat[x];
            }
        }
        Numbers4 c[kLaneWidth];
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            if (kCubes && s == 0) given_behind[x] = flat[x];
            c[x] = subtract(flat[x], only(deep[x], ~behind[x]), given_behind[x]);
            given_behind[x] = only(deep[x], behind[x]);
        }
        if (s >= unit.begin) count(room.here, c, place.inside ? unit.own(feed.rest) : kNone);
        __syncwarp();
        if (s + 1 < unit.end) ask(s + 2, room.here);
        room.turn();
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int warp = uniform(threadIdx.x >> 5);
    const int warps = blockDim.x >> 5;
    const Room room(memory, warp);
    const auto begin = [&](const SlicedUnit& unit) {
        SlicedFeed feed(image, unit.data(image, index), unit.left, unit.y);
        if (unit.some()) feed.ask(room.at(room.here));
        return feed;
    };
    // Warps take several units of channels, one after the other. Those of the last turn, which may be
    // few, are spread over all blocks.
    int i = kChannels > 1 ? warp * result.blocks + block : block * warps + warp;
    SlicedUnit unit(tiling, i);
    SlicedFeed feed = begin(unit);  // The copy runs while counts are cleared.
    const BlockCounts shared(memory, kWarpBytes, bins, result, index);
    while (unit.some()) {
        scan(image, unit, room, feed, SlicedCounter(shared.histogram));
        i += warps * result.blocks;
        unit = SlicedUnit(tiling, i);
        feed = begin(unit);
    }
    finish(shared.histogram, result, index, false);
}
