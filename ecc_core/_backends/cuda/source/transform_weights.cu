// The transform of weights. The coefficient of a point is the sum of (-1)**dimension * weight over its
// cells. It is hardly ever zero, so all points count. Along a row, heights in a direction are sorted.
// A block keeps running sums of the coefficients of a few rows, and a warp finds the place of each
// level among the points of a row. Only where levels are closer together than points does each
// point look up its bin.
//
// Integer weights wrap as on the CPU. Sums of floats are kept in two integers, so that the order of
// addition does not matter: a coefficient is rounded to a multiple of 1 / first_scale, and the rest
// to a multiple of 1 / (first_scale * second_scale). The host chooses scales so that no sum overflows.
#include "transform.cuh"

typedef ECC_WEIGHT Weight;
constexpr int kParts = ECC_PARTS;     // Integers of a sum.
constexpr bool kShared = ECC_SHARED;  // Whether levels and bins are in shared memory.
constexpr int kWarps = ECC_THREADS / 32;
constexpr int kRows = kWarps;    // Rows that a block takes at a time.
constexpr int kColumns = 256;    // Columns of these rows.
constexpr int kDirections = 32;  // The most directions of a job.
constexpr int kLevels = 31;      // Levels that a warp takes at a time, besides the one before them.
constexpr int kOfLane = kColumns / 32;
// In steps between points; it is added so that a level at the height of a point includes this point.
constexpr double kSlack = 1e-6;

ECC_DEVICE Weight larger(Weight a, Weight b) { return a < b ? b : a; }  // There is no NaN.

// Weights (V) or negated weights (T), with one more point on both sides of rows, of columns and, if the
// image has them, of slices. Points that do not belong to the complex have the value `absent`, also negated
// for T. In V it is thus the maximum wherever points do not form a cell, and in T it never is a maximum of
// points of which some belong to the complex.
struct Weights {
    const Weight* padded;
    int rows, columns;  // Rows and columns with the padding.
    int cubes;
    int sign;       // The sign of the construction, 1 or -1.
    Weight absent;  // More than any weight.
    double first_scale, second_scale;
};

ECC_DEVICE Weight cell(const Weights& image, Weight weight) {
    return (weight < 0 ? -weight : weight) < image.absent ? weight : 0;
}

// Returns the part of a coefficient within a slice, of two points of the row and two of the row beside it.
ECC_DEVICE Weight in_slice(const Weights& image, Weight here, Weight far, Weight below,
                           Weight far_below) {
    const Weight x = larger(here, far), y = larger(here, below),
                 xy = larger(larger(x, below), far_below);
    return cell(image, here) - (cell(image, x) + cell(image, y)) + cell(image, xy);
}

// The four rows that contain the cells of a row of points.
struct WeightLines {
    const Weight *here, *below, *behind, *below_behind;
    Pair pair;  // The columns that a cell spans.
    bool deep;

    ECC_DEVICE WeightLines(const Weights& image, const Grid& grid, const Owner& owner, int z, int y)
        : pair(owner.x), deep(grid.z.present) {
        const int near_z = z + (deep ? owner.z.here + 1 : 0);
        const int near_y = y + 1 + (grid.y.present ? owner.y.here : 0);
        const long long down = (long long)(owner.y.far - owner.y.here) * image.columns;
        const long long back = (long long)(owner.z.far - owner.z.here) * image.rows * image.columns;
        here = image.padded + ((long long)near_z * image.rows + near_y) * image.columns + 1;
        below = here + down;
        behind = here + back;
        below_behind = behind + down;
    }

    // Adds weights in the order in which the CPU does, so that sums are rounded alike.
    ECC_DEVICE Weight coefficient(const Weights& image, int x) const {
        const int near = x + pair.here, side = x + pair.far;
        const Weight w = here[near], far = here[side], down = below[near], far_down = below[side];
        const Weight own = in_slice(image, w, far, down, far_down);
        if (!deep) return own;
        return own - in_slice(image, larger(w, behind[near]), larger(far, behind[side]),
                              larger(down, below_behind[near]),
                              larger(far_down, below_behind[side]));
    }
};

// A sum, or a coefficient, as integers.
struct Parts {
    Sum part[kParts];
};

