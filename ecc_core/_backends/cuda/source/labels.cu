// Which labels there are, and the numbers of their regions.
#include "running_sum.cuh"

typedef ECC_LABEL Label;
typedef ECC_COUNT Count;
constexpr bool kSuper = ECC_SUPER;
constexpr int kBeyond = 1 << 30;  // as in points.py

// Marks the labels up to `most`, and at the place behind them whether there are larger or negative
// ones.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_labels(const Label* labels, long long size, unsigned long long most, int* present) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= size) return;
    const unsigned long long label = (unsigned long long)*(const volatile Label*)(labels + at);
    if (label > most)
        present[most + 1] = kBeyond;
    else if (label && !present[label])  // most are marked by then: reading is cheaper
        present[label] = 1;
}

// The labels that are marked, and of all others the number 0. `ranks` are running sums of `present`.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_labels(const int* present, int* ranks, long long size, Label* ids) {
    const long long label = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (label >= size) return;
    if (present[label])
        ids[ranks[label] - 1] = (Label)label;
    else
        ranks[label] = 0;
}

// Curves from the bins of each region, a warp a region.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    sum_bins(const Count* counts, long long regions, int bins, long long* values) {
    const int lane = threadIdx.x & 31;
    const long long region = (long long)blockIdx.x * (ECC_THREADS / 32) + (threadIdx.x >> 5);
    if (region >= regions) return;
    counts += region * bins, values += region * (bins - 1);
    long long before = 0;
    for (int first = 0; first < bins - 1; first += 32) {
        const int k = first + lane;
        const bool inside = k < bins - 1;
        const long long own = inside ? (long long)counts[kSuper ? bins - 1 - k : k] : 0;
        const long long sum = running_sum(own, lane);
        if (inside) values[kSuper ? bins - 2 - k : k] = before + sum;
        before += __shfl_sync(0xFFFFFFFFu, sum, 31);
    }
}
