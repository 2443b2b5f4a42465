// The transform of a mask. A thread finds the critical points of 32 points at once, on planes of bits
// along the last axis (ecc_core/_orthants.py says what they are). Its warp collects them and counts
// 32 at a time in the directions of one orthant.
#include "transform.cuh"

constexpr bool kShared = ECC_SHARED;  // levels and bins in shared memory
constexpr int kWarps = ECC_THREADS / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;

// Planes of the pixels, or of their complement if `outside` is all ones.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    pack(const unsigned char* pixels, unsigned* bits, long long lines, int columns, int words,
         unsigned outside) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= lines * words) return;
    const long long line = divide(at, words);
    const int first = 32 * (int)(at - line * words), count = min(32, columns - first);
    const unsigned char* source = pixels + line * columns + first;
    unsigned plane = 0;
    if (count == 32 && (unsigned long long)source % 16 == 0) {
        const uint4 low = *(const uint4*)source, high = *(const uint4*)(source + 16);
        const unsigned four[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            // 0 or 1 in each byte; the product has them in order from bit 24 on.
            const unsigned any = four[i] | (four[i] >> 4), some = any | (any >> 2);
            const unsigned ones = (some | (some >> 1)) & 0x01010101u;
            plane |= ((ones * 0x01020408u) >> 24 & 0xFu) << (4 * i);
        }
    } else {
        for (int i = 0; i < count; ++i) plane |= (unsigned)(source[i] != 0) << i;
    }
    bits[at] = plane ^ outside;
}

struct Mask {
    const unsigned* bits;
    int slices, rows, words;
    int cubes;
    unsigned outside;
    int sign;  // of the construction, 1 or -1
};

// Whether 32 points are set, and whether they and their neighbours along the last axis both are.
struct Pairs {
    unsigned here, both;
};

__device__ __forceinline__ Pairs load_pairs(const Mask& mask, int z, int y, int word, Pair pair) {
    if (z < 0 || z >= mask.slices || y < 0 || y >= mask.rows) {
        return {mask.outside, mask.outside};
    }
    const unsigned* line = mask.bits + ((long long)z * mask.rows + y) * mask.words;
    const bool back = min(pair.here, pair.far) < 0;
    const int beside = back ? word - 1 : word + 1;
    const unsigned own = word < mask.words ? line[word] : mask.outside;
    const unsigned next = beside >= 0 && beside < mask.words ? line[beside] : mask.outside;
    const unsigned moved = back ? (own << 1) | (next >> 31) : (own >> 1) | (next << 31);
    return {pair.here ? moved : own, own & moved};
}

// Coefficients of 32 points, from -2 to 1.
struct Coefficients {
    unsigned nonzero, negative, twice;

    __device__ __forceinline__ Coefficients(Pairs here, Pairs row, Pairs depth, Pairs row_depth) {
        const unsigned x = here.both, y = here.here & row.here, z = here.here & depth.here;
        const unsigned xy = x & row.both, xz = x & depth.both;
        const unsigned yz = y & depth.here & row_depth.here;
        const unsigned cube = xy & depth.both & row_depth.both;
        const unsigned alone = here.here & ~(x | y | z), hollow = xy & xz & yz & ~cube;
        const unsigned positive = alone | hollow;
        const unsigned odd = here.here ^ x ^ y ^ z ^ xy ^ xz ^ yz ^ cube;
        twice = x & y & z & ~(xy | xz | yz);
        negative = (odd & ~positive) | twice;
        nonzero = positive | negative;
    }
};

__device__ __forceinline__ Coefficients find(const Mask& mask, const Grid& grid, int orthant, int z,
                                             int y, int word) {
    const Pair slices(orthant & 4, mask.cubes), rows(orthant & 2, mask.cubes),
        columns(orthant & 1, mask.cubes);
    const Pairs none = {0, 0};
    const bool deep = grid.z.present, wide = grid.y.present;
    const int near_z = deep ? z + slices.here : 0, far_z = z + slices.far;
    const int near_y = wide ? y + rows.here : 0, far_y = y + rows.far;
    return Coefficients(load_pairs(mask, near_z, near_y, word, columns),
                        wide ? load_pairs(mask, near_z, far_y, word, columns) : none,
                        deep ? load_pairs(mask, far_z, near_y, word, columns) : none,
                        deep && wide ? load_pairs(mask, far_z, far_y, word, columns) : none);
}

