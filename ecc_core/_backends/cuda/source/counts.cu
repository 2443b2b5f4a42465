// Adds the coefficients of samples to the bins of their values, of which there may be any number.
#include "bins.cuh"
#include "samples.cuh"
#include "short_counts.cuh"

// Whether images are 1-D. Then coefficients follow from the samples beside each one; else they are given.
constexpr bool kLine = ECC_LINE;

struct Counts {
    const signed char* coefficients;  // Those of the samples, in C order.
    unsigned long long* bins;         // (images, thresholds + 1), zero at launch
    long long* not_finite;            // kLine, kNanReport: whether a NaN was seen.
    unsigned long long* ticket;       // kLine, kNanReport: as `report` takes it, or null.
};

// The samples along a line.
struct LineOfSamples {
    const SampleRow& row;

    // Returns whether there is a sample that enters, and its key.
    ECC_DEVICE bool has(int x, Key& key) const {
        if (x < 0 || x >= row.samples.width || !row.shown(x)) return false;
        key = row.key(row.load(x), x);
        return kNan == kNanNone || !is_nan(key);
    }
    // Returns 1 minus the number of pairs that belong to a sample. A pair belongs to its sample that enters
    // last, or if both enter together to the second one.
    ECC_DEVICE int coefficient(int x, Key own) const {
        Key other;
        const bool before = has(x - 1, other) && !passes(own, other);
        return 1 - (int)before - (int)(has(x + 1, other) && passes(other, own));
    }
    ECC_DEVICE static bool passes(Key first, Key second) {
        return kSuper ? is_less(second, first) : is_less(first, second);
    }
};

// With kCounts, each image has blocks of its own, in a row of the grid.
extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    count(const Samples given, const Counts counts, const Bins bins) {
    extern __shared__ uint4 memory[];
    Samples samples = given;
    if (kCounts) {
        samples.images = 1;
        samples.data += blockIdx.y * samples.strides[0];
        samples.mask += blockIdx.y * samples.mask_strides[0];
    }
    unsigned long long* const first = counts.bins + blockIdx.y * (bins.count + 1ll);
    const ShortCounts sums(memory, first, bins.count);
    const SharedTable shared = share_table(memory + (kCounts ? bins.count / 8 + 1 : 0), bins);
    __syncthreads();
    bool any_nan = false;
    visit_samples<true>(
        samples, samples.depth, samples.height, samples.width,
        [&](int index, int z, int y, const SampleRow& row, const FourSamples& four) {
            const long long line = ((long long)index * samples.depth + z) * samples.height + y;
            const signed char* const own = counts.coefficients + line * samples.width;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int x = four.x + i * four.step;
                if (x >= samples.width || (kLine && !four.shown[i])) continue;
                const Key key = row.key(four.sample[i], x);
                const bool nan = kLine && kNan != kNanNone && is_nan(key);
                any_nan |= nan;
                const int amount = nan     ? 0
                                   : kLine ? LineOfSamples{row}.coefficient(x, key)
                                           : own[x];
                if (!amount) continue;
                const int bin = bin_of(key, bins, shared.thresholds, shared.table);
                if (kCounts)
                    sums.add(bin, amount);
                else
                    atomicAdd(first + index * (bins.count + 1ll) + bin,
                              (unsigned long long)(long long)amount);
            }
        });
    sums.flush();
    if (kLine && kNan == kNanReport) report(counts.not_finite, counts.ticket, any_nan);
}
