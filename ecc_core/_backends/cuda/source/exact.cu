// Curves at every level at which they change: the samples whose coefficient is not zero, sorted by
// value, and the sums of these coefficients.
//
// Values are numbered by 32-bit integers in increasing order, called places. The first four bits of a
// place select a bucket; an event consists of the other 28 bits and the coefficient plus 8. Events are
// thus 32-bit integers, which are sorted within each bucket.
#include "common.cuh"

constexpr bool kFloat = ECC_FLOAT;
constexpr int kThreads = ECC_THREADS, kWarps = kThreads / 32;
constexpr int kFew = 64;  // Below so many events of a warp, each lane writes its own one by one.
constexpr int kEach = 16, kTile = kThreads * kEach, kBuckets = 16;

// Returns the place of a float or an integer of 32 bits; `flip` makes signed integers unsigned.
ECC_DEVICE unsigned place_of(unsigned bits, unsigned flip) {
    if (!kFloat) return bits ^ flip;
    if (bits == 0x80000000u) bits = 0;  // -0
    return bits >> 31 ? ~bits : bits ^ 0x80000000u;
}
ECC_DEVICE unsigned value_at(unsigned place, unsigned flip) {
    if (!kFloat) return place ^ flip;
    return place >> 31 ? place ^ 0x80000000u : ~place;
}

// As in coefficients.py; zero at the launch of find_events.
struct Found {
    unsigned long long buckets[kBuckets];  // The number of events in each bucket.
    unsigned long long events;             // The number of all events.
    long long flag;                        // A copy of `flag`, so that the host reads both at once.
};

// Returns the number of bytes that are not zero.
ECC_DEVICE int events_of(unsigned word) {
    return __popc((((word & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | word) & 0x80808080u);
}

// Lists the samples whose coefficient is not zero, in any order: their places and their coefficients.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    find_events(const signed char* coefficients, const unsigned* values, long long size,
                unsigned flip, int vector, const long long* flag, Found* found, unsigned* places,
                signed char* amounts) {
    constexpr int kWords = kEach / 4;
    __shared__ unsigned own[kBuckets];
    __shared__ int warps[kWarps];
    __shared__ unsigned long long start;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (threadIdx.x < kBuckets) own[threadIdx.x] = 0;
    if (flag && threadIdx.x == 0 && blockIdx.x == 0) found->flag = *flag;
    __syncthreads();
    const long long first = (long long)blockIdx.x * kTile + 4 * threadIdx.x;
    unsigned word[kWords], value[kEach];
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        const long long at = first + k * (4 * kThreads);
        word[k] = 0;
        if (at + 4 <= size) word[k] = *(const unsigned*)(coefficients + at);
        for (int i = 0; at + 4 > size && at + i < size; ++i)
            word[k] |= (unsigned)(unsigned char)coefficients[at + i] << (8 * i);
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        const long long at = first + k * (4 * kThreads);
        uint4 four = {0, 0, 0, 0};
        if (word[k] && vector && at + 4 <= size) {
            four = *(const uint4*)(values + at);
        } else if (word[k]) {
            four.x = values[at];
            if (at + 1 < size) four.y = values[at + 1];
            if (at + 2 < size) four.z = values[at + 2];
            if (at + 3 < size) four.w = values[at + 3];
        }
        value[4 * k] = four.x, value[4 * k + 1] = four.y;
        value[4 * k + 2] = four.z, value[4 * k + 3] = four.w;
    }
    int count = 0;  // The events of the thread, then those of the warp.
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        count += events_of(word[k]);
        if (!word[k]) continue;  // Nearly all words of smooth images are 0.
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            value[4 * k + i] = place_of(value[4 * k + i], flip);
            if (word[k] >> (8 * i) & 0xFFu) atomicAdd(own + (value[4 * k + i] >> 28), 1u);
        }
    }
    const int end = running_sum(count, lane), first_event = end - count;
    count = __shfl_sync(kWarp, end, 31);
    if (lane == 0) warps[warp] = count;
    __syncthreads();
    int before = 0, all = 0;
    for (int i = 0; i < kWarps; ++i) {
        before += i < warp ? warps[i] : 0;
        all += warps[i];
    }
    if (!all) return;
    if (threadIdx.x == 0) start = atomicAdd(&found->events, (unsigned long long)all);
    if (threadIdx.x < kBuckets && own[threadIdx.x])
        atomicAdd(found->buckets + threadIdx.x, (unsigned long long)own[threadIdx.x]);
    __syncthreads();
    unsigned long long to = start + before;
    if (count < kFew) {
        to += first_event;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            if (!word[k]) continue;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const unsigned amount = word[k] >> (8 * i) & 0xFFu;
                if (!amount) continue;
                places[to] = value[4 * k + i];
                amounts[to++] = (signed char)amount;
            }
        }
        return;
    }
    // The lanes of a warp write next to each other.
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const unsigned amount = word[k / 4] >> (8 * (k % 4)) & 0xFFu;
        const unsigned events = __ballot_sync(kWarp, amount != 0);
        if (amount) {
            const unsigned long long at = to + __popc(events & ((1u << lane) - 1));
            places[at] = value[k];
            amounts[at] = (signed char)amount;
        }
        to += __popc(events);
    }
}

