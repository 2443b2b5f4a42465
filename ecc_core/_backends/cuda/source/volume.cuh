// What the kernels share that scan through volumes with sixteen rows a warp.
//
// A warp owns 128 columns and 16 rows and moves through some slices. What the row above gives to
// the first one is computed by both warps, so that they need not wait for each other. Images have at
// least 16 rows and 2 columns. With c2 the 2-D coefficients (pairs2d.cu) and N_s = max(X_s, X_s+1):
//   c(s) = c2(X_s) - [X_s >= X_s+1] c2(N_s) - [X_s-1 < X_s] c2(N_s-1).
#pragma once
#include "feed.cuh"

// Comparisons of a slice s with the samples at x + 1, y + 1 and s + 1. n: maxima over y; m: over s;
// b: over both. Planes named `_before` have the row above as their first row, and not the last row.
struct PairPlanes3 {
    plane g, n, m, b, below, m_below, behind;
    plane n_before, b_before, below_before, m_below_before;
};

// Loads the columns beside a warp, a slice ahead. Lane i has row i - 1.
struct BorderFeed {
    const Element* next;  // of the slice asked for: the column left of the warp
    Element left, right;
    const unsigned char* mask;  // kMask: of the same place as `next`
    bool left_shown, right_shown;
    long long slice;
    int width, slices;  // columns to the one right of the warp; slices that may still be asked for
    Outside outside;

    // Where the image has no column on a side, another one is loaded, and replaced later.
    ECC_DEVICE BorderFeed(const Image& image, const PairUnit& unit, int index)
        : slice(image.slice),
          slices(image.depth - unit.start),
          outside(unit.left, image.width) {
        const int lane = min(lane_index(), kPairRows + 1);
        const int row = min(max(unit.y - 1 + lane, 0), image.height - 1);
        const int from = kChannels * max(unit.left - 1, 0);
        next = unit.data(image, index) + row * image.row + from;
        if (kMask) mask = image.shown(next);
        width = kChannels * min(unit.left + kWarpWidth, image.width - 1) - from;
    }

    ECC_DEVICE void ask() {
        left = next[0], right = next[width];
        if (kMask) left_shown = mask[0], right_shown = mask[width];
        const long long step = --slices > 0 ? slice : 0;  // chosen, as in Feed
        next += step;
        if (kMask) mask += step;
    }

    // Returns the borders of the slice that has been asked for, and asks for the next one. `ends` are the
    // warp's first and last column.
    ECC_DEVICE Border take(pair ends, const Encoder& encode) {
        pair outer = encode(left, right);
        if (kMask) {
            const pair zero = kCodeZero * 0x10001u;
            if (!left_shown) outer = __byte_perm(outer, zero, 0x3254);
            if (!right_shown) outer = __byte_perm(outer, zero, 0x5410);
        }
        ask();
        return beyond({__byte_perm(outer, ends, 0x7610), __byte_perm(ends, outer, 0x7610)},
                      outside);
    }
};

// Passes on a warp's first and last column through shared memory: two lanes have them, and each lane gets
// one row. Loading them together with the columns beside them takes longer: these are eighteen rows, often
// in one bank of the cache.
struct Ends {
    static constexpr int kSide = 48, kBytes = 2 * kSide;
    static constexpr int kFree = kSide - 4;  // where there is a word that is not used
    unsigned address;  // shared address of the items of the first column; those of the last one follow

    // The first column in low halves, the last one in high halves; lane i has row i - 1.
    ECC_DEVICE pair columns(const pair (&p)[kItems][kLaneWidth]) const {
        const int own = lane_index();
        const bool first = own < 16;
        const unsigned to = address + (first ? 0 : kSide);
        pair column[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) column[i] = first ? p[i][0] : p[i][kLaneWidth - 1];
        __syncwarp();  // those of the slice before are read
        if (own % 31 == 0) {
            shared_store(to, {column[0], column[1], column[2], column[3]});
            shared_store(to + 16, {column[4], column[5], column[6], column[7]});
            shared_store(to + 32, {column[8], column[9]});
        }
        __syncwarp();
        const int lane = min(lane_index(), kPairRows + 1);
        const unsigned at = address + (lane < kItems ? 4 * lane : 4 * (lane - kPairRows8) + 2);
        return shared_short(at) | shared_short(at + kSide) << 16;
    }
};

// Comparisons across the two borders of a warp, for slices s and s + 1.
struct AllSides {
    Sides g, n, m, b;

    ECC_DEVICE AllSides(Border p, Border q) {
        const Border at_m = owner(p, q);
        g = sides(p);
        n = sides(owner(p, next_row(p)));
        m = sides(at_m);
        b = sides(owner(at_m, next_row(at_m)));
    }
};

// Computes the coefficients of one slice after the other.
struct Combiner {
    const Image& image;
    const PairUnit& unit;
    Numbers3 given_behind;  // what slice s - 1 gives to slice s

    ECC_DEVICE Combiner(const Image& image, const PairUnit& unit)
        : image(image), unit(unit), given_behind(zeros()) {}

    ECC_DEVICE Numbers4 operator()(PairPlanes3 w, const AllSides& side, int s) {
        const int here = lane_of_row();
        const Place place(here, unit.left + here * kLaneWidth, image.width);
        const int y = unit.y;
        const bool below = y + kPairRows < image.height;  // whether there are rows
        const plane last_rows = below ? kNone : ~row_bits(kPairRows - 1);
        w.below = force(w.below, last_rows);
        w.m_below = force(w.m_below, last_rows);
        if (kCubes && y == 0) {  // the first row is its own row above
            w.below_before = w.below_before | row_bits(1);
            w.m_below_before = w.m_below_before | row_bits(1);
        }
        if (s == image.depth - 1) w.behind = kCubes ? kNone : kAll;
        const Numbers3 flat = sum(place.steps(w.g, side.g, 15),
                                  place.steps(w.n, side.n, 15).taken(~w.below),
                                  place.steps(w.n_before, side.n, 16).taken(w.below_before));
        const Numbers3 deep =
            sum(place.steps(w.m, side.m, 15), place.steps(w.b, side.b, 15).taken(~w.m_below),
                place.steps(w.b_before, side.b, 16).taken(w.m_below_before));
        if (kCubes && s == 0) given_behind = flat;
        const Numbers4 c = subtract(flat, only(deep, ~w.behind), given_behind);
        given_behind = only(deep, w.behind);
        return c;
    }

    // The samples that the warp counts.
    ECC_DEVICE plane own() const {
        return Place::columns(unit.left + lane_of_row() * kLaneWidth, image.width) &
               ~row_bits(unit.rows_before - unit.y);
    }
};
