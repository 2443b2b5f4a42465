// The coefficients of all points of a column at once, from comparisons with their 26 neighbours (8 in
// flat images). Of equal points the first one in raster order owns a cell.
#pragma once
#include "soft.cuh"

// Images of one or two axes: columns have neighbours along x only.
constexpr bool kFlat = ECC_FLAT;
// Points are cubes, and the smallest cube that contains a cell owns it.
constexpr bool kCubes = ECC_CUBES;

constexpr unsigned kWarp = 0xFFFFFFFFu;
constexpr int kLanes = 32;

constexpr int kOwn = 16;  // points of a column; kSteps includes the neighbours at its ends
constexpr int kSteps = kOwn + 2;

// A two's complement number for each point.
struct Digits {
    plane b0, b1, b2, b3;

    // The numbers of kPacked points from point `first` on, the first one in the highest bits.
    __device__ __forceinline__ plane pack(int first) const {
        const int shift = kOwn - kPacked - first;
        return spread(b0 >> shift) | spread(b1 >> shift) << 1 | spread(b2 >> shift) << 2 |
               spread(b3 >> shift) << 3;
    }

  private:
    // Bit i of the lowest byte to bit 4 i.
    static __device__ __forceinline__ plane spread(plane bits) {
        bits &= 0xFFu;
        bits = (bits | bits << 12) & 0x000F000Fu;
        bits = (bits | bits << 6) & 0x03030303u;
        return (bits | bits << 3) & 0x11111111u;
    }
};

__device__ __forceinline__ plane majority(plane a, plane b, plane c) {
    return (a & b) | (c & (a | b));
}

__device__ __forceinline__ void add(Digits& n, plane a, plane b, plane c) {
    const plane sum = a ^ b ^ c, two = majority(a, b, c);
    const plane carry = n.b0 & sum;
    n.b0 ^= sum;
    const plane four = majority(n.b1, carry, two);
    n.b1 ^= carry ^ two;
    const plane eight = n.b2 & four;
    n.b2 ^= four;
    n.b3 ^= eight;
}

__device__ __forceinline__ Digits subtract(Digits a, Digits b) {
    const plane c1 = a.b0 | ~b.b0, c2 = majority(a.b1, ~b.b1, c1), c3 = majority(a.b2, ~b.b2, c2);
    return {a.b0 ^ b.b0, a.b1 ^ ~b.b1 ^ c1, a.b2 ^ ~b.b2 ^ c2, a.b3 ^ ~b.b3 ^ c3};
}

// Appends the bit [a < b].
__device__ __forceinline__ void push(plane& bits, float a, float b) {
    bits = __funnelshift_l(__float_as_uint(subtract_floats(a, b)), bits, 1);
}
__device__ __forceinline__ void push(plane& bits, double a, double b) {
    bits = bits * 2u + (plane)(a < b);
}

// The points of a block in shared memory as keys: the point with the largest key owns a cell. Threads at
// the border of a tile read keys that are not their neighbours', and their results are not used.
//
// Rows are neighbours along y and are stored as (kSteps, rows, lanes). In flat images they are
// unrelated and stored as (rows, kSteps, lanes), each with one more sample, so that no warp reads what
// another one writes.
struct Tile {
    Real* keys;
    int rows, row, lane;

    static __host__ __device__ constexpr int samples(int rows) {
        return kFlat ? (kSteps * kLanes + 1) * rows : kSteps * kLanes * rows;
    }
    __device__ __forceinline__ int at(int step, int dy) const {
        return kFlat ? (row * kSteps + step) * kLanes + row + lane
                     : (step * rows + row + dy) * kLanes + lane;
    }
    __device__ __forceinline__ const Real& get(int step, int dy, int dx) const {
        return keys[at(step, dy) + dx];
    }
    __device__ __forceinline__ Real& own(int step) const { return keys[at(step, 0)]; }
};
constexpr int kPadding = kLanes + 4;  // samples before and after a tile, a multiple of 16 bytes

// Whether each point has a larger key than a neighbour; indices are the neighbour's offset plus one.
struct Ownership {
    plane at[3][3][3];
};

constexpr int kExchanged = 9;  // planes that other rows read

