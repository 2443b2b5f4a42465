// Functions that kernels of several kinds use.
#pragma once

// Functions are always inlined in the kernels that call them.
#define ECC_DEVICE __device__ __forceinline__

constexpr unsigned kWarp = 0xFFFFFFFFu;  // All lanes.

// Returns the sum of the values of a lane and of the lanes before it in its warp.
template <class T>
ECC_DEVICE T running_sum(T value, int lane) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(kWarp, value, step);
        if (lane >= step) value += other;
    }
    return value;
}

ECC_DEVICE double warp_sum(double value) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(kWarp, value, step);
    return value;
}

// Returns the first index below `count` that does not pass, or `count`. Indices that pass come first.
template <class Passes>
ECC_DEVICE int first_failing(int count, const Passes& passes) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) >> 1;
        if (passes(middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Returns a quotient. Numbers below 2^32 are divided in 32 bits, which takes a quarter of the time.
ECC_DEVICE long long quotient(long long number, long long by) {
    if ((number | by) >> 32) return number / by;
    return (unsigned)number / (unsigned)by;
}

// Returns the remainder of an index by a size; the quotient replaces the index.
ECC_DEVICE int split_off(long long& index, int size) {
    const long long rest = quotient(index, size);
    const int own = (int)(index - rest * size);
    index = rest;
    return own;
}

// Writes at `answer` whether any thread saw something; called by every thread at its end. With a `ticket`,
// which is 0 at launch and again once the answer is written, the last block writes 0 or 1. Without one,
// the answer is 0 at launch, and blocks write only 1.
ECC_DEVICE void report(volatile long long* answer, unsigned long long* ticket, bool saw) {
    if (!ticket) {
        if (saw) *answer = 1;
        return;
    }
    const unsigned long long own = __syncthreads_or(saw) ? 1ull << 32 : 0;
    if (threadIdx.x) return;
    const unsigned long long before = atomicAdd(ticket, own + 1);
    if ((unsigned)before != gridDim.x * gridDim.y - 1) return;
    *ticket = 0;
    __threadfence_system();  // The host must not see the answer earlier.
    *answer = (own + before) >> 32 != 0;
}

// Even thresholds as NumPy computes linspace(low, high, count), of two or more.
struct EvenThresholds {
    double low, high, step;
    int last;

    ECC_DEVICE EvenThresholds(double low, double high, int count)
        : low(low), high(high), step(__dadd_rn(high, -low) / (count - 1)), last(count - 1) {}
    ECC_DEVICE double operator[](int k) const {
        return k == last ? high : __dadd_rn(__dmul_rn((double)k, step), low);
    }
};

// Chooses one of two types.
template <bool first, class First, class Second>
struct Either {
    typedef First type;
};
template <class First, class Second>
struct Either<false, First, Second> {
    typedef Second type;
};
