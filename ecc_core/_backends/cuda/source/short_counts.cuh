// Sums of coefficients in the bins of an image.
#pragma once

// Whether a block has sums of its own in shared memory.
constexpr bool kCounts = ECC_COUNTS;

// The sums of a block, two in a word of shared memory. A thread that takes a sum beyond kMost subtracts its
// amount again, before it adds anything else, and adds it in global memory instead. So sums never exceed
// kMost by more than one amount of each thread.
struct ShortCounts {
    static constexpr unsigned kZero = 0x8000u;
    static constexpr int kMost = 1 << 14;
    static_assert(kMost + 8 * ECC_THREADS < (int)kZero, "sums do not fit");
    unsigned* words;
    unsigned long long* counts;
    int last;  // The last bin.

    // Called by all threads, like `flush`.
    ECC_DEVICE ShortCounts(void* memory, unsigned long long* counts, int last)
        : words((unsigned*)memory), counts(counts), last(last) {
        if (!kCounts) return;
        for (int i = threadIdx.x; i <= last / 2; i += blockDim.x) words[i] = kZero * 0x10001u;
        __syncthreads();
    }

    ECC_DEVICE static int sum_of(unsigned word, int shift) {
        return (int)(word >> shift & 0xFFFFu) - (int)kZero;
    }

    ECC_DEVICE void add(int bin, int amount) const {
        const int shift = 16 * (bin & 1);
        const unsigned added = (unsigned)amount << shift;
        const int sum = sum_of(atomicAdd(words + (bin >> 1), added), shift) + amount;
        if (abs(sum) <= kMost) return;
        atomicAdd(words + (bin >> 1), -added);
        atomicAdd(counts + bin, (unsigned long long)(long long)amount);
    }

    // Adds the sums to those in global memory, at the end.
    ECC_DEVICE void flush() const {
        if (!kCounts) return;
        __syncthreads();
        for (int bin = threadIdx.x; bin <= last; bin += blockDim.x) {
            const int sum = sum_of(words[bin >> 1], 16 * (bin & 1));
            if (sum) atomicAdd(counts + bin, (unsigned long long)(long long)sum);
        }
    }
};
