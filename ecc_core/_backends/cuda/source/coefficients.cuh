// Shared by coefficients2d.cu and coefficients3d.cu, which write the coefficient of every sample, or add it
// to the bin of the sample.
//
// Ties go to the first sample in C order. So a cell along x belongs to its second column only where
// that comes strictly after the first, and a cell of more axes to its second row (slice) only where the
// later of its samples there comes strictly after the later one in the first. With
// g = [p(x) before p(x+1)], H = later(p(x), p(x+1)) and b(s) the comparisons of a cell with the next
// row or slice, every cell that belongs to a sample within its row (slice) adds, with the sign of its
// dimension,
//   1 - [the cell to the next one is its own] - [that to the one before] = b(s) - b(s - 1).
//
// A lane has four columns; a warp owns those of lanes 1 to 30. Samples are repeated beyond the image,
// so only some bits have to be forced at its borders: V has no cells there, and in T the outer faces
// belong to the border.
#pragma once
#include "bins.cuh"
#include "planes.cuh"
#include "short_counts.cuh"
#include "tiling.cuh"

// As in coefficients.py.
struct Coefficients {
    signed char* out;                // (images, slices, rows, columns); kCounts: unused
    unsigned long long* counts;      // kCounts: (images, thresholds + 1), zero at launch.
    volatile long long* not_finite;  // kNanReport: 1 if there may be a NaN, else 0.
    unsigned long long* ticket;      // kNanReport: zero at launch, and at the end.
    int across, down, chunk;         // Units along x and y, rows or slices of a unit.
    int units;                       // The number of units of an image.
};

constexpr int kOwnWidth = 30 * kLaneWidth;

// Notices NaN, and infinities too, of which the product with zero is NaN as well: the host then looks
// again.
struct FiniteCheck {
    float sum = 0.0f;
    ECC_DEVICE void see(Key v) { sum = multiply_add((float)v, 0.0f, sum); }
    ECC_DEVICE bool failed() const { return sum != sum; }
};

// Four samples of a row as they are in memory, so that samples that are loaded ahead take few registers,
// and with kMask a byte for each, whether it is shown.
struct Quadruple {
    Element sample[kLaneWidth];
    unsigned shown;
};

// The columns of a lane.
struct ScanLane {
    const Image& image;
    int x, width;
    bool before, behind;  // Whether all of them are left of the image, or right of it.
    plane owned;          // The columns that the warp owns.
    plane first, last;    // The first and the last column of the image.

    ECC_DEVICE ScanLane(const Image& image, int left)
        : image(image), x(left + (int)(threadIdx.x & 31) * kLaneWidth), width(image.width) {
        const int lane = threadIdx.x & 31;
        before = x < 0, behind = x >= width;
        owned = lane == 0 || lane == 31 || before ? kNone : column_bits(width - x);
        first = x == 0 ? kFirstColumn : kNone;
        last = column_bits(width - x) & ~column_bits(width - 1 - x);
        if (before) last = kNone;
    }

    ECC_DEVICE void load(const Element* row, Quadruple& to) const {
        if (kVector) {
            const Element* const at = row + min(max(x, 0), width - kLaneWidth);
            const Quad quad = *(const Quad*)at;
            if (kMask) to.shown = *(const unsigned*)image.shown(at);
#pragma unroll
            for (int i = 0; i < kLaneWidth; ++i) to.sample[i] = quad.v[i];
        } else {
            to.shown = 0;
#pragma unroll
            for (int i = 0; i < kLaneWidth; ++i) {
                const Element* const at = row + min(max(x + i, 0), width - 1);
                to.sample[i] = *at;
                if (kMask) to.shown |= (unsigned)*image.shown(at) << (8 * i);
            }
        }
    }

    // Writes the keys of samples, and the later of each key and its right neighbour. Samples that are not
    // shown never enter.
    ECC_DEVICE void keys(const Quadruple& row, Key (&p)[kLaneWidth], Key (&h)[kLaneWidth]) const {
#pragma unroll
        for (int i = 0; i < kLaneWidth; ++i) {
            p[i] = without_sign_of_zero(to_key(row.sample[i]));
            if (kMask && !(row.shown >> (8 * i) & 0xFFu)) p[i] = never(p[i]);
        }
        if (kVector && before) p[kLaneWidth - 1] = p[0];
        if (kVector && behind) p[0] = p[kLaneWidth - 1];
        const Key right = __shfl_down_sync(kWarp, p[0], 1);  // The first key of the next lane.
#pragma unroll
        for (int i = 0; i < kLaneWidth; ++i)
            h[i] = later(p[i], i < kLaneWidth - 1 ? p[(i + 1) % kLaneWidth] : right);
    }

