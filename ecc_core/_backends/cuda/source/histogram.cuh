// Counts samples by bin, with their coefficients, in a block, adds its counts to those of the image, and
// writes the curve as their running sum.
#pragma once
#include "bins.cuh"

// Returns the word of a bin. If many blocks add their counts, only four bins share a cache line, since
// additions to a line wait for each other.
ECC_DEVICE int place_of(int bin, bool accumulate) {
    return accumulate ? (bin & ~3) * 4 + (bin & 3) : bin;
}
ECC_DEVICE int places(int bins, bool accumulate) {
    return accumulate ? ((bins + 3) & ~3) * 4 : bins;
}

struct Result {
    long long* values;            // (images, thresholds); written by the last block of each image
    unsigned long long* counts;   // (images, places), unused where one block does a whole image
    unsigned long long* tickets;  // (images,)
    long long* not_finite;        // (images,), kNanReport: whether a NaN may have been seen
    int blocks;                   // Blocks of an image.
    int copies;                   // The number of copies of every bin, a power of two.
    int sign;                     // 1 or -1, by the construction
    int accumulate;               // Whether the last block of an image writes its curve.
};
// Counts and tickets are zero at launch. With `accumulate` they are zero again at the end. Without it the
// kernel only counts, and `not_finite` is zero at launch, too.

// Every addition to `counts` includes 2^kArrivalBit if the last block writes the curve. The sum of all
// words then tells whether all additions have arrived, so that no block has to wait until its own have. The
// sizes of sums of coefficients stay below half of this number.
constexpr int kArrivalBit = 40;

// Whether several codes may stand for one bin.
constexpr bool kManyToOne = kBins == kTable || kBins == kCells || kBins == kPieces;

// Returns the number of codes.
ECC_DEVICE int codes_of(const Bins& bins) {
    if (kBins == kTable) return 256;
    return (int)(kBins == kPieces ? bins.dense_last : bins.last + bins.dense_last) + 1;
}

struct Histogram {
    int* counts;                 // They are in shared memory.
    unsigned long long* global;  // This image's bins.
    int bins, copies, lane_copy;
    int codes;         // The number of codes, by which samples are counted in units of 1/16.
    const int* table;  // The bin of each code (kTable, kCells and kPieces).

    ECC_DEVICE void clear() const {
        for (int i = threadIdx.x; i < codes * copies + bins; i += blockDim.x) counts[i] = 0;
    }

    ECC_DEVICE int bin_of_code(int code) const {
        if (kManyToOne) return table[code];
        return kSuper ? min(code, bins - 1) : max(bins - 1 - code, 0);
    }

    // Returns the sum of all copies of a code in units of 1. For batches, the copies are then zero again.
    ECC_DEVICE int total(int index) const {
        const int first = index * copies;
        int sum = 0;
#pragma unroll 4
        for (int k = 0; k < copies; ++k) {
            // Lanes begin with different copies, so that they read different banks.
            int& count = counts[first + ((k + (first >> 5)) & (copies - 1))];
            sum += count;
            if (kBatch) count = 0;
        }
        return sum >> 4;
    }

    // Adds up the counts of codes in bins, which lie behind them in memory. Code 0 is left out if it never
    // enters.
    ECC_DEVICE void fold() const {
        const int first = kManyToOne ? 0 : 1;
        for (int i = first + threadIdx.x; i < codes; i += blockDim.x)
            atomicAdd(counts + codes * copies + bin_of_code(i), total(i));
    }

    ECC_DEVICE int folded(int bin) const {
        int& count = counts[codes * copies + bin];
        const int sum = count;
        if (kBatch) count = 0;
        return sum;
    }

    // Whether a block adds up its counts of codes by bin before it adds them to the image's: if many
    // codes share a bin, the additions of all blocks to that bin would wait for each other.
    ECC_DEVICE bool folds() const { return kManyToOne && 2 * bins <= codes; }

    ECC_DEVICE void flush(bool accumulate) const {
        const long long arrival = accumulate ? 1ll << kArrivalBit : 0;
        if (folds()) {
            fold();
            __syncthreads();
        }
        for (int i = threadIdx.x; i < arrivals(); i += blockDim.x) {
            const int bin = folds() ? i : bin_of_code(i);
            atomicAdd(global + place_of(bin, accumulate),
                      (unsigned long long)(arrival + (folds() ? folded(i) : total(i))));
        }
    }

    // Returns how many additions a block makes to the image's counts.
    ECC_DEVICE int arrivals() const { return folds() ? bins : codes; }
};

// Addresses in the shared memory of a block, behind what the kernel itself needs: the lines of pieces, the
// thresholds of codes and the counts. The table is in global memory, except with kTable.
struct SharedLayout {
    const Key* thresholds;
    const int* table;
    int* counts;
    const void* lines;
};

// Copies entries to shared memory, each of them `copies` times in a row. Returns the address behind them.
template <int copies, class Entry>
ECC_DEVICE void* repeat_entries(void* to, const Entry* from, int count) {
    Entry* const entries = (Entry*)to;
    for (int i = threadIdx.x; i < count * copies; i += blockDim.x) entries[i] = from[i / copies];
    return entries + count * copies;
}

