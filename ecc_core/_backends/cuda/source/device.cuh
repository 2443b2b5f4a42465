// Instructions that CUDA C++ has no portable name for.
#pragma once
#include "common.cuh"

// Functions that are one instruction each. The letters of types are those of constraints: f and d for
// floats, h and r for integers of 16 and 32 bits.
#define ECC_CONVERT(to, out, from, in, name, instruction)  \
    ECC_DEVICE to name(from a) {                           \
        to result;                                         \
        asm(instruction " %0, %1;" : out(result) : in(a)); \
        return result;                                     \
    }
#define ECC_TWO(type, letter, name, instruction)                                     \
    ECC_DEVICE type name(type a, type b) {                                           \
        type result;                                                                 \
        asm(instruction " %0, %1, %2;" : "=" letter(result) : letter(a), letter(b)); \
        return result;                                                               \
    }
#define ECC_THREE(type, letter, name, instruction) \
    ECC_DEVICE type name(type a, type b, type c) { \
        type result;                               \
        asm(instruction " %0, %1, %2, %3;"         \
            : "=" letter(result)                   \
            : letter(a), letter(b), letter(c));    \
        return result;                             \
    }
#define ECC_LOAD(type, letter, name, instruction)                                             \
    ECC_DEVICE type name(unsigned address) {                                                  \
        type value;                                                                           \
        asm volatile(instruction " %0, [%1];" : "=" letter(value) : "r"(address) : "memory"); \
        return value;                                                                         \
    }

// Float arithmetic that keeps subnormals: CuPy compiles everything else with -ftz=true.
ECC_TWO(float, "f", add_floats, "add.rn.f32")
ECC_TWO(float, "f", add_truncated, "add.rz.f32")  // It rounds towards zero.
ECC_TWO(float, "f", subtract_floats, "sub.rn.f32")
ECC_TWO(float, "f", larger, "max.f32")
ECC_TWO(float, "f", smaller, "min.f32")
ECC_TWO(float, "f", larger_or_nan, "max.NaN.f32")  // It is NaN if either is NaN.
ECC_TWO(float, "f", smaller_or_nan, "min.NaN.f32")
// a * b + c; `down` is rounded down, `saturated` to [0, 1] with NaN to 0.
ECC_THREE(float, "f", multiply_add, "fma.rn.f32")
ECC_THREE(float, "f", multiply_add_saturated, "fma.rn.sat.f32")
ECC_THREE(float, "f", multiply_add_down, "fma.rm.f32")
ECC_THREE(float, "f", multiply_add_down_saturated, "fma.rm.sat.f32")

ECC_CONVERT(double, "=d", float, "f", to_double, "cvt.f64.f32")
ECC_CONVERT(float, "=f", double, "d", to_float_down, "cvt.rm.f32.f64")  // It keeps subnormals.
ECC_CONVERT(float, "=f", double, "d", to_float_up, "cvt.rp.f32.f64")
ECC_CONVERT(float, "=f", unsigned short, "h", half_to_float, "cvt.f32.f16")
ECC_CONVERT(unsigned short, "=h", float, "f", to_half, "cvt.rn.f16.f32")  // It rounds to nearest.
ECC_CONVERT(unsigned short, "=h", float, "f", to_bfloat, "cvt.rn.bf16.f32")

// Compares by the sign of the difference, which is exact, infinities included.
ECC_DEVICE bool is_less(float a, float b) {
    return (int)__float_as_uint(subtract_floats(a, b)) < 0;
}
template <class T>
ECC_DEVICE bool is_less(T a, T b) {
    return a < b;
}

// Returns bits shifted up by one, with 1 in the lowest if a < b.
ECC_DEVICE unsigned shift_in_less(unsigned bits, unsigned a, unsigned b) {
    unsigned result;
    asm("{ .reg .u32 sum; add.cc.u32 sum, %1, %2; addc.u32 %0, %3, %3; }"  // The sum is b - a - 1.
        : "=r"(result)
        : "r"(b), "r"(~a), "r"(bits));
    return result;
}

