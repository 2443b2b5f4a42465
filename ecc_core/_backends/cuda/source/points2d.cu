// The coefficient of every sample of 2-D images (points.cuh). Each lane of a warp has a column, of which
// it keeps the last row, and gets the columns beside it from its neighbours. The first and the last lane
// only give theirs.
#include "points.cuh"

constexpr unsigned kWarp = 0xFFFFFFFFu;
constexpr int kOwnColumns = 30;
constexpr int kAhead = 4;  // rows on their way

__device__ __forceinline__ Point from(const Point& own, int lane) {
    return {__shfl_sync(kWarp, own.rank, lane), kGroups ? __shfl_sync(kWarp, own.group, lane) : 0};
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    points(const Samples samples, const Points points, const Bins bins) {
    __shared__ signed char table[512];
    __shared__ int owners[kRegions ? Counts::kMostRows : 1];
    const Counts counts(points, bins.count + 1, owners);
    if (kRegions) counts.clear();
    fill(table);
    __syncthreads();
    const int lane = threadIdx.x & 31;
    const int across = (samples.width + kOwnColumns - 1) / kOwnColumns;
    const int chunks = (samples.height + points.steps - 1) / points.steps;
    const long long unit = (long long)blockIdx.x * (ECC_THREADS / 32) + (threadIdx.x >> 5);
    const long long rest = quotient(unit, across);
    const int index = (int)quotient(rest, chunks);
    const int begin = (int)(rest - (long long)index * chunks) * points.steps;
    const int end = index < samples.images ? min(begin + points.steps, samples.height) : begin - 2;
    const int x = (int)(unit - rest * across) * kOwnColumns + lane - 1;
    const bool inside = lane > 0 && lane < 31 && x < samples.width;
    signed char* out =
        points.coefficients + ((long long)index * samples.height + begin) * samples.width + x;
    Feeder feeder(samples, points, index, 0, x, true, begin - 1);
    Feeder::Loaded coming[kAhead] = {};
    Point last[3] = {};             // samples of the last row,
    unsigned before = 0, same = 0;  // and what the one in the middle owns up to that row
    unsigned nan = 0;
    const auto step = [&](int row, Feeder::Loaded& now) {
        const Point own = feeder.point(row, now, nan);
        feeder.load(row + kAhead, now);
        const Point p[3] = {from(own, (lane + 31) & 31), own, from(own, (lane + 1) & 31)};
        const Point middle = last[1];
        unsigned after = 0, set = before | same;
#pragma unroll
        for (int j = 0; j < 3; ++j) after |= (unsigned)owns<true>(middle, p[j]) << j;
        before = 0;
#pragma unroll
        for (int j = 0; j < 3; ++j) before |= (unsigned)owns<false>(own, last[j]) << j;
        same = (unsigned)owns<false>(own, p[0]) << 3 | 1u << 4 | (unsigned)owns<true>(own, p[2]) << 5;
        if (kRegions && inside && row >= begin && row < end) counts.mark(own, p[0], middle);
#pragma unroll
        for (int j = 0; j < 3; ++j) last[j] = p[j];
        if (row <= begin || !inside) return;
        const int c = is_sample(middle) ? table[set | after << 6] : 0;
        if (kOutput == kCoefficients) {
            *out = (signed char)c;
            out += samples.width;
        } else if (c) {
            count(counts, bins, middle, c);
        }
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) feeder.load(begin - 1 + k, coming[k]);
    const auto go_through = [&] {
        for (int row = begin - 1;; row += kAhead) {
#pragma unroll
            for (int k = 0; k < kAhead; ++k) {
                if (row + k > end) return;
                step(row + k, coming[k]);
            }
        }
    };
    go_through();
    if (kNan == kNanReport && nan) *points.not_finite = 1;
    if (!kRegions) return;
    __syncthreads();
    counts.finish();
}