ECC_DEVICE SharedLayout lay_out(void* memory, const Bins& bins) {
    if (kBins == kTable) {
        const int* const table = (const int*)repeat_entries<1>(memory, bins.table, 256);
        return {nullptr, (const int*)memory, (int*)table, nullptr};
    }
    const int count = codes_of(bins);
    const Key* const keys = (const Key*)bins.table;
    const int* const codes = (const int*)(keys + count);
    void* to = memory;
    if (kBins == kPieces)
        to = repeat_entries<kLineCopies>(to, (const uint2*)(codes + count), (int)bins.last + 1);
    void* const end = kLooksUp ? repeat_entries<kTableCopies>(to, keys, count) : to;
    return {(const Key*)to, codes, (int*)end, memory};
}

// The counts of a block in shared memory, which begins with `warp_bytes` for each warp.
struct BlockCounts {
    Histogram histogram;
    SharedLayout layout;

    // Called by all threads.
    ECC_DEVICE BlockCounts(void* memory, int warp_bytes, const Bins& bins, const Result& result,
                           int index) {
        const int lane = threadIdx.x & 31;
        layout = lay_out((char*)memory + (blockDim.x >> 5) * warp_bytes, bins);
        const int count = bins.count + 1;
        unsigned long long* const global =
            result.counts + (long long)index * places(count, result.accumulate);
        histogram = {layout.counts,  global,      count, result.copies, lane & (result.copies - 1),
                     codes_of(bins), layout.table};
        histogram.clear();
        __syncthreads();
    }
};

ECC_DEVICE int without_arrivals(int sum) { return sum; }  // The sum of a single block has none.
ECC_DEVICE long long without_arrivals(long long sum) {
    return sum << (64 - kArrivalBit) >> (64 - kArrivalBit);
}

// Writes the curve from the first `count` bins, in the order in which their samples enter, and returns
// their sum. The curve does not depend on the last bin. A thread takes `each` bins at a time.
template <class Sum, int each, class Load>
__device__ Sum write_curve(const Load& load, int bins, int count, int sign, long long* values) {
    __shared__ Sum sums[32];  // One sum of each warp.
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    Sum before = 0;
    for (int begin = 0; begin < count; begin += each * blockDim.x) {
        const int first = begin + each * threadIdx.x;
        Sum kept[each], own = 0;
#pragma unroll
        for (int i = 0; i < each; ++i) {
            kept[i] = first + i < count ? load(kSuper ? bins - 1 - first - i : first + i) : 0;
            own += kept[i];
        }
        const Sum inclusive = running_sum(own, lane);
        __syncthreads();  // All threads have read the sums of the bins before.
        if (lane == 31) sums[warp] = inclusive;
        __syncthreads();
        const Sum others = running_sum(lane < warps ? sums[lane] : 0, lane);
        const Sum left = __shfl_sync(0xFFFFFFFFu, others, max(warp - 1, 0));
        Sum running = before + inclusive - own + (warp > 0 ? left : 0);
#pragma unroll
        for (int i = 0; i < each; ++i) {
            running += kept[i];
            if (first + i < bins - 1)
                values[kSuper ? bins - 2 - first - i : first + i] =
                    sign * without_arrivals(running);
        }
        before += __shfl_sync(0xFFFFFFFFu, others, 31);
    }
    return before;
}

// Writes the curve of an image after all of its blocks have begun to add their counts.
ECC_DEVICE void gather(const Histogram& histogram, const Result& result, long long* values) {
    const int arrivals = result.blocks * histogram.arrivals();
    // Counts are read again each time.
    const volatile unsigned long long* const counts = histogram.global;
    const auto load = [=](int bin) { return (long long)counts[place_of(bin, true)]; };
    long long sum;
    do {
        sum = write_curve<long long, 1>(load, histogram.bins, histogram.bins, result.sign, values);
    } while ((sum + (1ll << (kArrivalBit - 1))) >> kArrivalBit != arrivals);
    for (int bin = threadIdx.x; bin < histogram.bins; bin += blockDim.x)
        histogram.global[place_of(bin, true)] = 0;
}

// Called by every thread of every block, once its events are counted.
ECC_DEVICE void finish(const Histogram& histogram, const Result& result, int image,
                       bool not_finite) {
    __shared__ unsigned long long finished;  // Blocks before this one; above, those that saw a NaN.
    long long* const values = result.values + (long long)image * (histogram.bins - 1);
    bool any = false;
    if (kNan == kNanReport)
        any = __syncthreads_or(not_finite);
    else
        __syncthreads();
    if (result.blocks == 1) {
        histogram.fold();
        __syncthreads();
        const auto load = [&](int bin) { return histogram.folded(bin); };
        write_curve<int, kBatch ? 2 : 1>(load, histogram.bins, histogram.bins - 1, result.sign,
                                         values);
        if (kNan == kNanReport && threadIdx.x == 0) result.not_finite[image] = any;
        return;
    }
    histogram.flush(result.accumulate);
    if (!result.accumulate) {
        if (any && threadIdx.x == 0) result.not_finite[image] = 1;
        return;
    }
    if (threadIdx.x == 0) {
        const unsigned long long saw = any ? 1ull << 32 : 0;
        finished = saw + atomicAdd(result.tickets + image, saw + 1);
    }
    __syncthreads();
    if ((unsigned)finished != (unsigned)result.blocks - 1) return;
    gather(histogram, result, values);
    if (threadIdx.x == 0) {
        result.tickets[image] = 0;
        if (kNan == kNanReport) result.not_finite[image] = finished >> 32 != 0;
    }
}