// Returns a number, or the number minus one if a < b.
ECC_DEVICE unsigned one_less(unsigned number, float a, float b) {
    return number + (unsigned)((int)__float_as_uint(subtract_floats(a, b)) >> 31);
}

template <class T>
ECC_DEVICE unsigned one_less(unsigned number, T a, T b) {
    return number - (a < b ? 1u : 0u);
}

// Two numbers of half precision in a register.
typedef unsigned pair;

ECC_TWO(pair, "r", subtract_saturated, "sub.rn.sat.f16x2")  // Results are limited to [0, 1].
ECC_TWO(pair, "r", larger_pair, "max.f16x2")
ECC_TWO(pair, "r", smaller_pair, "min.f16x2")
ECC_TWO(pair, "r", add_pairs, "add.rn.f16x2")

// Finds the lanes of the warp that have a < b in their low halves, and in their high halves.
ECC_DEVICE void vote_less(pair a, pair b, unsigned& low, unsigned& high) {
    asm volatile(
        "{ .reg .pred p, q; setp.lt.f16x2 p|q, %2, %3; vote.sync.ballot.b32 %0, p, 0xFFFFFFFF;"
        " vote.sync.ballot.b32 %1, q, 0xFFFFFFFF; }"
        : "=r"(low), "=r"(high)
        : "r"(a), "r"(b));
}

// Returns two numbers as a pair, rounded towards zero.
ECC_DEVICE pair to_pair(float low, float high) {
    pair result;
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

// Computes out = a b + c on the tensor cores; a is 16 x 16 and b 16 x 8, spread over the lanes of a warp.
ECC_DEVICE void multiply_matrices(float (&out)[4], const pair (&a)[4], pair b0, pair b1,
                                  const float (&c)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]),
          "f"(c[2]), "f"(c[3]));
}

// Returns bytes of `a` and `b` as __byte_perm selects them. Where 8 is added to a number of the selector,
// the byte becomes eight copies of its highest bit.
template <unsigned selector>
ECC_DEVICE unsigned permute(unsigned a, unsigned b) {
    unsigned result;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "n"(selector));
    return result;
}

// Applies any function of three bits, as lop3 numbers them, to each bit.
template <unsigned table>
ECC_DEVICE unsigned logic(unsigned a, unsigned b, unsigned c) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(result) : "r"(a), "r"(b), "r"(c), "n"(table));
    return result;
}

// Returns the bits of `a` where `mask` has ones, else those of `b`.
template <unsigned mask>
ECC_DEVICE unsigned select_bits(unsigned a, unsigned b) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(result) : "r"(a), "r"(b), "n"(mask));
    return result;
}

// Adds the products of four bytes, which may be signed, and four unsigned weights to a sum.
template <bool is_signed>
ECC_DEVICE unsigned dot_bytes(unsigned bytes, unsigned weights, unsigned sum) {
    unsigned result;
    if (is_signed)
        asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(bytes), "r"(weights), "r"(sum));
    else
        asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(bytes), "r"(weights), "r"(sum));
    return result;
}

// c + low * first + high * second, where low and high are the halves of a, and first and second are the
// two lowest bytes of b, or its two highest.
ECC_THREE(unsigned, "r", dot_low_bytes, "dp2a.lo.u32.u32")
ECC_THREE(unsigned, "r", dot_high_bytes, "dp2a.hi.u32.u32")

// a * b + c by a single instruction, which the compiler cannot replace by shifts.
ECC_THREE(unsigned, "r", multiply_add_words, "mad.lo.u32")

// Returns the 32-bit address of a place in shared memory, so that generic pointers are not converted at
// every use.
ECC_DEVICE unsigned shared_address(const void* pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// Reads a value that another stream may change, such that the compiler cannot read it a second time.
template <class T>
ECC_DEVICE T load_once(const T* address) {
    if constexpr (sizeof(T) == 8) {
        unsigned long long value;
        asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(address));
        return (T)value;
    } else {
        unsigned value;
        if constexpr (sizeof(T) == 4)
            asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address));
        else if constexpr (sizeof(T) == 2)
            asm volatile("ld.global.u16 %0, [%1];" : "=r"(value) : "l"(address));
        else
            asm volatile("ld.global.u8 %0, [%1];" : "=r"(value) : "l"(address));
        return (T)value;
    }
}

