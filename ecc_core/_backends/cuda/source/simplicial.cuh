// What kernels of simplicial complexes share: how orders lie side by side, and where signs are added.
#pragma once
#include "transform.cuh"

constexpr int kLanes = ECC_LANES;  // Lanes that share a simplex or a point, a power of two.
constexpr int kHalves = ECC_PACKED ? 2 : 1;
constexpr int kOrders = kLanes * kHalves;  // Orders of a group.

// The sums of the signs of simplices by bin.
struct Histogram {
    Sum* values;  // (parts, orders, bins)
    int orders, bins;
};

// Tells the host whether kernels before found anything wrong: then `wrong` differs from `right`, to which
// it is set again. Called at the beginning of a kernel, so that the host need not wait for its end.
ECC_DEVICE void answer(unsigned long long* wrong, unsigned long long right,
                       volatile long long* reply) {
    if (!reply || threadIdx.x || blockIdx.x || blockIdx.y) return;
    const bool is_wrong = *wrong != right;
    *wrong = right;
    __threadfence_system();
    *reply = is_wrong;
}