// As in coefficients.py.
struct Buckets {
    long long starts[kBuckets + 1];  // Where each bucket begins in the list of events; its end.
};

// Writes each event to its bucket; `taken` are zero at launch.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sort_into_buckets(const unsigned* places, const signed char* amounts, const Buckets buckets,
                      unsigned long long* taken, unsigned* events) {
    __shared__ int warps[kWarps][kBuckets];  // Events of each warp; then of the warps before it.
    __shared__ long long first[kBuckets];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long size = buckets.starts[kBuckets];
    unsigned place[kEach];
    int amount[kEach], slot[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const long long at = (long long)blockIdx.x * kTile + k * kThreads + threadIdx.x;
        place[k] = at < size ? places[at] : 0u;
        amount[k] = at < size ? amounts[at] : 0;
    }
    int counted = 0;  // Events of the warp so far, of the bucket of this lane's number.
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        unsigned same = __ballot_sync(kWarp, amount[k] != 0), lanes = same;
#pragma unroll
        for (int bit = 28; bit < 32; ++bit) {
            const unsigned set = __ballot_sync(kWarp, place[k] >> bit & 1u);
            same &= place[k] >> bit & 1u ? set : ~set;
            lanes &= lane >> (bit - 28) & 1 ? set : ~set;
        }
        slot[k] = __shfl_sync(kWarp, counted, place[k] >> 28) + __popc(same & ((1u << lane) - 1));
        counted += __popc(lanes);
    }
    if (lane < kBuckets) warps[warp][lane] = counted;
    __syncthreads();
    if (threadIdx.x < kBuckets) {
        int all = 0;
        for (int i = 0; i < kWarps; ++i) {
            const int here = warps[i][threadIdx.x];
            warps[i][threadIdx.x] = all;
            all += here;
        }
        if (all)
            first[threadIdx.x] = buckets.starts[threadIdx.x] +
                                 (long long)atomicAdd(taken + threadIdx.x, (unsigned long long)all);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const unsigned bucket = place[k] >> 28;
        if (amount[k])
            events[first[bucket] + warps[warp][bucket] + slot[k]] =
                place[k] << 4 | (unsigned)(amount[k] + 8);
    }
}

// Sums over consecutive events. A run is a group of events of equal values, and ends with the last of them.
template <class Sum>
struct Piece {
    Sum sum;   // All coefficients.
    Sum head;  // Those up to the first end of a run.
    Sum tail;  // Those after the last end of a run, or `sum` without one.
    Sum kept;  // Number of levels at which the sum changes, without that of the first end.
    int ends;  // Whether a run ends.
};

template <class Sum, class Other>
ECC_DEVICE Piece<Sum> follow(const Piece<Sum>& a, const Piece<Other>& b) {
    Piece<Sum> c;
    c.sum = a.sum + b.sum;
    c.head = a.ends ? a.head : a.tail + b.head;
    c.tail = b.ends ? b.tail : a.tail + b.tail;
    c.kept = a.kept + b.kept + (a.ends && b.ends && a.tail + b.head != 0);
    c.ends = a.ends | b.ends;
    return c;
}

template <class Sum>
ECC_DEVICE Piece<Sum> before_lane(const Piece<Sum>& a, int step) {
    return {__shfl_up_sync(kWarp, a.sum, step), __shfl_up_sync(kWarp, a.head, step),
            __shfl_up_sync(kWarp, a.tail, step), __shfl_up_sync(kWarp, a.kept, step),
            __shfl_up_sync(kWarp, a.ends, step)};
}

// Returns the events that precede a thread in its block; `whole` becomes those of the whole block. A piece
// without events is all zeros.
template <class Sum>
__device__ Piece<Sum> before_thread(const Piece<Sum>& own, Piece<Sum>& whole) {
    __shared__ Piece<Sum> warps[kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    Piece<Sum> up = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const Piece<Sum> other = before_lane(up, step);
        if (lane >= step) up = follow(other, up);
    }
    if (lane == 31) warps[warp] = up;
    const Piece<Sum> left = before_lane(up, 1);
    __syncthreads();
    Piece<Sum> before = {};
    whole = Piece<Sum>();
    for (int i = 0; i < kWarps; ++i) {
        if (i == warp) before = whole;
        whole = follow(whole, warps[i]);
    }
    return lane ? follow(before, left) : before;
}

// The events of a thread, and which of them end a run.
struct Own {
    unsigned place[kEach];
    int amount[kEach];
    unsigned ends;  // Bit k tells whether event k ends a run.

