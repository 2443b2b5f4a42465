// Writes integer keys in the order of the filtration, which are compared instead of the values.

#include "common.cuh"

typedef ECC_VALUE Value;  // Floats are given as their bits.
typedef ECC_CODE Code;

constexpr bool kFloat = ECC_FLOAT, kBool = ECC_BOOL, kSuper = ECC_SUPER, kMask = ECC_MASK;
constexpr unsigned kSign = 0x80000000u, kInfinity = 0x7F800000u;

// Returns a key that increases with the value of a float that is not NaN; -0 has the key of 0.
ECC_DEVICE unsigned key_of_float(unsigned bits) {
    if (kSuper) bits ^= kSign;
    if (bits == kSign) bits = 0;
    return bits & kSign ? ~bits : bits | kSign;
}

// Returns the key of a float, or `never` for NaN, and notes at `nan` whether a float that is shown is NaN.
ECC_DEVICE unsigned checked_key_of_float(unsigned bits, bool is_shown, unsigned never,
                                         long long* nan) {
    if ((bits & ~kSign) <= kInfinity) return key_of_float(bits);
    if (is_shown) *nan = 1;
    return never;
}

// Writes the keys of `count` values, `never` for NaN and for points that are not shown, and notes at `nan`
// whether any of those shown is NaN. Integers are `least` or more, and their keys are below `never`.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_keys(const Value* values, const unsigned char* shown, Code* keys, const long long count,
              const int least, const unsigned never, long long* nan) {
    const long long step = (long long)gridDim.x * ECC_THREADS;
    for (long long i = (long long)blockIdx.x * ECC_THREADS + threadIdx.x; i < count; i += step) {
        const Value value = values[i];
        const bool is_shown = !kMask || shown[i];
        unsigned key;
        if (kFloat) {
            key = checked_key_of_float(value, is_shown, never, nan);
        } else {
            key = kBool ? value != 0 : (int)value - least;
            if (kSuper) key = never - 1 - key;
        }
        keys[i] = (Code)(is_shown ? key : never);
    }
}

// Images of floats (count, lines, side), and as many targets, which are images of booleans.
struct Beside {
    const Value* images;
    const unsigned char* targets;
    const unsigned char* shown;  // The mask of images and targets.
    int count, lines, side;
};

// Writes the keys of images and then of their targets, side by side along the last axis, each followed by
// points that never enter. Notes at `nan` whether a value that is shown is NaN.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_keys_beside(const Beside batch, Code* keys, const unsigned never, long long* nan) {
    constexpr unsigned kOne = 0x3F800000u;
    const int apart = batch.side + 1, width = 2 * batch.count * apart;
    const long long points = (long long)batch.lines * width;
    const long long step = (long long)gridDim.x * ECC_THREADS;
    for (long long i = (long long)blockIdx.x * ECC_THREADS + threadIdx.x; i < points; i += step) {
        const int line = quotient(i, width), along = i - (long long)line * width;
        const int image = along / apart, x = along - image * apart;
        const bool is_target = image >= batch.count;
        const long long own = image - (is_target ? batch.count : 0);
        const long long from = (own * batch.lines + line) * batch.side + x;
        unsigned key = never;
        if (x < batch.side && (!kMask || batch.shown[from])) {
            const unsigned wanted = is_target && batch.targets[from] ? kOne : 0;
            const unsigned bits = is_target ? wanted : batch.images[from];
            key = checked_key_of_float(bits, true, never, nan);
        }
        keys[i] = (Code)key;
    }
}
