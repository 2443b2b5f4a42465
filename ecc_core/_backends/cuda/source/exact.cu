// Curves at every level: the samples whose coefficient is not zero, and the sums of these in the order
// of their values.
//
// A value has a place among all of its type, 32 bits. Its first four bits are its bucket; an event is
// the rest of them above the coefficient plus 8. So a sort of 32-bit integers does for each bucket.
#include "device.cuh"
#include "running_sum.cuh"

constexpr bool kFloat = ECC_FLOAT;
constexpr int kThreads = ECC_THREADS, kEach = 16, kTile = kThreads * kEach, kBuckets = 16;
constexpr unsigned kAll = 0xFFFFFFFFu;

// 32 bits of a float, or of an integer whose order `flip` makes that of unsigned ones.
__device__ __forceinline__ unsigned place_of(unsigned bits, unsigned flip) {
    if (!kFloat) return bits ^ flip;
    if (bits == 0x80000000u) bits = 0;  // -0
    return bits >> 31 ? ~bits : bits ^ 0x80000000u;
}
__device__ __forceinline__ unsigned value_at(unsigned place, unsigned flip) {
    if (!kFloat) return place ^ flip;
    return place >> 31 ? place ^ 0x80000000u : ~place;
}

// As in exact.py.
struct Buckets {
    long long starts[kBuckets + 1];  // of each bucket in the list of events, and its end
};

// Events, at most as many as there is room for; without `write` only how many there are. `counts` are
// zero at launch.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_events(const signed char* coefficients, const unsigned* values, long long size,
                unsigned flip, unsigned long long* counts, const Buckets buckets,
                unsigned* events, int write) {
    __shared__ unsigned own[kBuckets];
    __shared__ long long first[kBuckets];
    if (threadIdx.x < kBuckets) own[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x & 31;
    unsigned place[kEach], slot[kEach];
    int amount[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const long long at = (long long)blockIdx.x * kTile + k * kThreads + threadIdx.x;
        amount[k] = at < size ? coefficients[at] : 0;
        place[k] = amount[k] ? place_of(values[at], flip) : 0u;
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const unsigned bucket = amount[k] ? place[k] >> 28 : kBuckets;
        const unsigned same = __match_any_sync(kAll, bucket);
        const int leader = __ffs(same) - 1;
        unsigned at = 0;
        if (lane == leader && amount[k]) at = atomicAdd(own + bucket, (unsigned)__popc(same));
        slot[k] = __shfl_sync(kAll, at, leader) + __popc(same & ((1u << lane) - 1));
    }
    __syncthreads();
    if (threadIdx.x < kBuckets && own[threadIdx.x]) {
        const unsigned long long added = atomicAdd(counts + threadIdx.x,
                                                   (unsigned long long)own[threadIdx.x]);
        first[threadIdx.x] = buckets.starts[threadIdx.x] + (long long)added;
    }
    if (!write) return;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        if (!amount[k]) continue;
        const unsigned bucket = place[k] >> 28;
        const long long to = first[bucket] + slot[k];
        // Values may have changed since they were counted.
        if (to < buckets.starts[bucket + 1]) events[to] = place[k] << 4 | (unsigned)(amount[k] + 8);
    }
}

// Events in a row: their sum, that of those behind the last end of a run of equal values, and whether
// there is an end.
struct Piece {
    int sum, tail, ends;
};

__device__ __forceinline__ Piece follow(Piece a, Piece b) {
    return {a.sum + b.sum, b.ends ? b.tail : a.tail + b.tail, a.ends | b.ends};
}

// A thread's events, and whether each is the last one of its value.
struct Own {
    unsigned place[kEach];
    int amount[kEach];
    unsigned ends;  // bit k

    __device__ __forceinline__ Own(const unsigned* events, const Buckets& buckets) : ends(0) {
        const long long first = (long long)blockIdx.x * kTile + threadIdx.x * kEach,
                        count = buckets.starts[kBuckets];
        int bucket = 0;
        unsigned before = 0;
#pragma unroll
        for (int k = 0; k <= kEach; ++k) {
            const long long at = first + k;
            while (bucket < kBuckets - 1 && at >= buckets.starts[bucket + 1]) ++bucket;
            const unsigned event = at < count ? events[at] : 0u;
            const unsigned here = (unsigned)bucket << 28 | event >> 4;
            if (k > 0 && at <= count && (at == count || here != before)) ends |= 1u << (k - 1);
            if (k < kEach) {
                place[k] = before = here;
                amount[k] = at < count ? (int)(event & 15u) - 8 : 0;
            }
        }
    }

