// Keys of values in the order of the filtration, which are compared instead of them.

#include "common.cuh"

typedef ECC_VALUE Value;  // floats as their bits
typedef ECC_CODE Code;

constexpr bool kFloat = ECC_FLOAT, kBool = ECC_BOOL, kSuper = ECC_SUPER, kMask = ECC_MASK;
constexpr unsigned kSign = 0x80000000u, kInfinity = 0x7F800000u;

// Increases with the value of a float that is not NaN; -0 is 0.
ECC_DEVICE unsigned key_of_float(unsigned bits) {
    if (kSuper) bits ^= kSign;
    if (bits == kSign) bits = 0;
    return bits & kSign ? ~bits : bits | kSign;
}

// Writes the keys of `count` values, `never` for NaN and for points that are not shown, and notes at `nan`
// whether any of those shown is NaN. Integers are `least` or more, and their keys are below `never`.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_keys(const Value* values, const unsigned char* shown, Code* keys, const long long count,
              const int least, const unsigned never, long long* nan) {
    const long long step = (long long)gridDim.x * ECC_THREADS;
    for (long long i = (long long)blockIdx.x * ECC_THREADS + threadIdx.x; i < count; i += step) {
        const Value value = values[i];
        unsigned key;
        if (kFloat) {
            key = key_of_float(value);
            if (((unsigned)value & ~kSign) > kInfinity) {
                if (!kMask || shown[i]) *nan = 1;
                key = never;
            }
        } else {
            key = kBool ? value != 0 : (int)value - least;
            if (kSuper) key = never - 1 - key;
        }
        keys[i] = (Code)(kMask && !shown[i] ? never : key);
    }
}
