// What kernels of simplicial complexes share: how orders lie side by side, and where signs are added.
#pragma once
#include "transform.cuh"

constexpr int kLanes = ECC_LANES;  // that share a simplex, or a point, a power of two
constexpr int kHalves = ECC_PACKED ? 2 : 1;
constexpr int kOrders = kLanes * kHalves;  // of a group

// Where the signs of simplices are added.
struct Histogram {
    Sum* values;  // (parts, orders, bins)
    int orders, bins;
};

// Tells the host whether anything is wrong, as soon as a kernel begins: `wrong` is `right` unless it is, and
// afterwards.
ECC_DEVICE void answer(unsigned long long* wrong, unsigned long long right,
                       volatile long long* reply) {
    if (!reply || threadIdx.x || blockIdx.x || blockIdx.y) return;
    const bool is_wrong = *wrong != right;
    *wrong = right;
    __threadfence_system();
    *reply = is_wrong;
}
