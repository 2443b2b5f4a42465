// Adds the coefficients of samples to the bins of their values, of any number.
#include "bins.cuh"
#include "samples.cuh"
#include "short_counts.cuh"

struct Counts {
    const signed char* coefficients;  // of the samples, in C order
    unsigned long long* bins;         // (images, thresholds + 1), zero at launch
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    count(const Samples samples, const Counts counts, const Bins bins) {
    extern __shared__ uint4 memory[];
    const ShortCounts sums(memory, counts.bins, bins.count);  // kCounts: there is one image
    const SharedTable shared = share_table(memory + (kCounts ? bins.count / 8 + 1 : 0), bins);
    __syncthreads();
    visit_samples<true>(
        samples, samples.depth, samples.height, samples.width,
        [&](int index, int z, int y, const SampleRow& row, const FourSamples& four) {
            const long long line = ((long long)index * samples.depth + z) * samples.height + y;
            const signed char* const own = counts.coefficients + line * samples.width;
            unsigned long long* const to = counts.bins + (long long)index * (bins.count + 1);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int x = four.x + i * four.step;
                const int amount = x < samples.width ? own[x] : 0;
                if (!amount) continue;
                const Key key = row.key(four.sample[i], x);
                const int bin = bin_of(key, bins, shared.thresholds, shared.table);
                if (kCounts)
                    sums.add(bin, amount);
                else
                    atomicAdd(to + bin, (unsigned long long)(long long)amount);
            }
        });
    sums.flush();
}