    // Returns at each sample the bit of its left neighbour.
    ECC_DEVICE plane from_left(plane bits) const {
        return left_of(bits, __shfl_up_sync(kWarp, bits, 1) << 3);
    }

    // Return comparisons of samples with their right neighbours, and of their left neighbours with them,
    // completed at the border.
    ECC_DEVICE plane complete(plane g) const { return kCubes ? g : g | last; }
    ECC_DEVICE plane complete_left(plane g_left) const {
        return kCubes ? g_left | first : g_left & ~first;
    }

    // Writes the numbers of some rows to memory, or adds them to the sums of their samples' bins; rows
    // are `apart` from each other, and those of samples image.row.
    ECC_DEVICE void put(const Numbers4& c, signed char* out, long long apart,
                        const Element* samples, long long row, const ShortCounts& counts,
                        const Bins& bins, plane where) const {
#pragma unroll
        for (int r = 0; r < kLaneRows; ++r) {
            const plane shown = where << (4 * r) >> 28;
            if (shown) {
                const unsigned four = bytes(c.b0, r) + 2u * bytes(c.b1, r) + 4u * bytes(c.b2, r) +
                                      0xF8u * bytes(c.b3, r);
                if (kCounts) {
                    Quadruple own;
                    load(samples - x, own);
#pragma unroll
                    for (int i = 0; i < kLaneWidth; ++i) {
                        const int amount = (signed char)(four >> (8 * i));
                        if (amount && (shown >> (3 - i) & 1)) {
                            const Key key = to_key(own.sample[i]);
                            counts.add(bin_of(key, bins, bins.thresholds, bins.table), amount);
                        }
                    }
                } else if (kVector) {
                    *(unsigned*)out = four;
                } else {
#pragma unroll
                    for (int i = 0; i < kLaneWidth; ++i)
                        if (shown >> (3 - i) & 1) out[i] = (signed char)(four >> (8 * i));
                }
            }
            out += apart;
            samples += row;
        }
    }

    // Returns the four bits of a row, each in its byte.
    ECC_DEVICE static unsigned bytes(plane bits, int row) {
        const unsigned four = bits << (4 * row) >> 28;
        return (four * 0x01008040u | four >> 3) & 0x01010101u;
    }

    ECC_DEVICE static float without_sign_of_zero(float key) { return add_floats(key, 0.0f); }
    template <class T>
    ECC_DEVICE static T without_sign_of_zero(T key) {
        return key;
    }
};

// Scans the units of a block, one after the other; the y of the block is the index of its image.
template <class Scan>
ECC_DEVICE void take_units(const Image& image, const Coefficients& to, const Bins& bins,
                           const Scan& scan) {
    extern __shared__ uint4 memory[];
    const ShortCounts counts(memory, to.counts + blockIdx.y * (bins.count + 1ll), bins.count);
    FiniteCheck check;
    constexpr int kWarps = ECC_THREADS / 32;
    for (int unit = blockIdx.x * kWarps + uniform(threadIdx.x >> 5); unit < to.units;
         unit += gridDim.x * kWarps) {
        scan(image, to, bins, (long long)blockIdx.y * to.units + unit, counts, check);
        if (!kCounts) break;  // Without counts, there is a warp for each unit.
    }
    counts.flush();
    if (kNan == kNanReport) report(to.not_finite, to.ticket, check.failed());
}

// Appends the bit whether a sample enters, with kMask.
ECC_DEVICE void push_entering(plane& bits, Key key) {
    if (kMask) bits = bits * 2u + (plane)(key != never(key));
}

// Returns b(s) - b(s - 1) where a cell is the sample's own.
ECC_DEVICE Trits change(plane now, plane before, plane where) {
    return {now & ~before & where, ~now & before & where};
}
ECC_DEVICE Trits negative(Trits a) { return {a.minus, a.plus}; }
