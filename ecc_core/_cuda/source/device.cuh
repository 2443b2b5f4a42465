// Instructions that CUDA C++ has no portable name for.
#pragma once

// Float arithmetic that keeps subnormals: CuPy compiles everything else with -ftz=true.
#define ECC_FLOAT2(name, instruction)                                    \
    __device__ __forceinline__ float name(float a, float b) {            \
        float result;                                                    \
        asm(instruction " %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b)); \
        return result;                                                   \
    }
ECC_FLOAT2(subtract_floats, "sub.rn.f32")
ECC_FLOAT2(multiply_saturated, "mul.rn.sat.f32")
ECC_FLOAT2(larger, "max.f32")
ECC_FLOAT2(smaller, "min.f32")
ECC_FLOAT2(larger_or_nan, "max.NaN.f32")  // NaN if either is NaN
ECC_FLOAT2(smaller_or_nan, "min.NaN.f32")
#undef ECC_FLOAT2

__device__ __forceinline__ float multiply_add(float a, float b, float c) {
    float result;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
    return result;
}

// The sign of a difference is exact, infinities included.
__device__ __forceinline__ bool is_less(float a, float b) {
    return (int)__float_as_uint(subtract_floats(a, b)) < 0;
}
template <class T>
__device__ __forceinline__ bool is_less(T a, T b) {
    return a < b;
}

__device__ __forceinline__ float half_to_float(unsigned short bits) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
    return result;
}

// a < b ? yes : no
__device__ __forceinline__ unsigned choose_less(float a, float b, unsigned yes, unsigned no) {
    unsigned result;
    asm("{ .reg .pred less; setp.lt.f32 less, %1, %2; selp.u32 %0, %3, %4, less; }"
        : "=r"(result)
        : "f"(a), "f"(b), "r"(yes), "r"(no));
    return result;
}

// Shared memory by its 32-bit address: no conversion from a generic pointer at every use.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ float shared_float(unsigned address) {
    float value;
    asm("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
    return value;
}

__device__ __forceinline__ int shared_int(unsigned address) {
    int value;
    asm("ld.shared.s32 %0, [%1];" : "=r"(value) : "r"(address));
    return value;
}

__device__ __forceinline__ void shared_add(unsigned address, int amount) {
    asm volatile("red.shared.add.s32 [%0], %1;" ::"r"(address), "r"(amount) : "memory");
}

// Keeps the compiler from taking a value apart again.
__device__ __forceinline__ unsigned opaque(unsigned value) {
    return __shfl_xor_sync(0xFFFFFFFFu, value, 0);
}

// Copies to shared memory behind the program's back, 4, 8 or 16 bytes; each lane reads back its own
// only.
template <int bytes>
__device__ __forceinline__ void copy_ahead(void* to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from),
                 "n"(bytes)
                 : "memory");
}

__device__ __forceinline__ void end_of_copy() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most so many of the latest copies are on their way.
template <int copies>
__device__ __forceinline__ void wait_for_copy() {
    asm volatile("cp.async.wait_group %0;" ::"n"(copies) : "memory");
}

// Asks for the cache line of `address`, to be in L2 when it is loaded.
__device__ __forceinline__ void prefetch(const void* address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}
