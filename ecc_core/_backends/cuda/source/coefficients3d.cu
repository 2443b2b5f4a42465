// The coefficient of every sample of volumes. A warp moves through some slices. The first of its eight rows
// is the last one of the warp above, which owns it.
#include "coefficients.cuh"

constexpr int kRows = kLaneRows + 1;  // Rows that are read.
constexpr int kAhead = 3;             // Rows that are loaded ahead.

// Comparisons of a slice with the next one, of a sample and of the cells that have it along x, along
// y and along both.
struct Behind {
    plane p, h, v, hv, h_left, hv_left;
};

ECC_DEVICE void scan_unit(const Image& image, const Coefficients& to, const Bins& bins,
                          long long unit, const ShortCounts& counts, FiniteCheck& check) {
    const int chunks = (image.depth + to.chunk - 1) / to.chunk;
    const long long rest = unit / to.across, above = rest / to.down;
    const ScanLane lane(image, (int)(unit - rest * to.across) * kOwnWidth - kLaneWidth);
    const int top = (int)(rest - above * to.down) * (kLaneRows - 1) - 1;
    const int index = (int)(above / chunks);
    const int begin = (int)(above - (long long)index * chunks) * to.chunk,
              end = min(begin + to.chunk, image.depth);
    const Element* const data = image.data + index * image.batch;
    const auto row_of = [&](int s, int r) {
        return data + (long long)min(max(s, 0), image.depth - 1) * image.slice +
               (long long)min(max(top + r, 0), image.height - 1) * image.row;
    };
    const int start = max(begin - 1, 0);
    Key p[kRows][kLaneWidth], h[kRows][kLaneWidth];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        Quadruple row;
        lane.load(row_of(start, r), row);
        lane.keys(row, p[r], h[r]);
    }
    Quadruple ahead[kAhead];
#pragma unroll
    for (int r = 0; r < kAhead; ++r) lane.load(row_of(start + 1, r), ahead[r]);
    const plane outside = kCubes ? kAll : kNone;
    Behind before = {outside, outside, outside, outside, outside, outside};
    const plane last_row = row_bits(image.height - top) & ~row_bits(image.height - 1 - top);
    const plane owned = lane.owned & ~row_bits(1) & row_bits(image.height - top);
    const long long apart = image.width;
    signed char* out =
        to.out + (((long long)index * image.depth + start) * image.height + top) * apart + lane.x;
    for (int s = start; s < end; ++s) {
        plane g = 0, below = 0, h_below = 0, entering = kMask ? 0u : kAll;
        Behind now = {0, 0, 0, 0, 0, 0};
        Key q[kLaneWidth], hq[kLaneWidth];
        prefetch(
            row_of(s + 3, min((int)(threadIdx.x & 31) >> 2, kLaneRows)) +
            min(max(lane.x - (int)(threadIdx.x & 31) * kLaneWidth + (int)(threadIdx.x & 3) * 32, 0),
                image.width - 1));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            Key next[kLaneWidth], h_next[kLaneWidth];
            lane.keys(ahead[r % kAhead], next, h_next);
            lane.load(row_of(r + kAhead < kRows ? s + 1 : s + 2, (r + kAhead) % kRows),
                      ahead[r % kAhead]);
            if (r > 0) {
#pragma unroll
                for (int x = 0; x < kLaneWidth; ++x) {
                    const Key own = p[r - 1][x], h_own = h[r - 1][x];
                    push(g, own, h_own);
                    push_entering(entering, own);
                    push(below, own, p[r][x]);
                    push(h_below, h_own, h[r][x]);
                    push(now.p, own, q[x]);
                    push(now.h, h_own, hq[x]);
                    push(now.v, later(own, p[r][x]), later(q[x], next[x]));
                    const Key both = later(h_own, h[r][x]);
                    push(now.hv, both, later(hq[x], h_next[x]));
                    if (kNan == kNanReport && (r & 1) && !(x & 1)) check.see(both);
                    p[r - 1][x] = q[x], h[r - 1][x] = hq[x];
                }
            }
#pragma unroll
            for (int x = 0; x < kLaneWidth; ++x) q[x] = next[x], hq[x] = h_next[x];
        }
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) p[kRows - 1][x] = q[x], h[kRows - 1][x] = hq[x];
        below = force(below, last_row), h_below = force(h_below, last_row);
        if (top < 0) {
            const plane first_row = row_bits(1);
            below = kCubes ? below | first_row : below & ~first_row;
            h_below = kCubes ? h_below | first_row : h_below & ~first_row;
        }
        if (!kCubes && s == image.depth - 1) now.p = now.h = now.v = now.hv = kAll;
        now.h_left = lane.from_left(now.h), now.hv_left = lane.from_left(now.hv);
        const plane g_left = lane.complete_left(lane.from_left(g));
        const plane h_below_left = lane.from_left(h_below);
        g = lane.complete(g);
        if (s >= begin) {
            const auto from_above = [](plane bits) { return next_row(bits, 0u); };
            const Numbers3 with =
                sum(change(now.p, before.p, kAll), change(now.hv, before.hv, ~g & ~h_below),
                    change(now.hv_left, before.hv_left, g_left & ~h_below_left));
            const Numbers3 along =
                sum(change(now.h, before.h, ~g), change(now.h_left, before.h_left, g_left),
                    change(now.v, before.v, ~below));
            const Numbers3 up =
                sum(change(from_above(now.v), from_above(before.v), from_above(below)),
                    negative(change(from_above(now.hv), from_above(before.hv),
                                    ~g & from_above(h_below))),
                    negative(change(from_above(now.hv_left), from_above(before.hv_left),
                                    g_left & from_above(h_below_left))));
            Numbers4 c = subtract(with, along, up);
            c = only(kCubes ? minus(c) : c, entering);
            const Element* const samples = data + s * image.slice + top * image.row + lane.x;
            lane.put(c, out, apart, samples, image.row, counts, bins, owned);
        }
        before = now;
        out += apart * image.height;
    }
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    coefficients(const Image image, const Coefficients to, const Bins bins) {
    take_units(image, to, bins, scan_unit);
}
