// The sigmoid of soft transforms, in float or double (ECC_REAL).
#pragma once

#include "common.cuh"

typedef ECC_REAL Real;

ECC_DEVICE float exponential(float x) { return __expf(x); }
ECC_DEVICE double exponential(double x) { return exp(x); }
// Return quotients, for denominators up to 2^126: for greater ones `__fdividef` returns 0.
ECC_DEVICE float ratio(float a, float b) { return __fdividef(a, b); }
ECC_DEVICE double ratio(double a, double b) { return a / b; }

// The logistic function and its derivative.
struct Sigmoid {
    Real s, slope;
    ECC_DEVICE explicit Sigmoid(Real z) {
        const Real e = exponential(z < 0 ? z : -z), small = ratio(e, 1 + e);
        s = z < 0 ? small : 1 - small;
        slope = small * (1 - small);
    }
};