ECC_DEVICE Parts operator+(const Parts& a, const Parts& b) {
    Parts sum;
#pragma unroll
    for (int i = 0; i < kParts; ++i) sum.part[i] = a.part[i] + b.part[i];
    return sum;
}

ECC_DEVICE Parts operator-(const Parts& a, const Parts& b) {
    Parts difference;
#pragma unroll
    for (int i = 0; i < kParts; ++i) difference.part[i] = a.part[i] - b.part[i];
    return difference;
}

ECC_DEVICE Parts split(const Weights& image, long long weight) {
    return {(Sum)(image.sign * weight)};
}

ECC_DEVICE Parts split(const Weights& image, double weight) {
    const double scaled = image.sign * weight * image.first_scale;
    const long long first = __double2ll_rn(scaled);
    const long long second = __double2ll_rn((scaled - (double)first) * image.second_scale);
    Parts parts;
    parts.part[0] = (Sum)first;
    parts.part[kParts - 1] = (Sum)second;
    return parts;
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    pad(const Weight* weights, Weight* padded, int slices, int rows, int columns, int deep,
        int cubes, Weight absent) {
    const long long total = (long long)(slices + 2 * deep) * (rows + 2) * (columns + 2);
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < total;
         at += stride) {
        const long long line = quotient(at, columns + 2), slice = quotient(line, rows + 2);
        const int x = (int)(at - line * (columns + 2)) - 1,
                  y = (int)(line - slice * (rows + 2)) - 1, z = (int)slice - deep;
        Weight weight = 0;
        if (x >= 0 && x < columns && y >= 0 && y < rows && z >= 0 && z < slices)
            weight = weights[((long long)z * rows + y) * columns + x];
        if (weight == 0) weight = absent;
        padded[at] = cubes ? -weight : weight;
    }
}

// The running sums of a row: entry i is the sum of the first i + 1 points in order of height. The entries
// of a lane are next to each other, and lanes read different banks.
struct RunningSums {
    Sum part[kParts][kColumns + kColumns / kOfLane];

    ECC_DEVICE static int place(int i) { return i + i / kOfLane; }

    ECC_DEVICE Parts at(int i) const {
        Parts sum;
#pragma unroll
        for (int p = 0; p < kParts; ++p) sum.part[p] = part[p][place(i)];
        return sum;
    }

    ECC_DEVICE void set(int i, const Parts& sum) {
#pragma unroll
        for (int p = 0; p < kParts; ++p) part[p][place(i)] = sum.part[p];
    }
};

// The columns of a unit of work in order of height: forwards or backwards from `first`.
struct Span {
    int first, step, count;

    ECC_DEVICE int column(int i) const { return first + step * i; }
};

// Writes the running sums of a row. Called by a warp.
ECC_DEVICE void fill(const Weights& image, const Grid& grid, const Owner& owner, int z, int y,
                     const Span& span, RunningSums& row) {
    const int lane = threadIdx.x & 31;
    const WeightLines lines(image, grid, owner, z, y);
    const bool inside = z < grid.z.points;
#pragma unroll 2
    for (int i = lane; i < kColumns; i += 32) {
        Weight weight = 0;
        if (inside && i < span.count) weight = lines.coefficient(image, span.column(i));
        row.set(i, split(image, weight));
    }
    __syncwarp();
    Parts sum = {};
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
        sum = sum + row.at(lane * kOfLane + i);
        row.set(lane * kOfLane + i, sum);
    }
    Parts before = {};
#pragma unroll
    for (int p = 0; p < kParts; ++p)
        before.part[p] = (Sum)running_sum((long long)sum.part[p], lane) - sum.part[p];
#pragma unroll
    for (int i = 0; i < kOfLane; ++i)
        row.set(lane * kOfLane + i, row.at(lane * kOfLane + i) + before);
}

// The bins of one direction. Those of the second part lie `apart` after those of the first.
struct PartBins {
    Sum* first;
    long long apart;

