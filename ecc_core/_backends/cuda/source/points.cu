// The coefficients of samples, written to an image or counted by region. A sample owns the cells of which
// it is the last corner in V, or the first one in T; of equal samples, the first in C order is taken.
// Samples that never enter, and those of other regions, are treated as if they were outside the image.
//
// A warp takes some rows, and goes from slice to slice. Each lane has a column, and compares every pair of
// neighbours once: its own samples with those of the column to the right. The lane there gets the results,
// which are bits, one for each row, so that logical operations act on all rows of a lane at once.
#include "points.cuh"

// Returns the point of another lane.
ECC_DEVICE Point from(const Point& own, int lane) {
    return {__shfl_sync(kWarp, own.rank, lane), kGroups ? __shfl_sync(kWarp, own.group, lane) : 0};
}

// The samples of a warp whose coefficient is not zero, listed so that all lanes have some to count.
struct Queue {
    static constexpr int kWarps = kRegions ? ECC_THREADS / 32 : 1,
                         kRoom = kRegions ? 32 * kRows : 1;
    Ordinal rank[kWarps][kRoom];
    int group[kWarps][kRoom];
    signed char coefficient[kWarps][kRoom];
};

// Comparisons of pairs of samples, by the row of the upper one. The first sample of a pair is the first in
// C order.
struct PointPairs {
    // Low half: whether both are of one group; high half: whether the rank of the first is not less.
    unsigned bits;

    ECC_DEVICE void see(int row, const Point& first, const Point& second) {
        if (!kGroups || first.group == second.group) bits |= 1u << row;
        if (first.rank >= second.rank) bits |= 0x10000u << row;
    }
    // Returns whether the first sample owns the cells that it shares with the second; `second` the reverse.
    ECC_DEVICE unsigned first() const { return kCubes ? ~bits | bits >> 16 : bits & bits >> 16; }
    ECC_DEVICE unsigned second() const {
        return kCubes ? ~(bits & bits >> 16) : bits & ~(bits >> 16);
    }
    ECC_DEVICE PointPairs of_left() const { return {__shfl_up_sync(kWarp, bits, 1)}; }
};

// The samples of a lane in a slice, and those to the right of them.
struct Neighbourhood {
    Point own[kAround], right[kAround];
};

// Which of the nine samples around a sample, in one slice, share cells with it that it owns. Their index is
// 3 * row + column, and each word has a bit for each row of the lane.
struct Around {
    unsigned at[9];
};

// Compares samples within a slice. `last` marks those whose neighbour in the slice before is in the same
// region; `fresh` gets those whose neighbours to the right, above and in the slice before are in others.
ECC_DEVICE Around beside(const Neighbourhood& s, unsigned last, unsigned& fresh) {
    PointPairs across = {0}, down = {0}, falling = {0}, rising = {0};
#pragma unroll
    for (int r = 0; r <= kRows; ++r) {
        if (r > 0) across.see(r, s.own[r], s.right[r]);
        down.see(r, s.own[r], s.own[r + 1]);
        falling.see(r, s.own[r], s.right[r + 1]);
        rising.see(r, s.right[r], s.own[r + 1]);
    }
    fresh = ~(across.bits | down.bits << 1 | last);
    const PointPairs from_left = across.of_left(), from_above = falling.of_left(),
                     to_below = rising.of_left();
    return {from_above.second() << 1,
            down.second() << 1,
            rising.second() << 1,
            from_left.second(),
            kAll,
            across.first(),
            to_below.first(),
            down.first(),
            falling.first()};
}

// Compares samples of a slice with those of the next one. `after` gets what the samples of the first slice
// own in the second, and `before` what those of the second own in the first. `alike` gets the places where
// samples of both slices have the same group.
ECC_DEVICE void between(const Neighbourhood& s, const Neighbourhood& next, Around& after,
                        Around& before, unsigned& alike) {
    // Pairs within a row, from a row to the row below, and from the row below.
    PointPairs here[3] = {}, right[3] = {}, left[3] = {};
#pragma unroll
    for (int r = 0; r <= kRows; ++r) {
        if (r > 0) {
            here[0].see(r, s.own[r], next.own[r]);
            right[0].see(r, s.own[r], next.right[r]);
            left[0].see(r, s.right[r], next.own[r]);
        }
        here[1].see(r, s.own[r], next.own[r + 1]);
        right[1].see(r, s.own[r], next.right[r + 1]);
        left[1].see(r, s.right[r], next.own[r + 1]);
        here[2].see(r, s.own[r + 1], next.own[r]);
        right[2].see(r, s.own[r + 1], next.right[r]);
        left[2].see(r, s.right[r + 1], next.own[r]);
    }
    alike = here[0].bits;
    PointPairs from[3], to[3];  // `right` and `left` of the lane to the left.
#pragma unroll
    for (int k = 0; k < 3; ++k) from[k] = right[k].of_left(), to[k] = left[k].of_left();
    after = {to[2].first() << 1, here[2].first() << 1, right[2].first() << 1,
             to[0].first(),      here[0].first(),      right[0].first(),
             to[1].first(),      here[1].first(),      right[1].first()};
    before = {from[1].second() << 1, here[1].second() << 1, left[1].second() << 1,
              from[0].second(),      here[0].second(),      left[0].second(),
              from[2].second(),      here[2].second(),      left[2].second()};
}

