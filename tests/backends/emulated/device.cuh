// What ecc_core/_backends/cuda/source/device.cuh has, in plain C++.
#pragma once
#include <cfenv>

#include "common.cuh"

typedef unsigned pair;

template <class T>
T load_once(const T* address) {
    return *(const volatile T*)address;
}

// Arithmetic as the device rounds it. `noinline`: else the compiler computes before the mode is set.
__attribute__((noinline)) inline float multiply_add(float a, float b, float c) {
    return std::fmaf(a, b, c);
}
__attribute__((noinline)) inline float add_floats(float a, float b) { return a + b; }
template <class Operation, class... Values>
float rounded(int mode, Operation operation, Values... values) {
    std::fesetround(mode);
    const float result = operation(values...);
    std::fesetround(FE_TONEAREST);
    return result;
}
inline float saturated(float v) { return v > 1 ? 1.0f : v > 0 ? v : 0.0f; }  // NaN to 0
inline float add_truncated(float a, float b) { return rounded(FE_TOWARDZERO, add_floats, a, b); }
inline float multiply_add_down(float a, float b, float c) {
    return rounded(FE_DOWNWARD, multiply_add, a, b, c);
}
inline float multiply_add_down_saturated(float a, float b, float c) {
    return saturated(multiply_add_down(a, b, c));
}
inline float subtract_floats(float a, float b) {
    return std::isnan(a - b) ? __uint_as_float(0x7FFFFFFFu) : a - b;  // the canonical NaN
}
inline float subtract_floats_saturated(float a, float b) { return saturated(a - b); }
inline float multiply_add_saturated(float a, float b, float c) {
    return saturated(multiply_add(a, b, c));
}
__attribute__((noinline)) inline float to_float(double a) { return (float)a; }
inline double to_double(float a) { return a; }
inline float to_float_down(double a) { return rounded(FE_DOWNWARD, to_float, a); }
inline float to_float_up(double a) { return rounded(FE_UPWARD, to_float, a); }
// -0 is less than 0, and a number comes before NaN.
inline float larger(float a, float b) {
    return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
}
inline float smaller(float a, float b) {
    return a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
}
inline float larger_or_nan(float a, float b) { return a != a || b != b ? NAN : larger(a, b); }
inline float smaller_or_nan(float a, float b) { return a != a || b != b ? NAN : smaller(a, b); }

