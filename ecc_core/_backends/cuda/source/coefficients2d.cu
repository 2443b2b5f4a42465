// The coefficient of every sample of 2-D images. A warp moves down some rows, eight at a time.
#include "coefficients.cuh"

ECC_DEVICE void scan_unit(const Image& image, const Coefficients& to, const Bins& bins,
                          long long unit, const ShortCounts& counts, FiniteCheck& check) {
    const int chunks = (image.height + to.chunk - 1) / to.chunk;
    const long long rest = unit / to.across;
    const ScanLane lane(image, (int)(unit - rest * to.across) * kOwnWidth - kLaneWidth);
    const int index = (int)(rest / chunks);
    const int begin = (int)(rest - (long long)index * chunks) * to.chunk,
              end = min(begin + to.chunk, image.height);
    const Element* const data = image.data + index * image.batch;
    const auto load = [&](int y, Quadruple& row) {
        lane.load(data + (long long)min(max(y, 0), image.height - 1) * image.row, row);
    };
    Quadruple ahead[kLaneRows];  // The rows after row y.
    load(begin, ahead[0]);
    Key p[kLaneWidth], h[kLaneWidth];
    Quadruple first;
    load(begin - 1, first);
    lane.keys(first, p, h);
    // Comparisons of the row above with the first one: [p before the next row], [H before the next row].
    plane below_above = 0, h_above = 0;
    Key q[kLaneWidth], hq[kLaneWidth];
    lane.keys(ahead[0], q, hq);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) {
        push(below_above, p[x], q[x]);
        push(h_above, h[x], hq[x]);
    }
    if (begin == 0) below_above = h_above = kCubes ? 0xFu : 0u;
    plane h_left_above = lane.from_left(h_above);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) p[x] = q[x], h[x] = hq[x];
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) load(begin + r + 1, ahead[r]);
    signed char* out = to.out + ((long long)index * image.height + begin) * image.width + lane.x;
    const Element* samples = data + (long long)begin * image.row + lane.x;
    for (int y = begin; y < end; y += kLaneRows) {
        plane g = 0, below = 0, h_below = 0, entering = kMask ? 0u : kAll;
#pragma unroll
        for (int r = 0; r < kLaneRows; ++r) {
            lane.keys(ahead[r], q, hq);
            load(y + r + 1 + kLaneRows, ahead[r]);
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) {
                push(g, p[x], h[x]);
                push_entering(entering, p[x]);
                push(below, p[x], q[x]);
                push(h_below, h[x], hq[x]);
                if (kNan == kNanReport && !(x & 1)) check.see(h[x]);
                p[x] = q[x], h[x] = hq[x];
            }
        }
        const plane rows = row_bits(image.height - y) & ~row_bits(image.height - 1 - y);
        below = force(below, rows), h_below = force(h_below, rows);
        const plane g_left = lane.complete_left(lane.from_left(g));
        const plane h_left = lane.from_left(h_below);
        g = lane.complete(g);
        const Numbers3 c = sum(change(below, next_row(below, below_above), kAll),
                               negative(change(h_below, next_row(h_below, h_above), ~g)),
                               negative(change(h_left, next_row(h_left, h_left_above), g_left)));
        below_above = below, h_above = h_below, h_left_above = h_left;
        const plane where = lane.owned & row_bits(end - y);
        const Numbers4 number = only(extend(c), entering);
        lane.put(number, out, image.width, samples, image.row, counts, bins, where);
        out += (long long)kLaneRows * image.width;
        samples += (long long)kLaneRows * image.row;
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    coefficients(const Image image, const Coefficients to, const Bins bins) {
    take_units(image, to, bins, scan_unit);
}