struct WeighedPoint {
    int z, y, x, weight;
};

// A block's levels, directions and bins.
struct MaskCounter {
    const double* levels;
    const Vector* directions;
    const int* rows;
    int* bins;
    Sum* values;
    int directions_count;

    __device__ MaskCounter(const Sampling& sampling, const Job& job, Sum* values, double* memory)
        : levels(sampling.levels),
          directions(sampling.directions + job.first),
          rows(sampling.rows + job.first),
          bins(nullptr),
          values(values),
          directions_count(job.last - job.first) {
        if (!kShared) return;
        for (int i = threadIdx.x; i < sampling.count; i += blockDim.x)
            memory[i] = sampling.levels[i];
        Vector* vectors = (Vector*)(memory + sampling.count);
        for (int i = threadIdx.x; i < directions_count; i += blockDim.x) vectors[i] = directions[i];
        bins = (int*)(vectors + directions_count);
        for (int i = threadIdx.x; i < directions_count * sampling.count; i += blockDim.x)
            bins[i] = 0;
        levels = memory;
        directions = vectors;
        __syncthreads();
    }

    __device__ __forceinline__ void add(const Sampling& sampling, const Grid& grid,
                                        const WeighedPoint& point) const {
        const double z = grid.z.position(point.z), y = grid.y.position(point.y),
                     x = grid.x.position(point.x);
        for (int d = 0; d < directions_count; ++d) {
            const Vector u = directions[d];
            const int bin = place(point_height(u, row_height(u, z, y), x), sampling, levels);
            if (bin == sampling.count) continue;
            if (kShared)
                atomicAdd(bins + d * sampling.count + bin, point.weight);
            else
                atomicAdd(values + (long long)rows[d] * sampling.count + bin,
                          (Sum)(long long)point.weight);
        }
    }

    __device__ void flush(const Sampling& sampling) const {
        if (!kShared) return;
        __syncthreads();
        for (int i = threadIdx.x; i < directions_count * sampling.count; i += blockDim.x) {
            const int d = i / sampling.count;
            if (bins[i])
                atomicAdd(values + (long long)rows[d] * sampling.count + (i - d * sampling.count),
                          (Sum)(long long)bins[i]);
        }
    }
};

// `blocks` blocks do each job; the host sees to it that a block's bins do not overflow.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    count_mask(const Mask mask, const Grid grid, const Sampling sampling, Sum* values, int blocks) {
    extern __shared__ double memory[];
    __shared__ WeighedPoint waiting[kWarps][64];
    const int lane = threadIdx.x & 31, index = blockIdx.x / blocks;
    WeighedPoint* queue = waiting[threadIdx.x >> 5];
    const Job job = sampling.jobs[index];
    const MaskCounter counter(sampling, job, values, memory);
    const int words = (grid.x.points + 31) / 32;
    const long long total = (long long)grid.z.points * grid.y.points * words;
    const long long stride = (long long)blocks * blockDim.x;
    int count = 0;
    for (long long base = (long long)(blockIdx.x - index * blocks) * blockDim.x; base < total;
         base += stride) {
        const long long at = base + threadIdx.x, line = divide(at, words);
        const int word = (int)(at - line * words);
        const int z = (int)divide(line, grid.y.points), y = (int)(line - (long long)z * grid.y.points);
        Coefficients found = find(mask, grid, job.orthant, z, y, word);
        if (at >= total) found.nonzero = 0;
        for (;;) {
            const unsigned some = __ballot_sync(kAll, found.nonzero != 0);
            if (!some) break;
            if (found.nonzero) {
                const int bit = __ffs((int)found.nonzero) - 1;
                found.nonzero &= found.nonzero - 1;
                const int weight =
                    1 - 2 * (int)(found.negative >> bit & 1) - (int)(found.twice >> bit & 1);
                queue[count + __popc(some & ((1u << lane) - 1))] = {z, y, 32 * word + bit,
                                                                    mask.sign * weight};
            }
            count += __popc(some);
            __syncwarp();
            if (count >= 32) {
                count -= 32;
                counter.add(sampling, grid, queue[count + lane]);
                __syncwarp();
            }
        }
    }
    if (lane < count) counter.add(sampling, grid, queue[lane]);
    counter.flush(sampling);
}