    __device__ __forceinline__ Piece piece() const {
        Piece piece = {0, 0, ends != 0};
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            piece.sum += amount[k];
            piece.tail = ends >> k & 1u ? 0 : piece.tail + amount[k];
        }
        return piece;
    }
};

// What comes before a thread in its block, and the whole block.
__device__ Piece before_thread(Piece own, Piece& whole) {
    __shared__ Piece warps[kThreads / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    Piece up = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const Piece other = {__shfl_up_sync(kAll, up.sum, step), __shfl_up_sync(kAll, up.tail, step),
                             __shfl_up_sync(kAll, up.ends, step)};
        if (lane >= step) up = follow(other, up);
    }
    if (lane == 31) warps[warp] = up;
    const Piece left = {__shfl_up_sync(kAll, up.sum, 1), __shfl_up_sync(kAll, up.tail, 1),
                        __shfl_up_sync(kAll, up.ends, 1)};
    __syncthreads();
    Piece before = {};
    whole = Piece();
    for (int i = 0; i < kThreads / 32; ++i) {
        whole = follow(whole, warps[i]);
        if (i + 1 == warp) before = whole;
    }
    return lane ? follow(before, left) : before;
}

// Of each tile its sum, its tail and whether a run ends in it.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_tiles(const unsigned* events, const Buckets buckets, long long* sums, int* tails,
              int* ends) {
    Piece whole;
    before_thread(Own(events, buckets).piece(), whole);
    if (threadIdx.x) return;
    sums[blockIdx.x] = whole.sum, tails[blockIdx.x] = whole.tail, ends[blockIdx.x] = whole.ends;
}

// The sum of a run before this tile, in every lane.
__device__ int carried(const int* tails, const int* ends) {
    const int lane = threadIdx.x & 31;
    int sum = 0;
    for (long long tile = (long long)blockIdx.x - 1 - lane;; tile -= 32) {
        const unsigned found = __ballot_sync(kAll, tile < 0 || ends[tile]);
        const int last = found ? __ffs(found) - 1 : 31;
        sum += lane <= last && tile >= 0 ? tails[tile] : 0;
        if (found) break;
    }
    return __shfl_sync(kAll, running_sum(sum, lane), 31);
}

// The levels of each tile at which sums change, and the sums there; without `write` only how many.
// `totals` are the sums of the tiles up to each, `places` the numbers of levels.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_levels(const unsigned* events, const Buckets buckets, const long long* totals,
                const int* tails, const int* ends, long long* places, unsigned flip,
                unsigned* levels, long long* values, int superlevel, int write) {
    __shared__ int warps[kThreads / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const Own own(events, buckets);
    Piece whole;
    const Piece before = before_thread(own.piece(), whole);
    const int carry = carried(tails, ends);
    const int start = before.tail + (before.ends ? 0 : carry);
    unsigned kept = 0;
    int run = start;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        run += own.amount[k];
        if (own.ends >> k & 1u) {
            if (run) kept |= 1u << k;
            run = 0;
        }
    }
    const int found = __popc(kept), inclusive = running_sum(found, lane);
    if (lane == 31) warps[warp] = inclusive;
    __syncthreads();
    int at = inclusive - found, all = 0;
    for (int i = 0; i < kThreads / 32; ++i) {
        if (i < warp) at += warps[i];
        all += warps[i];
    }
    if (!write) {
        if (threadIdx.x == 0) places[blockIdx.x] = all;
        return;
    }
    long long to = places[blockIdx.x] - all + at;
    long long sum = totals[blockIdx.x] - whole.sum + before.sum;
    const long long total = totals[gridDim.x - 1];
    run = start;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        sum += own.amount[k], run += own.amount[k];
        if (kept >> k & 1u) {
            levels[to] = value_at(own.place[k], flip);
            values[to++] = superlevel ? total - (sum - run) : sum;
        }
        if (own.ends >> k & 1u) run = 0;
    }
}