    ECC_DEVICE Own(const unsigned* events, const Buckets& buckets) : ends(0) {
        const long long first = (long long)blockIdx.x * kTile + threadIdx.x * kEach,
                        count = buckets.starts[kBuckets];
        unsigned event[kEach + 1];
        if (first + kEach < count) {
#pragma unroll
            for (int k = 0; k < kEach; k += 4) {
                const uint4 four = *(const uint4*)(events + first + k);
                event[k] = four.x, event[k + 1] = four.y;
                event[k + 2] = four.z, event[k + 3] = four.w;
            }
            event[kEach] = events[first + kEach];
        } else {
#pragma unroll
            for (int k = 0; k <= kEach; ++k) event[k] = first + k < count ? events[first + k] : 8u;
        }
        unsigned bucket = 0;
        while (bucket < kBuckets - 1 && first >= buckets.starts[bucket + 1]) ++bucket;
        if (first + kEach < buckets.starts[bucket + 1]) {
#pragma unroll
            for (int k = 0; k < kEach; ++k) {
                place[k] = bucket << 28 | event[k] >> 4;
                ends |= (unsigned)(event[k] >> 4 != event[k + 1] >> 4) << k;
            }
        } else {
#pragma unroll
            for (int k = 0; k < kEach; ++k) {
                const long long next = first + k + 1;
                place[k] = bucket << 28 | event[k] >> 4;
                bool last = event[k] >> 4 != event[k + 1] >> 4;
                while (bucket < kBuckets - 1 && next >= buckets.starts[bucket + 1])
                    ++bucket, last = true;
                ends |= (unsigned)(next <= count && (last || next == count)) << k;
            }
        }
#pragma unroll
        for (int k = 0; k < kEach; ++k) amount[k] = (int)(event[k] & 15u) - 8;
    }

    ECC_DEVICE Piece<int> piece() const {
        Piece<int> piece = {};
        bool first = true;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            piece.sum += amount[k], piece.tail += amount[k];
            if (!(ends >> k & 1u)) continue;
            if (first)
                piece.head = piece.tail;
            else
                piece.kept += piece.tail != 0;
            first = false, piece.tail = 0;
        }
        piece.ends = ends != 0;
        return piece;
    }
};

// Writes the sums of each tile of events.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_tiles(const unsigned* events, const Buckets buckets, Piece<int>* tiles) {
    Piece<int> whole;
    before_thread(Own(events, buckets).piece(), whole);
    if (threadIdx.x == 0) tiles[blockIdx.x] = whole;
}

// Sums over all events before a tile.
struct Before {
    long long sum, tail;  // Of all coefficients; of those of the run that has not ended yet.
    long long levels;     // The number of levels at which the sum changes.

    ECC_DEVICE explicit Before(const Piece<long long>& a)
        : sum(a.sum), tail(a.tail), levels(a.kept + (a.ends && a.head != 0)) {}
};

// Writes the sums before each tile, and in the last place those of all events. The kernel has one block, of
// which each thread takes some consecutive tiles.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    add_tiles(const Piece<int>* tiles, int count, Before* before) {
    const int each = (count + kThreads - 1) / kThreads;
    const int first = min((int)threadIdx.x * each, count), end = min(first + each, count);
    Piece<long long> own = {}, whole;
#pragma unroll 4
    for (int i = first; i < end; ++i) own = follow(own, tiles[i]);
    own = before_thread(own, whole);
#pragma unroll 4
    for (int i = first; i < end; ++i) {
        before[i] = Before(own);
        own = follow(own, tiles[i]);
    }
    if (threadIdx.x == 0) before[count] = Before(whole);
}

// Writes the levels of each tile at which sums change, and the sums there.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_levels(const unsigned* events, const Buckets buckets, const Before* tiles, unsigned flip,
                unsigned* levels, long long* values, int superlevel) {
    __shared__ unsigned found[kTile];
    __shared__ int sums[kTile];  // Coefficients of the tile, up to each level.
    __shared__ long long first_run;
    if (threadIdx.x == 0) first_run = 0;
    const Own own(events, buckets);
    Piece<int> whole;
    const Piece<int> before = before_thread(own.piece(), whole);
    const Before tile = tiles[blockIdx.x], next = tiles[blockIdx.x + 1];
    const bool changes = before.ends && tile.tail + before.head != 0;  // At the first end of a run.
    int at = before.kept + changes, sum = before.sum, run = before.tail;
    bool first = !before.ends;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        sum += own.amount[k], run += own.amount[k];
        if (!(own.ends >> k & 1u)) continue;
        const long long earlier = first ? tile.tail : 0;  // The run's part in tiles before.
        if (earlier + run != 0) {
            found[at] = value_at(own.place[k], flip);
            sums[at] = superlevel ? sum - run : sum;  // For superlevel sets, before the run.
            if (first) first_run = earlier;
            ++at;
        }
        run = 0, first = false;
    }
    __syncthreads();
    const int count = (int)(next.levels - tile.levels);
    const long long total = tiles[gridDim.x].sum;
    for (int i = threadIdx.x; i < count; i += kThreads) {
        const long long up_to = tile.sum + sums[i];
        levels[tile.levels + i] = found[i];
        values[tile.levels + i] = superlevel ? total - (up_to - (i ? 0 : first_run)) : up_to;
    }
}
