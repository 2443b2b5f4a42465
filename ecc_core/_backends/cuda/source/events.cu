// The samples whose coefficient is not zero, in any order, as one number each: the place of the
// value among all of its type, above the coefficient plus 8.
#include "device.cuh"
#include "running_sum.cuh"

constexpr bool kFloat = ECC_FLOAT;
constexpr int kEach = 16;  // samples of a thread

// 32 bits of a float, or of an integer whose order `flip` makes that of unsigned ones.
__device__ __forceinline__ unsigned place_of(unsigned bits, unsigned flip) {
    if (!kFloat) return bits ^ flip;
    if (bits == 0x80000000u) bits = 0;  // -0
    return bits >> 31 ? ~bits : bits ^ 0x80000000u;
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_events(const signed char* coefficients, const unsigned* values, long long size,
                unsigned flip, unsigned long long* count, unsigned long long room,
                unsigned long long* events) {
    const int lane = threadIdx.x & 31;
    const long long first = kEach * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    union {
        uint4 words;
        signed char amount[kEach];
    } own = {};
    if (first + kEach <= size)
        own.words = *(const uint4*)(coefficients + first);
    else
        for (int k = 0; first + k < size; ++k) own.amount[k] = coefficients[first + k];
    int found = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) found += own.amount[k] != 0;
    const int inclusive = running_sum(found, lane);
    unsigned long long at = 0;
    if (lane == 31 && inclusive) at = atomicAdd(count, (unsigned long long)inclusive);
    at = __shfl_sync(0xFFFFFFFFu, at, 31) + inclusive - found;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        if (!own.amount[k] || at >= room) continue;
        const unsigned place = place_of(values[first + k], flip);
        events[at++] = (unsigned long long)place << 8 | (unsigned)(own.amount[k] + 8);
    }
}
