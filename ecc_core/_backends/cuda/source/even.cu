// Finds the range of an image and prepares even thresholds over it, for a kernel that follows at once.
#include "range.cuh"

// Even thresholds for the kernels of pairs (pair_codes.cuh, kUniform).
struct Even {
    double* thresholds;  // (count,)
    // (count + 3,): a key that never enters, the thresholds rounded to float32 in the order of codes, and
    // then `low` and `scale`, by which values find their codes.
    float* table;
    long long count;
};

// Even thresholds, also as keys, which are rounded to the type of the image.
struct Spread : EvenThresholds {
    using EvenThresholds::EvenThresholds;
    ECC_DEVICE float key(int k) const {
        return kSuper ? to_float_up((*this)[k]) : to_float_down((*this)[k]);
    }
};

// Finds the range; the last block then prepares the thresholds. `reply` gets the sum of 1 if there is a
// finite value, 2 if there is a NaN, and 4 if guesses find the codes of all thresholds, so that the curve
// is right.
extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    find_even(const Samples samples, Range* range, volatile long long* reply, const Even even) {
    __shared__ Range found;
    __shared__ bool last;
    Range block = range_of_block(samples);
    if (threadIdx.x == 0) {
        last = join_ranges(block, range);
        found = block;
    }
    __syncthreads();
    if (!last) return;
    const float least = key_of((int)~(found.least ^ kSign), 0.0f),
                largest = key_of((int)(found.largest ^ kSign), 0.0f);
    const double low = to_double(least), high = to_double(largest);
    const int count = (int)even.count;
    const Spread spread(low, high, count);
    // The guess of a key is its code, from 1 to `count`.
    const double span = kSuper ? __dadd_rn(high, -low) : __dadd_rn(low, -high);
    const float scale = (float)((count - 1) / __dmul_rn(span, count));
    const float offset = (float)__dadd_rn(1.0 / count, -__dmul_rn(kSuper ? low : high, scale));
    bool fits = found.some;
    if (threadIdx.x == 0) {
        even.table[0] = never(0.0f);
        even.table[count + 1] = offset, even.table[count + 2] = scale;
    }
    for (int k = threadIdx.x; k < count; k += blockDim.x) {
        const float key = spread.key(k);
        const float unit = multiply_add_saturated(key, scale, offset);
        const int code = kSuper ? k + 1 : count - k;
        even.thresholds[k] = spread[k];
        // Kernels take -0 to be less than 0; a comparison would take subnormal numbers for zero.
        const bool zero = __float_as_uint(key) << 1 == 0;
        even.table[code] = zero ? (kSuper ? -0.0f : 0.0f) : key;
        fits = fits && fabs(unit * (double)count - code) < 0.25;
        fits = fits && (k == 0 || is_less(spread.key(k - 1), key));
    }
    const bool misfits = __syncthreads_or(!fits);
    if (threadIdx.x) return;
    reply[0] = found.some | found.nan << 1 | (misfits ? 0 : 4);
}
