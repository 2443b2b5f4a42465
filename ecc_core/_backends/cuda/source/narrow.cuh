// Floating-point numbers of 16 bits.
#pragma once
#include "device.cuh"

struct Half {
    unsigned short bits;
};
struct BFloat {
    unsigned short bits;
};

ECC_DEVICE float widen(float v) { return v; }
ECC_DEVICE float widen(Half v) { return half_to_float(v.bits); }
ECC_DEVICE float widen(BFloat v) { return __uint_as_float((unsigned)v.bits << 16); }