    ECC_DEVICE void add(int bin, const Parts& sum) const {
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            Sum* own = first + i * apart + bin;
            if (!kShared) {
                if (sum.part[i]) atomicAdd(own, sum.part[i]);
                continue;
            }
            // Shared memory adds 32 bits at a time; the carry may be added after sums of other threads.
            const unsigned low = (unsigned)sum.part[i];
            const unsigned before = low ? atomicAdd((unsigned*)own, low) : 0;
            const unsigned high = (unsigned)(sum.part[i] >> 32) + (before + low < low);
            if (high) atomicAdd((unsigned*)own + 1, high);
        }
    }
};

// A direction in a unit of work: what the rows contribute to heights, and the levels from `begin` to `end`
// between the lowest and the highest point of all rows.
struct Run {
    double bases[kRows];
    double inverse;  // Number of points in a unit of height.
    int begin, end;
    bool dense;  // Whether levels are closer together than points.

    // Returns the number of tasks for warps, each of which is 31 levels or a row.
    ECC_DEVICE int tasks() const { return dense ? kRows : (end - begin + kLevels) / kLevels; }
};

// Counts the points of rows in a direction, in which heights do not decrease along a row.
struct RowCounts {
    const Sampling& sampling;
    const double* levels;
    const Axis& axis;
    const RunningSums* rows;
    const Run& run;
    Span span;
    double slope;

    ECC_DEVICE double beyond(int i) const {
        return __dmul_rn(slope, axis.position(span.column(i)));
    }

    ECC_DEVICE Parts running(int row, int count) const {
        return count ? rows[row].at(count - 1) : Parts{};
    }

    // Returns the sum of the points at or below a level in all rows. Their number in each row is guessed;
    // `missed` is set if a guess is wrong.
    ECC_DEVICE Parts guess(double level, bool& missed) const {
        const double lowest = beyond(0);
        Parts sum = {};
#pragma unroll 4
        for (int row = 0; row < kRows; ++row) {
            const double base = run.bases[row];
            const double place = (level - __dadd_rn(base, lowest)) * run.inverse;
            const int near = __double2int_rd(place + kSlack);
            const int count = max(-1, min(span.count - 1, near)) + 1;
            const double last = __dadd_rn(base, beyond(max(0, count - 1))),
                         next = __dadd_rn(base, beyond(min(span.count - 1, count)));
            missed |= (count > 0 && last > level) || (count < span.count && next <= level);
            sum = sum + running(row, count);
        }
        return sum;
    }

    ECC_DEVICE Parts search(double level) const {
        Parts sum = {};
        for (int row = 0; row < kRows; ++row) {
            const auto reached = [&](int i) {
                return __dadd_rn(run.bases[row], beyond(i)) <= level;
            };
            sum = sum + running(row, first_failing(span.count, reached));
        }
        return sum;
    }

    // Called by a warp, as is add_points.
    ECC_DEVICE void add_levels(int task, const PartBins& bins) const {
        const int lane = threadIdx.x & 31, bin = run.begin + kLevels * task + lane - 1;
        Parts sum = {};
        if (bin >= run.begin) {
            const double level = levels[min(bin, sampling.count - 1)];
            bool missed = false;
            sum = guess(level, missed);
            if (missed) sum = search(level);
        }
        Parts before;
#pragma unroll
        for (int i = 0; i < kParts; ++i)
            before.part[i] = __shfl_sync(kWarp, sum.part[i], (lane + 31) & 31);
        if (lane && bin <= run.end && bin < sampling.count) bins.add(bin, sum - before);
    }

    ECC_DEVICE void add_points(int row, const PartBins& bins) const {
        for (int i = threadIdx.x & 31; i < span.count; i += 32) {
            const double height = __dadd_rn(run.bases[row], beyond(i));
            const int bin = place(height, sampling, levels);
            if (bin < sampling.count) bins.add(bin, running(row, i + 1) - running(row, i));
        }
    }
};

