// CUDA C++ for the CPU, as far as the kernels of curves need it. A thread is a fiber; those of a
// warp wait for each other at the instructions that concern all of them.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __shared__ static  // one block at a time

struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
struct Index {
    unsigned x, y, z;
};
extern Index threadIdx, blockIdx, blockDim, gridDim;
extern uint4 memory[];  // shared memory that a kernel is launched with

// The kernel broke a rule. The first one counts.
void fail(const char* rule);

// What each lane of the warp gives, once all have.
constexpr int kMost = 24;  // bytes
const std::array<char, kMost>* meet(const void* value, int bytes);
void meet_in_block();
bool any_in_block(bool value);

template <class T>
std::array<T, 32> all_lanes(T value) {
    static_assert(sizeof(T) <= kMost);
    const auto* given = meet(&value, sizeof(T));
    std::array<T, 32> values;
    for (int lane = 0; lane < 32; ++lane) memcpy(&values[lane], &given[lane], sizeof(T));
    return values;
}

inline int lane_index() { return threadIdx.x & 31; }

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
    return all_lanes(value)[lane & 31];
}
template <class T>
T __shfl_down_sync(unsigned, T value, int step) {
    const int lane = lane_index() + step;
    const auto values = all_lanes(value);
    return lane < 32 ? values[lane] : value;
}
template <class T>
T __shfl_up_sync(unsigned, T value, int step) {
    const int lane = lane_index() - step;
    const auto values = all_lanes(value);
    return lane >= 0 ? values[lane] : value;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int step) {
    const int lane = lane_index() ^ step;
    return all_lanes(value)[lane & 31];
}
inline unsigned __ballot_sync(unsigned, unsigned predicate) {
    unsigned bits = 0, lane = 0;
    for (const unsigned value : all_lanes(predicate)) bits |= (value != 0) << lane++;
    return bits;
}
inline bool __any_sync(unsigned warp, unsigned predicate) { return __ballot_sync(warp, predicate); }
template <class T>
T __reduce_max_sync(unsigned, T value) {
    for (const T other : all_lanes(value)) value = other > value ? other : value;
    return value;
}
template <class T>
T __reduce_add_sync(unsigned, T value) {
    T sum = 0;
    for (const T other : all_lanes(value)) sum += other;
    return sum;
}
template <class T>
unsigned __match_any_sync(unsigned, T value) {
    unsigned bits = 0, lane = 0;
    for (const T other : all_lanes(value)) bits |= (other == value) << lane++;
    return bits;
}
inline void __syncwarp() { all_lanes(0); }
inline void __syncthreads() { meet_in_block(); }
inline void __threadfence() {}
inline void __threadfence_system() {}
inline bool __syncthreads_or(bool value) { return any_in_block(value); }

template <class T>
T min(T a, T b) {
    return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
    return a < b ? b : a;
}

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t bytes = (uint64_t)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned which = selector >> (4 * i) & 15;
        const unsigned byte = bytes >> (8 * (which & 7)) & 255;
        result |= (which & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * i);
    }
    return result;
}
inline unsigned __vmaxu2(unsigned a, unsigned b) {
    return max(a >> 16, b >> 16) << 16 | max(a & 0xFFFFu, b & 0xFFFFu);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (((uint64_t)high << 32 | low) << (shift & 31)) >> 32;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return ((uint64_t)high << 32 | low) >> (shift & 31);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int i = 0; i < 32; i += 8) sum += (a >> i & 255) * (b >> i & 255);
    return sum;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return ((uint64_t)high << 32 | low) >> min(shift, 32u);
}
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline int __double2int_rn(double value) {
    return (int)std::nearbyint(min(max(value, -2147483648.0), 2147483647.0));
}
inline int __double2int_rd(double value) { return __double2int_rn(std::floor(value)); }
inline long long __double2ll_rn(double value) { return (long long)std::nearbyint(value); }
inline int __clz(unsigned bits) { return bits ? __builtin_clz(bits) : 32; }
inline int __ffs(unsigned bits) { return __builtin_ffs((int)bits); }

template <class To, class From>
To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}
inline unsigned __float_as_uint(float value) { return bits_as<unsigned>(value); }
inline int __float_as_int(float value) { return bits_as<int>(value); }
inline long long __double_as_longlong(double value) { return bits_as<long long>(value); }
inline float __uint_as_float(unsigned bits) { return bits_as<float>(bits); }
inline float __int_as_float(int bits) { return bits_as<float>(bits); }
inline double __longlong_as_double(long long bits) { return bits_as<double>(bits); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
using std::isinf;

template <class T>
T atomicAdd(T* address, T value) {
    const T before = *address;
    *address += value;
    return before;
}
template <class T>
T atomicMax(T* address, T value) {
    const T before = *address;
    if (*address < value) *address = value;
    return before;
}
template <class T>
T atomicMin(T* address, T value) {
    const T before = *address;
    if (value < *address) *address = value;
    return before;
}
template <class T>
T atomicOr(T* address, T value) {
    const T before = *address;
    *address |= value;
    return before;
}
template <class T>
T atomicXor(T* address, T value) {
    const T before = *address;
    *address ^= value;
    return before;
}
template <class T>
T atomicCAS(T* address, T expected, T value) {
    const T before = *address;
    if (before == expected) *address = value;
    return before;
}
template <class T>
T atomicExch(T* address, T value) {
    const T before = *address;
    *address = value;
    return before;
}
