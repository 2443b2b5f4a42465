// The sigmoid of soft transforms, in float or double (ECC_REAL).
#pragma once

#include "common.cuh"

typedef ECC_REAL Real;

ECC_DEVICE float exponential(float x) { return __expf(x); }
ECC_DEVICE double exponential(double x) { return exp(x); }

// The logistic function and its derivative.
struct Sigmoid {
    Real s, slope;
    ECC_DEVICE explicit Sigmoid(Real z) {
        const Real e = exponential(z < 0 ? z : -z), small = e / (1 + e);
        s = z < 0 ? small : 1 - small;
        slope = small * (1 - small);
    }
};
