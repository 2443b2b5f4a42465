// The signed histogram of a block, its addition to the image's, and the curve as its running sum.
#pragma once
#include "bins.cuh"
#include "scan.cuh"

struct Result {
    long long* values;  // (images, thresholds); written by the last block of each image
    unsigned long long*
        counts;  // (images, bins), zero at launch; unused where one block does a whole image
    unsigned int* tickets;  // (images,), zero at launch: blocks that have finished
    long long* not_finite;  // (images,), kNanReport: whether a NaN may have been seen
    int blocks;             // blocks an image
    int copies;             // kShared: copies of every bin, a power of two
    int sign;               // of the construction, 1 or -1
    int accumulate;         // whether the last block writes `values`
};

// Half of a packed counter may hold up to this much between two looks at it: four events of every
// thread of a block (28 x 384) still fit in 16 bits.
constexpr int kPackedLimit = 16384;

// Pairs of samples are counted by their code, in units of 1/16 (pair_events.cuh).

struct Histogram {
    int* counts;                 // shared memory
    unsigned long long* global;  // this image's bins
    int bins, copies, lane_copy;
    int codes;         // kPairs: their number
    const int* table;  // kPairs and kTable: the bin of each code

    __device__ __forceinline__ void spill(int bin, int amount) const {
        if (amount) atomicAdd(global + bin, (unsigned long long)(long long)amount);
    }

    // Two neighbouring bins share a word: low + 65536 * high.
    __device__ __forceinline__ void spill_word(int word, int packed) const {
        const int low = (short)packed;
        spill(2 * word, low);
        spill(2 * word + 1, (packed - low) >> 16);
    }

    __device__ __forceinline__ void add(int bin, int amount) const {
        if (kStore == kShared) {
            atomicAdd(counts + bin * copies + lane_copy, amount);
        } else if (kStore == kPacked) {
            const int step = (int)((unsigned)amount << (16 * (bin & 1)));
            const int now = atomicAdd(counts + (bin >> 1), step) + step;
            const int low = (short)now, high = (now - low) >> 16;
            if (abs(bin & 1 ? high : low) > kPackedLimit)
                spill_word(bin >> 1, atomicExch(counts + (bin >> 1), 0));
        } else {
            spill(bin, amount);
        }
    }

    // kPacked: four events whose atomics do not wait for each other.
    __device__ __forceinline__ void add(const int (&bin)[4], const int (&amount)[4]) const {
        int now[4], most = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int step = (int)((unsigned)amount[i] << (16 * (bin[i] & 1)));
            now[i] = atomicAdd(counts + (bin[i] >> 1), step) + step;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            now[i] = abs(bin[i] & 1 ? now[i] >> 16 : (int)(short)now[i]);
            most = max(most, now[i]);
        }
        if (most > kPackedLimit) {
            for (int i = 0; i < 4; ++i)
                if (now[i] > kPackedLimit)
                    spill_word(bin[i] >> 1, atomicExch(counts + (bin[i] >> 1), 0));
        }
    }

    __device__ __forceinline__ int words() const {
        if (kPairs) return codes * copies + bins;
        return kStore == kShared ? bins * copies : kStore == kPacked ? (bins + 1) >> 1 : 0;
    }

    __device__ __forceinline__ void clear() const {
        for (int i = threadIdx.x; i < words(); i += blockDim.x) counts[i] = 0;
    }

    __device__ __forceinline__ int bin_of_code(int code) const {
        if (kBins == kTable) return table[code];
        return kSuper ? min(code, bins - 1) : max(bins - 1 - code, 0);
    }

    // The copies of each bin into its first one; those of codes into bins behind them.
    __device__ __forceinline__ void fold() const {
        for (int i = threadIdx.x; i < (kPairs ? codes : bins); i += blockDim.x) {
            int total = 0;
            for (int k = 0; k < copies; ++k) total += counts[i * copies + ((k + i) & (copies - 1))];
            if (kPairs)
                atomicAdd(counts + codes * copies + bin_of_code(i), total >> 4);
            else
                counts[i * copies] = total;
        }
    }

    __device__ __forceinline__ int folded(int bin) const {
        return counts[kPairs ? codes * copies + bin : bin * copies];
    }

    __device__ __forceinline__ void flush() const {
        if (kStore == kShared) {
            for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) spill(bin, folded(bin));
        } else if (kStore == kPacked) {
            for (int i = threadIdx.x; i < words(); i += blockDim.x) spill_word(i, counts[i]);
        }
    }
};