// Prepares a run. Rows beyond the image are empty, so their heights do not matter. Called by a warp.
ECC_DEVICE void prepare(const Sampling& sampling, const double* levels, const Grid& grid,
                        const Span& span, const Vector& u, int z, int y, Run& run) {
    const int lane = threadIdx.x & 31, down = y + lane;
    const bool inside = lane < kRows && z + down / grid.y.points < grid.z.points;
    const double height = row_height(u, grid.z.position(inside ? z + down / grid.y.points : z),
                                     grid.y.position(inside ? down % grid.y.points : y));
    if (lane < kRows) run.bases[lane] = height;
    double low = height, high = height;
#pragma unroll
    for (int step = 16; step; step /= 2) {
        low = fmin(low, __shfl_xor_sync(kWarp, low, step));
        high = fmax(high, __shfl_xor_sync(kWarp, high, step));
    }
    if (lane) return;
    const double first = __dmul_rn(u.x, grid.x.position(span.column(0))),
                 last = __dmul_rn(u.x, grid.x.position(span.column(span.count - 1)));
    run.inverse = 1.0 / (fabs(u.x) * grid.x.step);
    run.begin = place(__dadd_rn(low, first), sampling, levels);
    run.end = place(__dadd_rn(high, last), sampling, levels);
    run.dense = run.end - run.begin > 4 * kColumns;
}

// Each job is shared by `blocks` blocks.
extern "C" __global__ void __launch_bounds__(ECC_THREADS, 3)
    count_weights(const Weights image, const Grid grid, const Sampling sampling, Sum* values,
                  int blocks) {
    extern __shared__ uint4 memory[];
    __shared__ RunningSums rows[kRows];
    __shared__ Run runs[kDirections];
    const int warp = threadIdx.x >> 5, index = blockIdx.x / blocks;
    const Job job = sampling.jobs[index];
    const Owner owner(job.orthant, image.cubes);
    const int directions = job.last - job.first;
    const double* levels = sampling.levels;
    double* const own_levels = (double*)memory;
    Sum* const shared = (Sum*)(own_levels + sampling.count);
    if (kShared) {
        for (int i = threadIdx.x; i < sampling.count; i += blockDim.x) own_levels[i] = levels[i];
        for (int i = threadIdx.x; i < kParts * directions * sampling.count; i += blockDim.x)
            shared[i] = 0;
        levels = own_levels;
        __syncthreads();
    }
    const long long part = (long long)sampling.directions_count * sampling.count;
    const long long lines = (long long)grid.z.points * grid.y.points;
    const int segments = (grid.x.points + kColumns - 1) / kColumns;
    const long long units = (lines + kRows - 1) / kRows * segments;
    for (long long unit = blockIdx.x - index * blocks; unit < units; unit += blocks) {
        const long long group = unit / segments;
        const int left = (int)(unit - group * segments) * kColumns;
        const int count = min(kColumns, grid.x.points - left);
        const bool backwards = job.orthant & 1;
        const Span span = {backwards ? left + count - 1 : left, backwards ? -1 : 1, count};
        const int z = (int)(group * kRows / grid.y.points);
        const int y = (int)(group * kRows - (long long)z * grid.y.points);
        const int own_y = y + warp;
        fill(image, grid, owner, z + own_y / grid.y.points, own_y % grid.y.points, span,
             rows[warp]);
        for (int d = warp; d < directions; d += kWarps)
            prepare(sampling, levels, grid, span, sampling.directions[job.first + d], z, y,
                    runs[d]);
        __syncthreads();
        int task = warp;
        for (int d = 0; d < directions; ++d) {
            const Run& run = runs[d];
            const int tasks = run.tasks();
            const RowCounts walk = {
                sampling, levels, grid.x, rows, run, span, sampling.directions[job.first + d].x};
            const PartBins bins =
                kShared
                    ? PartBins{shared + kParts * d * sampling.count, sampling.count}
                    : PartBins{values + (long long)sampling.rows[job.first + d] * sampling.count,
                               part};
            for (; task < tasks; task += kWarps) {
                if (run.dense)
                    walk.add_points(task, bins);
                else
                    walk.add_levels(task, bins);
            }
            task -= tasks;
        }
        __syncthreads();
    }
    if (!kShared) return;
    for (int i = threadIdx.x; i < kParts * directions * sampling.count; i += blockDim.x) {
        if (!shared[i]) continue;
        const int own = i / sampling.count;
        atomicAdd(values + own % kParts * part +
                      (long long)sampling.rows[job.first + own / kParts] * sampling.count +
                      (i - own * sampling.count),
                  shared[i]);
    }
}
