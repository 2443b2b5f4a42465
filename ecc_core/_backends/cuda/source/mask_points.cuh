// The critical points of a mask, on planes of bits: their coefficients (ecc_core/_orthants.py defines
// them), and how a warp lists them.
#pragma once
#include "device.cuh"
#include "transform.cuh"

constexpr int kTileRows = 32, kTileColumns = 64;

// A block of points, by its first point. It has kTileColumns points along the last axis, and up to `rows`
// and `slices` points along the others.
struct Tile {
    int z, y, x;
};

// Cells of 64 points of a row that lie in a slice: the points, the edges along the last axis and along
// the rows, and the squares.
struct MaskCells {
    unsigned point[2], x[2], y[2], xy[2];
};

// Reads the lane's row of a tile in one slice after another.
struct Reader {
    const unsigned* here;  // Words of the next slice in the points' row.
    int row, step;         // Words from there to the other row, and to the next slice.
    int shift_here, shift_far;
    unsigned words[6];

    ECC_DEVICE Reader(const Planes& planes, const Grid& grid, const Owner& owner, const Tile& tile,
                      int slice, int direction)
        : step(direction * planes.tiles * planes.words * 32) {
        const bool wide = grid.y.present;
        const int y = tile.y + (int)(threadIdx.x & 31) + 1 + (wide ? owner.y.here : 0);
        // The points start at bit 32 of the words that are loaded, or at their first bit.
        const int left = min(owner.x.here, owner.x.far), word = tile.x / 32 + 1 + left;
        shift_here = owner.x.here - 32 * left, shift_far = owner.x.far - 32 * left;
        const long long tiles = (long long)(slice + planes.deep) * planes.tiles;
        here = planes.bits + 32 * tiles * planes.words + at(planes, y, word);
        row = wide ? at(planes, y + owner.y.far - owner.y.here, word) - at(planes, y, word) : 0;
    }

    ECC_DEVICE static int at(const Planes& planes, int y, int word) {
        return (((y >> 5) * planes.words + word) << 5) + (y & 31);
    }

    // Loads a slice, and moves on to the next one.
    ECC_DEVICE void load() {
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            words[i] = here[32 * i];
            words[3 + i] = row ? here[row + 32 * i] : 0;
        }
        here += step;
    }

    // Returns the cells of the slice that has been loaded; none if the row does not exist.
    ECC_DEVICE MaskCells cells(unsigned exists) const {
        MaskCells found;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const unsigned own = funnel(i, shift_here) & exists, other = funnel(3 + i, shift_here);
            found.point[i] = own;
            found.x[i] = own & funnel(i, shift_far);
            found.y[i] = own & other;
            found.xy[i] = found.x[i] & other & funnel(3 + i, shift_far);
        }
        return found;
    }

    ECC_DEVICE unsigned funnel(int word, int shift) const {
        return __funnelshift_rc(words[word], words[word + 1], shift);
    }
};

// Coefficients of 64 points, from -2 to 1: points where they are 1, negative, and -2.
struct MaskCoefficients {
    unsigned up[2], down[2], twice[2];

    ECC_DEVICE MaskCoefficients(const MaskCells& here, const MaskCells& far) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const unsigned point = here.point[i], x = here.x[i], y = here.y[i], xy = here.xy[i];
            const unsigned z = point & far.point[i], xz = x & far.x[i], yz = y & far.y[i],
                           cube = xy & far.xy[i];
            const unsigned alone = point & ~(x | y | z), hollow = xy & xz & yz & ~cube;
            const unsigned odd = point ^ x ^ y ^ z ^ xy ^ xz ^ yz ^ cube;
            up[i] = alone | hollow;
            twice[i] = x & y & z & ~(xy | xz | yz);
            down[i] = (odd & ~up[i]) | twice[i];
        }
    }

    ECC_DEVICE bool any() const { return up[0] | up[1] | down[0] | down[1]; }
};

// Points that a warp has listed, each as three bytes, its column, row and slice in the tile, which are
// counted along the signs of the orthant: those of positive coefficients from the start, those of
// negative ones from the end, twice where it is -2.
struct MaskQueue {
    unsigned* points;
    int positive, negative;
};

ECC_DEVICE void list(unsigned bits, unsigned first, int column, unsigned*& at, int step) {
    for (; bits; at += step) {
        const int bit = 31 - __clz(bits);
        bits ^= 1u << bit;
        *at = first + column * bit;
    }
}