// Compares each step except the last with the neighbours that follow in raster order, and takes the
// other comparisons from the neighbours. `exchange` is (kExchanged, rows, lanes). The column's own
// points are steps 1 to kOwn, and the bit of step i is at position kOwn - i.
__device__ __forceinline__ Ownership compare(const Tile& tile, plane* exchange) {
    plane ahead[2][3][3] = {};  // whether the neighbour at (dz, dy - 1, dx - 1) has the larger key
    constexpr int first = kFlat ? 1 : 0, last = kFlat ? 1 : 2;
    Real now[3][3];
#pragma unroll
    for (int y = first; y <= last; ++y) {
#pragma unroll
        for (int x = 0; x < 3; ++x) now[y][x] = tile.get(0, kFlat ? 0 : y - 1, x - 1);
    }
#pragma unroll 4
    for (int step = 0; step <= kOwn; ++step) {
        Real next[3][3];
#pragma unroll
        for (int y = first; y <= last; ++y) {
#pragma unroll
            for (int x = 0; x < 3; ++x) {
                next[y][x] = tile.get(step + 1, kFlat ? 0 : y - 1, x - 1);
                push(ahead[1][y][x], now[1][1], next[y][x]);
                if (y == 2 || (y == 1 && x == 2)) push(ahead[0][y][x], now[1][1], now[y][x]);
            }
        }
#pragma unroll
        for (int y = first; y <= last; ++y) {
#pragma unroll
            for (int x = 0; x < 3; ++x) now[y][x] = next[y][x];
        }
    }
    const int size = tile.rows * kLanes, here = tile.row * kLanes + tile.lane;
    if (!kFlat) {
        int k = 0;
#pragma unroll
        for (int z = 0; z < 2; ++z) {
#pragma unroll
            for (int y = 0; y < 3; ++y) {
#pragma unroll
                for (int x = 0; x < 3; ++x) {
                    if (y == 1 || (z == 0 && y == 0)) continue;
                    exchange[k++ * size + here] = ahead[z][y][x];
                }
            }
        }
        __syncthreads();
    }
    Ownership owns;
    int k = 0;
#pragma unroll
    for (int z = 0; z < 2; ++z) {
#pragma unroll
        for (int y = first; y <= last; ++y) {
#pragma unroll
            for (int x = 0; x < 3; ++x) {
                if (z == 0 && (y == 0 || (y == 1 && x < 2))) continue;
                owns.at[z + 1][y][x] = ~ahead[z][y][x];
                // The opposite neighbour has compared itself with this point.
                plane behind = ahead[z][y][x];
                if (y != 1) {
                    const int row = min(max(tile.row + 1 - y, 0), tile.rows - 1);
                    const int lane = min(max(tile.lane + 1 - x, 0), kLanes - 1);
                    behind = exchange[k++ * size + row * kLanes + lane];
                } else if (x == 0) {
                    behind = __shfl_down_sync(kWarp, behind, 1);
                } else if (x == 2) {
                    behind = __shfl_up_sync(kWarp, behind, 1);
                }
                owns.at[1 - z][2 - y][2 - x] = z ? behind >> 1 : behind;
            }
        }
    }
    return owns;
}

// The number of points minus edges plus squares minus cubes that each point owns.
__device__ __forceinline__ Digits coefficients(const Ownership& w) {
    Digits plus = {~0u, 0, 0, 0}, minus = {0, 0, 0, 0};
    plane square_zx[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j)
            square_zx[i][j] = w.at[2 * i][1][1] & w.at[1][1][2 * j] & w.at[2 * i][1][2 * j];
    }
    add(minus, w.at[0][1][1], w.at[2][1][1], w.at[1][1][0]);
    add(plus, square_zx[0][0], square_zx[0][1], square_zx[1][0]);
    if (kFlat) {
        add(minus, w.at[1][1][2], 0, 0);
        add(plus, square_zx[1][1], 0, 0);
        return subtract(plus, minus);
    }
    add(minus, w.at[1][1][2], w.at[1][0][1], w.at[1][2][1]);
    plane cube[2][2][2], square_zy[2][2], square_yx[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            square_zy[i][j] = w.at[2 * i][1][1] & w.at[1][2 * j][1] & w.at[2 * i][2 * j][1];
            square_yx[i][j] = w.at[1][2 * i][1] & w.at[1][1][2 * j] & w.at[1][2 * i][2 * j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int z = i >> 2, y = i >> 1 & 1, x = i & 1;
        cube[z][y][x] = square_zy[z][y] & square_zx[z][x] & square_yx[y][x] &
                        w.at[2 * z][2 * y][2 * x];
    }
    add(plus, square_zx[1][1], square_zy[0][0], square_zy[0][1]);
    add(plus, square_zy[1][0], square_zy[1][1], square_yx[0][0]);
    add(plus, square_yx[0][1], square_yx[1][0], square_yx[1][1]);
    add(minus, cube[0][0][0], cube[0][0][1], cube[0][1][0]);
    add(minus, cube[0][1][1], cube[1][0][0], cube[1][0][1]);
    add(minus, cube[1][1][0], cube[1][1][1], 0);
    // The dimension of a cube is that of the image, 3, and of a flat image 2.
    return kCubes ? subtract(minus, plus) : subtract(plus, minus);
}