// Returns the lowest digit of the sum of an odd number of bits, in each place. The sum of `carries` has
// the other digits.
template <int n>
ECC_DEVICE unsigned add(const unsigned (&bits)[n], unsigned (&carries)[n / 2]) {
    unsigned queue[n + n / 2];
#pragma unroll
    for (int i = 0; i < n; ++i) queue[i] = bits[i];
#pragma unroll
    for (int k = 0; k < n / 2; ++k) {
        const unsigned a = queue[3 * k], b = queue[3 * k + 1], c = queue[3 * k + 2];
        queue[n + k] = a ^ b ^ c;
        carries[k] = (a & b) | (c & (a | b));
    }
    return queue[n + n / 2 - 1];
}

__device__ constexpr int kSides[4] = {1, 3, 5, 7}, kCorners[4] = {0, 2, 6, 8};  // As in Around.
__device__ constexpr int kBeside[4][2] = {{0, 1}, {0, 2}, {3, 1}, {3, 2}};  // Sides of a corner.

// Returns the sums of the signs of the cells that samples own, with the signs of V; those of T are
// opposite. A cell that spans two slices has the opposite sign of its face in the sample's own slice. Bits
// of the 14 negative terms are inverted, which adds 14, and one more bit of weight two is set: the result
// is the sum plus 16. The last of `ones` is the cell that is the sample itself.
ECC_DEVICE Numbers4 coefficients(const Around& before, const Around& same, const Around& after) {
    unsigned ones[27], twos[15], fours[7], eights[3], rest[1];
    unsigned faces[3][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int side = kSides[i];
        faces[0][i] = same.at[side];
        faces[1][i] = same.at[side] & before.at[side] & before.at[4];
        faces[2][i] = same.at[side] & after.at[side] & after.at[4];
        ones[i] = ~faces[0][i], ones[4 + i] = faces[1][i], ones[8 + i] = faces[2][i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int corner = kCorners[i], a = kBeside[i][0], b = kBeside[i][1];
        ones[12 + i] = same.at[corner] & faces[0][a] & faces[0][b];
        ones[16 + i] = ~(same.at[corner] & before.at[corner] & faces[1][a] & faces[1][b]);
        ones[20 + i] = ~(same.at[corner] & after.at[corner] & faces[2][a] & faces[2][b]);
    }
    ones[24] = ~before.at[4], ones[25] = ~after.at[4], ones[26] = kAll;
    unsigned carries[13];
    Numbers4 digits;
    digits.b0 = add(ones, carries);
#pragma unroll
    for (int i = 0; i < 13; ++i) twos[i] = carries[i];
    twos[13] = kAll, twos[14] = 0;
    digits.b1 = add(twos, fours);
    digits.b2 = add(fours, eights);
    digits.b3 = add(eights, rest);
    return digits;
}

// Writes or counts the coefficients of a slice, and marks its labels.
struct Sink {
    const Samples& samples;
    const Bins& bins;
    const RegionCounts& counts;
    Queue& queue;
    const unsigned rows;  // Rows of the lane that are in the image.
    signed char* out;     // The first row in the next slice.

    ECC_DEVICE void finish(const Numbers4& digits, const Neighbourhood& slice) {
        if (kOutput == kCoefficients) {
#pragma unroll
            for (int r = 1; r <= kRows; ++r)
                if (rows >> r & 1)
                    out[r * samples.width] =
                        is_sample(slice.own[r]) ? coefficient_of(digits, r) : 0;
        } else {
            count(digits, slice);
        }
        out += (long long)samples.height * samples.width;
    }

    ECC_DEVICE void count(const Numbers4& digits, const Neighbourhood& slice) const {
        const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
        const unsigned some = (digits.b0 | digits.b1 | digits.b2 | digits.b3) & rows;
        int queued = 0;
#pragma unroll
        for (int r = 1; r <= kRows; ++r) {
            const bool has = some >> r & 1 && is_sample(slice.own[r]);
            const unsigned lanes = __ballot_sync(kWarp, has);
            if (has) {
                const int at = queued + __popc(lanes & ((1u << lane) - 1));
                queue.rank[warp][at] = slice.own[r].rank;
                queue.group[warp][at] = slice.own[r].group;
                queue.coefficient[warp][at] = coefficient_of(digits, r);
            }
            queued += __popc(lanes);
        }
        __syncwarp();
        for (int i = lane; i < queued; i += 32) {
            const Ordinal rank = kDown ? (Ordinal)~queue.rank[warp][i] : queue.rank[warp][i];
            const int bin = bin_of(key_of(rank, Key()), bins, bins.thresholds, bins.table);
            counts.add_to(queue.group[warp][i], bin, queue.coefficient[warp][i]);
        }
        __syncwarp();
    }

    ECC_DEVICE void mark(unsigned fresh, const Neighbourhood& slice) const {
        fresh &= rows;
        if (!kRegions || !fresh) return;
#pragma unroll
        for (int r = 1; r <= kRows; ++r)
            if (fresh >> r & 1 && slice.own[r].group) counts.mark(slice.own[r].group);
    }

    ECC_DEVICE static signed char coefficient_of(const Numbers4& digits, int row) {
        const int number = coefficient(digits.b0, digits.b1, digits.b2, digits.b3, 31 - row);
        return (signed char)(kCubes && !kFlat ? -number : number);
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    points(const Samples samples, const Points points, const Bins bins) {
    __shared__ int owners[kRegions ? RegionCounts::kMostRows : 1];
    __shared__ Queue queue;
    const RegionCounts counts(points, bins.count + 1, owners);
    if (kRegions) {
        counts.clear();
        __syncthreads();
    }
    const int lane = threadIdx.x & 31;
    const int across = (samples.width + kOwnColumns - 1) / kOwnColumns;
    const int down = (samples.height + kRows - 1) / kRows;
    const int chunks = (samples.depth + points.steps - 1) / points.steps;
    const long long unit = (long long)blockIdx.x * (ECC_THREADS / 32) + (threadIdx.x >> 5);
    const long long rest = quotient(unit, across), above = quotient(rest, down);
    const int top = (int)(rest - above * down) * kRows - 1;
    const int index = (int)quotient(above, chunks);
    const int begin = (int)(above - (long long)index * chunks) * points.steps;
    const int end = index < samples.images ? min(begin + points.steps, samples.depth) : begin - 2;
    const int x = (int)(unit - rest * across) * kOwnColumns + lane - 1;
    const bool inside = lane > 0 && lane < 31 && x < samples.width;
    const unsigned rows =
        inside ? kOwnRows & ~(kAll << 1 << min(samples.height - 1 - top, kRows)) : 0;
    const long long first =
        (((long long)index * samples.depth + begin) * samples.height + top) * samples.width + x;
    Sink sink = {samples, bins, counts, queue, rows, points.coefficients + first};
    Feeder feeder(samples, points, index, kFlat ? 0 : begin - 1, top, x);
    Feeder::Loaded coming[kAround] = {};
    unsigned nan = 0, fresh;
    const auto take = [&](int slice, Neighbourhood& to) {
#pragma unroll
        for (int r = 0; r < kAround; ++r) to.own[r] = feeder.point(slice, r, coming[r], nan);
        if (slice < end && !kFlat) feeder.load(slice + 1, coming);
#pragma unroll
        for (int r = 0; r < kAround; ++r) to.right[r] = from(to.own[r], (lane + 1) & 31);
    };
    if (kFlat && end > 0) {
        Neighbourhood now;
        feeder.load(0, coming);
        take(0, now);
        const Around same = beside(now, 0, fresh);
        sink.mark(fresh, now);
        sink.finish(coefficients(Around(), same, Around()), now);
    }
    if (!kFlat) {
        unsigned alike = 0;
        Neighbourhood last = {};
        Around before = {}, same = {};
        if (end > begin) feeder.load(begin - 1, coming);  // A warp without an image reads nothing.
        for (int slice = begin - 1; slice <= end; ++slice) {
            Neighbourhood now;
            take(slice, now);
            Around after, next;
            between(last, now, after, next, alike);
            if (slice > begin) sink.finish(coefficients(before, same, after), last);
            before = next;
            same = beside(now, alike, fresh);
            if (slice >= begin && slice < end) sink.mark(fresh, now);
            last = now;
        }
    }
    if (kNan == kNanReport) report(points.not_finite, kRegions ? nullptr : points.ticket, nan);
    if (!kRegions) return;
    feeder.report();
    __syncthreads();
    counts.finish();
    if (points.reply) counts.write_regions();
}