// Shared memory of a block: what the kernel asks for, the thresholds or the table, the counts.
struct SharedLayout {
    const Key* thresholds;
    const int* table;
    int* counts;
};

__device__ __forceinline__ SharedLayout lay_out(void* memory, const Bins& bins) {
    SharedLayout layout = {bins.thresholds, bins.table, (int*)memory};
    if (kBins == kTable) {
        int* table = (int*)memory;
        for (int i = threadIdx.x; i < 256; i += blockDim.x) table[i] = bins.table[i];
        layout.table = table;
        layout.counts = table + 256;
    } else if (kSharedTable) {
        Key* thresholds = (Key*)memory;
        for (int i = threadIdx.x; i < bins.count; i += blockDim.x)
            thresholds[i] = bins.thresholds[i];
        layout.thresholds = thresholds;
        layout.counts = (int*)(thresholds + bins.count);
    }
    return layout;
}

constexpr int kKept = 4;  // bins of a thread that stay in registers between the two passes

template <class Load>
__device__ void write_curve(const Load& load, int bins, const Result& result, long long* values) {
    __shared__ long long partial[33];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int each = (bins + blockDim.x - 1) / blockDim.x;
    const int begin = min(bins, (int)threadIdx.x * each), end = min(bins, begin + each);
    long long own = 0, kept[kKept];
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
        kept[i] = begin + i < end ? load(begin + i) : 0;
        own += kept[i];
    }
    for (int bin = begin + kKept; bin < end; ++bin) own += load(bin);
    const long long inclusive = running_sum(own, lane);
    if (lane == 31) partial[warp] = inclusive;
    __syncthreads();
    if (warp == 0) {
        const long long sum = running_sum(lane < warps ? partial[lane] : 0, lane);
        __syncwarp();
        partial[lane + 1] = sum;
        if (lane == 0) partial[0] = 0;
    }
    __syncthreads();
    const long long total = partial[warps];
    long long running = partial[warp] + inclusive - own;
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
        running += kept[i];
        if (begin + i < min(end, bins - 1))
            values[begin + i] = result.sign * (kSuper ? total - running : running);
    }
    for (int bin = begin + kKept; bin < end; ++bin) {
        running += load(bin);
        if (bin < bins - 1) values[bin] = result.sign * (kSuper ? total - running : running);
    }
}

struct FromShared {
    const Histogram& histogram;
    __device__ __forceinline__ long long operator()(int bin) const { return histogram.folded(bin); }
};

struct FromGlobal {
    const unsigned long long* counts;
    __device__ __forceinline__ long long operator()(int bin) const {
        return (long long)__ldcg(counts + bin);
    }
};

// Called by every thread of every block, once its events are counted. One block an image writes its
// flag; of several, those that have something to tell set it.
__device__ __forceinline__ void finish(const Histogram& histogram, const Result& result, int image,
                                       bool not_finite) {
    __shared__ bool last;
    long long* values = result.values + (long long)image * (histogram.bins - 1);
    if (kNan == kNanReport) {
        const bool any = __syncthreads_or(not_finite);
        if (threadIdx.x == 0 && (any || result.blocks == 1)) result.not_finite[image] = any;
    } else {
        __syncthreads();
    }
    if (kStore == kShared) {
        histogram.fold();
        __syncthreads();
        if (result.blocks == 1) {
            const FromShared load = {histogram};
            write_curve(load, histogram.bins, result, values);
            return;
        }
    }
    histogram.flush();
    if (!result.accumulate) return;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(result.tickets + image, 1u) == (unsigned)result.blocks - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    const FromGlobal load = {histogram.global};
    write_curve(load, histogram.bins, result, values);
}
