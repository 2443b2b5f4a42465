// Comparisons of two 16-bit integers at a time, halves of a register.
#pragma once
#include "image.cuh"

constexpr bool kSigned = Element(-1) < Element(0);

// The later of two samples in each half, and in predicates p and q whether that is `a`. The compiler
// knows this for one instruction (VIMNMX).
#define ECC_COMPARISON(operation, type, a, b, then)                                              \
    "{ .reg .pred p, q; .reg .u16 a, b, c, d; " operation "." type "x2 %0, " a ", " b ";"  \
    " mov.b32 {a, b}, %0; mov.b32 {c, d}, " a "; setp.eq." type " p, a, c; setp.eq." type  \
    " q, b, d; " then " }"
#define ECC_COMPARISONS(a, b, then, ...)                                                \
    if (kSigned && kDown) asm(ECC_COMPARISON("min", "s16", a, b, then) : __VA_ARGS__);  \
    if (kSigned && !kDown) asm(ECC_COMPARISON("max", "s16", a, b, then) : __VA_ARGS__); \
    if (!kSigned && kDown) asm(ECC_COMPARISON("min", "u16", a, b, then) : __VA_ARGS__); \
    if (!kSigned && !kDown) asm(ECC_COMPARISON("max", "u16", a, b, then) : __VA_ARGS__);

__device__ __forceinline__ pair owner(pair a, pair b) {
    pair later;
    ECC_COMPARISONS("%1", "%2", "", "=&r"(later) : "r"(a), "r"(b))
    return later;
}

// Where the low or the high half of b owns what it shares with a: 1 and 2^16.
__device__ __forceinline__ pair owns_shared(pair a, pair b) {
    pair later, owned;
    ECC_COMPARISONS("%2", "%3", "selp.b32 %1, 0, 1, p; @!q add.u32 %1, %1, 65536;",
              "=&r"(later), "=&r"(owned) : "r"(a), "r"(b))
    return owned;
}

// As `owner`; where the low half of b is that, adds `low` to a sum.
__device__ __forceinline__ pair compare_pair(pair a, pair b, float& sum, float low) {
    pair later;
    ECC_COMPARISONS("%2", "%3", "@!p add.f32 %1, %1, %4;",
              "=&r"(later), "+f"(sum) : "r"(a), "r"(b), "f"(low))
    return later;
}
// And where the high half is, `high`.
__device__ __forceinline__ pair compare_pair(pair a, pair b, float& sum, float low, float high) {
    pair later;
    ECC_COMPARISONS("%2", "%3", "@!p add.f32 %1, %1, %4; @!q add.f32 %1, %1, %5;",
              "=&r"(later), "+f"(sum) : "r"(a), "r"(b), "f"(low), "f"(high))
    return later;
}
#undef ECC_COMPARISONS
#undef ECC_COMPARISON