ECC_LOAD(float, "f", shared_float, "ld.shared.f32")
ECC_LOAD(unsigned, "r", shared_word, "ld.shared.b32")
ECC_LOAD(unsigned, "r", shared_byte, "ld.shared.u8")
ECC_LOAD(unsigned short, "h", shared_short, "ld.shared.u16")
ECC_LOAD(long long, "l", shared_long, "ld.shared.s64")

// Returns a key in shared memory, of the type of the second argument.
ECC_DEVICE float shared_key(unsigned address, float) { return shared_float(address); }
ECC_DEVICE int shared_key(unsigned address, int) { return __float_as_int(shared_float(address)); }
ECC_DEVICE long long shared_key(unsigned address, long long) { return shared_long(address); }
ECC_DEVICE double shared_key(unsigned address, double) {
    return __longlong_as_double(shared_long(address));
}

ECC_DEVICE uint2 shared_words(unsigned address) {
    uint2 value;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(value.x), "=r"(value.y)
                 : "r"(address)
                 : "memory");
    return value;
}

ECC_DEVICE void shared_store(unsigned address, unsigned word) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

ECC_DEVICE void shared_store(unsigned address, const unsigned (&words)[4]) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

ECC_DEVICE void shared_load(unsigned address, unsigned (&words)[4]) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

ECC_DEVICE void shared_store(unsigned address, const unsigned (&words)[2]) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(words[0]), "r"(words[1])
                 : "memory");
}

ECC_DEVICE void shared_add(unsigned address, int amount) {
    asm volatile("red.shared.add.s32 [%0], %1;" ::"r"(address), "r"(amount) : "memory");
}

// Adds an amount if `given` holds, without a branch.
ECC_DEVICE void shared_add_if(bool given, unsigned address, int amount) {
    asm volatile(
        "{ .reg .pred given; setp.ne.u32 given, %0, 0; @given red.shared.add.s32 [%1], %2; }" ::"r"(
            (unsigned)given),
        "r"(address), "r"(amount)
        : "memory");
}

// Adds one, by an instruction (ATOMS.POPC.INC) that combines lanes of the same address.
ECC_DEVICE void shared_increment(unsigned address) {
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(address) : "memory");
}

// Stores a number if it is infinite or NaN.
ECC_DEVICE void shared_store_unless_finite(unsigned address, float value) {
    asm volatile(
        "{ .reg .pred finite; .reg .f32 size; abs.f32 size, %1; setp.lt.f32 finite, size, 0f7F800000;"
        " @!finite st.shared.f32 [%0], %1; }" ::"r"(address),
        "f"(value)
        : "memory");
}

// Returns by how much a left shift brings the highest 1 to the sign; the argument is not zero.
ECC_CONVERT(int, "=r", unsigned, "r", shift_to_sign, "bfind.shiftamt.u32")

// Returns all 64 bits of a product, by one instruction.
ECC_DEVICE long long product(int a, int b) {
    long long result;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(result) : "r"(a), "r"(b));
    return result;
}

// Returns the lane, which is read again each time, so that values computed from it need not stay in
// registers.
ECC_DEVICE int lane_index() {
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// Returns the same value such that the compiler does not know its origin, and cannot split its computation.
ECC_DEVICE unsigned computed_once(unsigned value) { return __shfl_xor_sync(0xFFFFFFFFu, value, 0); }

// Starts an asynchronous copy of 4, 8 or 16 bytes to shared memory. After wait_for_copy, a lane sees its
// own copies; others see them after a synchronisation.
template <int bytes>
ECC_DEVICE void copy_ahead(void* to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from),
                 "n"(bytes)
                 : "memory");
}

ECC_DEVICE void end_of_copy() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `copies` of the latest groups of copies have not arrived.
template <int copies>
ECC_DEVICE void wait_for_copy() {
    asm volatile("cp.async.wait_group %0;" ::"n"(copies) : "memory");
}

// Loads the cache line of `address` into L2.
ECC_DEVICE void prefetch(const void* address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}