inline bool is_less(float a, float b) { return (int)__float_as_uint(subtract_floats(a, b)) < 0; }
template <class T>
bool is_less(T a, T b) {
    return a < b;
}
inline unsigned shift_in_less(unsigned bits, unsigned a, unsigned b) { return bits << 1 | (a < b); }
template <class T>
unsigned one_less(unsigned number, T a, T b) {
    return number - is_less(a, b);
}
// Half precision.
inline float half_to_float(unsigned short bits) { return bits_as<_Float16>(bits); }
inline unsigned short to_half(float value) { return bits_as<unsigned short>((_Float16)value); }
inline unsigned short to_bfloat(float value) {
    const unsigned bits = __float_as_uint(value);
    return std::isnan(value) ? 0x7FFF : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
inline float low_half(pair p) { return half_to_float(p & 0xFFFFu); }
inline float high_half(pair p) { return half_to_float(p >> 16); }
template <class Operation>
pair each_half(pair a, pair b, Operation operation) {
    return to_half(operation(low_half(a), low_half(b))) |
           to_half(operation(high_half(a), high_half(b))) << 16;
}
inline pair subtract_saturated(pair a, pair b) {
    return each_half(a, b, subtract_floats_saturated);
}
inline pair larger_pair(pair a, pair b) { return each_half(a, b, larger); }
inline pair smaller_pair(pair a, pair b) { return each_half(a, b, smaller); }
inline pair add_pairs(pair a, pair b) { return each_half(a, b, add_floats); }
inline void vote_less(pair a, pair b, unsigned& low, unsigned& high) {
    low = __ballot_sync(~0u, low_half(a) < low_half(b));
    high = __ballot_sync(~0u, high_half(a) < high_half(b));
}
inline unsigned short to_half_truncated(float value) {
    const unsigned short half = to_half(value);
    return std::fabs(half_to_float(half)) > std::fabs(value) ? half - 1 : half;
}

inline pair to_pair(float low, float high) {
    return to_half_truncated(low) | to_half_truncated(high) << 16;
}

// PTX ISA, matrix fragments for mma.m16n8k16: a lane is 4 g + t.
inline void multiply_matrices(float (&out)[4], const pair (&a)[4], pair b0, pair b1,
                              const float (&c)[4]) {
    const auto given = all_lanes(std::array<pair, 6>{a[0], a[1], a[2], a[3], b0, b1});
    const auto entry = [&](int lane, int index, int k) {
        return k & 1 ? high_half(given[lane][index]) : low_half(given[lane][index]);
    };
    const int g = lane_index() >> 2, t = lane_index() & 3;
    for (int i = 0; i < 4; ++i) {
        const int below = i >> 1, column = 2 * t + (i & 1);
        double sum = c[i];
        for (int k = 0; k < 16; ++k)
            sum += (double)entry(4 * g + k % 8 / 2, below + 2 * (k / 8), k) *
                   entry(4 * column + k % 8 / 2, 4 + k / 8, k);
        out[i] = (float)sum;
        if (out[i] != sum) fail("a sum of the tensor cores is exact");
    }
}

template <unsigned selector>
unsigned permute(unsigned a, unsigned b) {
    return __byte_perm(a, b, selector);
}
inline unsigned multiply_add_words(unsigned a, unsigned b, unsigned c) { return a * b + c; }
template <unsigned table>
unsigned logic(unsigned a, unsigned b, unsigned c) {
    unsigned result = 0;
    for (unsigned k = 0; k < 8; ++k)
        if (table >> k & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return result;
}
template <unsigned mask>
unsigned select_bits(unsigned a, unsigned b) {
    return (a & mask) | (b & ~mask);
}
template <bool is_signed>
unsigned dot_bytes(unsigned bytes, unsigned weights, unsigned sum) {
    for (int k = 0; k < 4; ++k) {
        const unsigned byte = bytes >> 8 * k & 255;
        sum += (is_signed ? (unsigned)(int)(signed char)byte : byte) * (weights >> 8 * k & 255);
    }
    return sum;
}
inline int shift_to_sign(unsigned bits) { return bits ? __builtin_clz(bits) : -1; }
inline unsigned dot_low_bytes(unsigned halves, unsigned bytes, unsigned sum) {
    return sum + (halves & 0xFFFFu) * (bytes & 255) + (halves >> 16) * (bytes >> 8 & 255);
}
inline unsigned dot_high_bytes(unsigned halves, unsigned bytes, unsigned sum) {
    return dot_low_bytes(halves, bytes >> 16, sum);
}
inline long long product(int a, int b) { return (long long)a * b; }
inline unsigned computed_once(unsigned value) { return value; }
inline void prefetch(const void*) {}

// Shared memory.
char* shared(unsigned address, int bytes);
unsigned shared_address(const void* pointer);
template <class T>
T load_shared(unsigned address) {
    T value;
    memcpy(&value, shared(address, sizeof(T)), sizeof(T));
    return value;
}
template <class T>
T shared_key(unsigned address, T) {
    return load_shared<T>(address);
}
inline uint2 shared_words(unsigned address) { return load_shared<uint2>(address); }
inline unsigned shared_short(unsigned address) { return load_shared<unsigned short>(address); }
inline unsigned shared_byte(unsigned address) { return load_shared<unsigned char>(address); }
inline unsigned shared_word(unsigned address) { return load_shared<unsigned>(address); }
template <int count>
void store_words(unsigned address, const unsigned (&words)[count]) {
    memcpy(shared(address, sizeof words), words, sizeof words);
}
template <int count>
void load_words(unsigned address, unsigned (&words)[count]) {
    memcpy(words, shared(address, sizeof words), sizeof words);
}
inline void shared_store(unsigned address, unsigned w) { store_words(address, {w}); }
inline void shared_store(unsigned address, const unsigned (&w)[4]) { store_words(address, w); }
inline void shared_store(unsigned address, const unsigned (&w)[2]) { store_words(address, w); }
inline void shared_load(unsigned address, unsigned (&w)[4]) { load_words(address, w); }
inline void shared_store_unless_finite(unsigned address, float value) {
    if (value - value != 0) memcpy(shared(address, sizeof value), &value, sizeof value);
}
inline unsigned shared_exchange_add(unsigned address, unsigned amount) {
    return atomicAdd((unsigned*)shared(address, 4), amount);
}
inline void shared_add(unsigned address, int amount) { shared_exchange_add(address, amount); }
inline void shared_add_if(bool given, unsigned address, int amount) {
    if (given) shared_add(address, amount);
}
inline void shared_increment(unsigned address) { shared_exchange_add(address, 1); }

// Copies that arrive when they are waited for, and not before.
void copy_later(void* to, const void* from, int bytes);
void close_group();
void finish_groups(int but);
template <int bytes>
void copy_ahead(void* to, const void* from) {
    copy_later(to, from, bytes);
}
inline void end_of_copy() { close_group(); }
template <int groups>
void wait_for_copy() {
    finish_groups(groups);
}
