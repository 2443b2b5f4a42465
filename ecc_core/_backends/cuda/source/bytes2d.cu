// The Euler characteristic curve of 2-D images of 8-bit types (sliced.cuh).
//
// A warp moves down the rows that it owns, and reads the row above them as well. pairs2d.cu states
// the formula. The grid is blocks, images.
#include "sliced_events.cuh"

// Counts the rows from `begin` to `end`. The first block of rows, from row `y` on, has been asked for.
ECC_DEVICE void scan(const Image& image, int left, int y, int begin, int end, Room room,
                     SlicedFeed& feed, const SlicedCounter& count) {
    const auto ask = [&](unsigned to) {
        feed.advance(product(kRows, feed.row));
        feed.rest -= kRows;
        feed.ask(room.at(to));
    };
    Column p[kLaneWidth];
    Trits above[kLaneWidth] = {};
    room.wait();
    load_columns(room.here, p);
    Border border_p = border_of(feed, room.rows(room.here));
    if (y + kRows <= end) ask(room.there);
    for (; y < end; y += kRows) {
        const SlicedPlace place(y, image.height - 1 - y, left, image.width);
        const Sides beyond = outside(left, image.width);
        plane right[kLaneWidth], maxima[kLaneWidth], below[kLaneWidth];
        Numbers3 flat[kLaneWidth];
        Column q[kLaneWidth];
        compare_right(p, right);
        room.wait();
        load_columns(room.there, q);  // Where no rows are left, the result is not used.
        const Border border_q = border_of(feed, room.rows(room.there));
        compare_below(p, q, place.bottom, below, maxima);
        combine(right, maxima, below, sides(border_p, beyond),
                sides(owner(border_p, next_row(border_p, border_q)), beyond), place, above, flat);
        border_p = border_q;
        Numbers4 c[kLaneWidth];
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) {
            c[x] = extend(flat[x]);
            p[x] = q[x];
        }
        const plane own = (y < begin ? kAll >> (begin - y) : kAll) &
                          (end - y < kRows ? ~(kAll >> (end - y)) : kAll);
        count(room.here, c, place.inside ? own : kNone);
        __syncwarp();
        if (y + 2 * kRows <= end) ask(room.here);
        room.turn();
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.y, warp = uniform(threadIdx.x >> 5);
    const unsigned unit = blockIdx.x * (blockDim.x >> 5) + warp, across = tiling.across;
    const unsigned down = unit / across;
    const int left = (unit - down * across) * kWarpWidth;
    const int begin = tiling.first + down * tiling.chunk;
    const int end = min(begin + tiling.chunk, tiling.last), y = max(begin - 1, 0);
    const Room room(memory, warp);
    SlicedFeed feed(image, image.data + index * image.batch, left, y);
    if (begin < end) feed.ask(room.at(room.here));  // The copy runs while counts are cleared.
    const BlockCounts shared(memory, kWarpBytes, bins, result, index);
    if (begin < end) scan(image, left, y, begin, end, room, feed, SlicedCounter(shared.histogram));
    finish(shared.histogram, result, index, false);
}
