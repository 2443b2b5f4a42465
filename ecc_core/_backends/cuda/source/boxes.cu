// Counts the cells of images by the code at which they enter: boxes of one or two points along each
// axis. Images have been recoded (recode.cu), or have 8-bit values that serve as codes.
//
// Points and pairs of neighbours along the columns are counted together. A pair belongs to the point
// that enters last (T: first), so a point is added to its bin as 1 in the low half of a word, and the
// number of its pairs in the high half. Boxes that extend along the rows or slices are points and
// pairs of another image, the greater (T: the smaller) of two rows or slices.
//
// A thread takes four columns of two slices, and moves from slice to slice. A register holds the
// codes of both as half-precision numbers, whose magnitude increases with the code. 512^3 bytes take
// 0.21 ms; cells.cu, which counts any groups, takes 0.44.
#include "device.cuh"

typedef ECC_CODE Code;
typedef unsigned long long Count;

constexpr bool kSuper = ECC_SUPER;       // the largest codes enter first
constexpr bool kUp = ECC_LAST != kSuper;  // boxes belong to their greatest code
constexpr int kAxes = ECC_AXES;
constexpr bool kRaw = ECC_RAW;            // 8-bit values instead of codes
constexpr bool kSigned = ECC_SIGNED;
// Whether the width is a multiple of four, the image is not periodic, and the pairs that cross its last
// border count.
constexpr bool kPlain = ECC_PLAIN;
constexpr int kThreads = ECC_THREADS, kCopies = ECC_COPIES;  // copies of a bin, for different lanes
constexpr int kCapacity = ECC_CAPACITY;   // words of a copy of a histogram
constexpr int kPlaces = 4;
constexpr bool kRows = kAxes == 3, kSlices = kAxes > 1;
constexpr int kWords = 1 << (kAxes - 1);  // images, and words of a bin

// The half-precision number of code 0. Numbers are negative where the smallest code has to be the
// greatest number.
constexpr unsigned kZero = (kRaw ? 0x6500u - kSuper : 0x6401u) | (kUp ? 0u : 0x8000u);
constexpr unsigned kTwice = 0x10001u;
constexpr pair kUnit = kTwice, kMinusUnit = 0x80018001u;  // the smallest numbers, whose bits are 1

struct Boxes {
    const Code* data;
    Count* counts;              // (images, kinds, bins)
    long long batch, slice, row;  // steps between codes
    int depth, height, width;
    // Range of places of the last corner of a unit cube, along slices, rows and columns.
    int first[3], last[3];
    int wraps, bins, never_enters, chunk, across, blocks, units_between_spills;
};

__device__ __forceinline__ pair pair_of(int low, int high) {
    return kZero * kTwice + (unsigned)low + ((unsigned)high << 16);
}

// Codes of four places of a row, and of one on each side.
struct Row {
    pair at[kPlaces + 2];
};

__device__ __forceinline__ Row larger(const Row& a, const Row& b) {
    Row row;
#pragma unroll
    for (int i = 0; i < kPlaces + 2; ++i) row.at[i] = larger_pair(a.at[i], b.at[i]);
    return row;
}

// Codes next to each other in memory.
struct alignas(kPlaces * sizeof(Code)) Quad {
    unsigned words[sizeof(Code)];
};

__device__ __forceinline__ void join(const Quad& low, const Quad& high, Row& row) {
    if constexpr (sizeof(Code) == 1) {
        const unsigned flip = kSigned ? 0x80808080u : 0u;
        const unsigned a = low.words[0] ^ flip, b = high.words[0] ^ flip;
        const unsigned first = permute<0x5140>(a, b), last = permute<0x7362>(a, b);
        constexpr unsigned byte = (kRaw ? 0x65u : 0x64u) | (kUp ? 0u : 0x80u);
        row.at[1] = permute<0x4140>(first, byte);
        row.at[2] = permute<0x4342>(first, byte);
        row.at[3] = permute<0x4140>(last, byte);
        row.at[4] = permute<0x4342>(last, byte);
        if (!kRaw)
#pragma unroll
            for (int i = 1; i <= kPlaces; ++i) row.at[i] += kTwice;
    } else {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            row.at[2 * i + 1] = permute<0x5410>(low.words[i], high.words[i]) + kZero * kTwice;
            row.at[2 * i + 2] = permute<0x7632>(low.words[i], high.words[i]) + kZero * kTwice;
        }
    }
}

// What a thread reads of a row: four columns, and those beside them.
struct Columns {
    int x, end;         // end: columns from x on
    pair left, right;   // what is beside the image, unless it is periodic

    __device__ __forceinline__ Columns(const Boxes& boxes, int x) : x(x), end(boxes.width - x) {
        // Pairs that are not counted belong to a code beyond all others.
        const int beyond = kUp ? boxes.bins : -1, never = boxes.never_enters;
        left = pair_of(boxes.first[2] > 0 ? beyond : never, boxes.first[2] > 0 ? beyond : never);
        const int after = boxes.last[2] <= boxes.width ? beyond : never;
        right = pair_of(after, after);
    }

    __device__ __forceinline__ static pair both(unsigned low, unsigned high) {
        constexpr unsigned flip = kSigned ? 0x80u : 0u;
        return (low ^ flip) + ((high ^ flip) << 16) + (kZero + (kRaw && kSuper)) * kTwice;
    }

    // Reads the row at x in two slices, of which each may be outside.
    __device__ __forceinline__ Row read(const Boxes& boxes, const Code* low, bool has_low,
                                        const Code* high, bool has_high) const {
        const unsigned never = (unsigned)boxes.never_enters;
        const unsigned none = kRaw ? (never - kSuper) ^ (kSigned ? 0x80u : 0u) : never;
        const unsigned word = sizeof(Code) == 1 ? never * 0x01010101u : never * kTwice;
        Quad a, b;
#pragma unroll
        for (int i = 0; i < (int)sizeof(Code); ++i) a.words[i] = b.words[i] = word;
        unsigned before[2] = {none, none}, behind[2] = {none, none};
        if (has_low) {
            a = *(const Quad*)low;
            if (x > 0) before[0] = low[-1];
            if (end > kPlaces) behind[0] = low[kPlaces];
        }
        if (has_high) {
            b = *(const Quad*)high;
            if (x > 0) before[1] = high[-1];
            if (end > kPlaces) behind[1] = high[kPlaces];
        }
        Row row;
        join(a, b, row);
        if (kRaw && !(has_low && has_high))
#pragma unroll
            for (int i = 1; i <= kPlaces; ++i) {
                const pair never_enters = pair_of(boxes.never_enters, boxes.never_enters);
                if (!has_low) row.at[i] = (row.at[i] & 0xFFFF0000u) | (never_enters & 0xFFFFu);
                if (!has_high) row.at[i] = (row.at[i] & 0xFFFFu) | (never_enters & 0xFFFF0000u);
            }
        row.at[0] = x > 0 ? both(before[0], before[1]) : left;
        row.at[kPlaces + 1] = end > kPlaces ? both(behind[0], behind[1]) : right;
        if (kPlain) return row;
        if (boxes.wraps && x == 0)
            row.at[0] = both(has_low ? low[boxes.width - 1] : none,
                             has_high ? high[boxes.width - 1] : none);
        if (boxes.wraps && end == kPlaces)
            row.at[kPlaces + 1] = both(has_low ? low[-x] : none, has_high ? high[-x] : none);
        if (end < kPlaces)
#pragma unroll
            for (int i = 2; i <= kPlaces; ++i)
                if (end == i - 1) row.at[i] = right;
        return row;
    }
};

// The address of the bin of the low (0) or high (1) code of a pair.
template <int half>
__device__ __forceinline__ unsigned address(pair codes, unsigned shared) {
    return dot_halves(codes, 4u * kCopies << 8 * half, shared);
}

// Adds the points and pairs of four places to one of the lane's histograms. If `end` is 0 to 3, the
// point at this place is not counted, but its pairs are.
template <int word>
__device__ __forceinline__ void count(const Row& row, unsigned shared, int end) {
    constexpr unsigned offset = word * kCapacity * kCopies * 4u;
    pair right[kPlaces + 1];  // 1 where a pair belongs to its right point
#pragma unroll
    for (int i = 0; i <= kPlaces; ++i) right[i] = subtract_saturated(row.at[i + 1], row.at[i]);
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
        const pair pairs = multiply_add_pairs(
            right[i], kUnit, multiply_add_pairs(right[i + 1], kMinusUnit, kUnit));
        shared_add(address<0>(row.at[i + 1], shared) + offset, (int)(pairs * 0x10000u + 1u));
        shared_add(address<1>(row.at[i + 1], shared) + offset,
                   (int)select_bits<0xFFFF0000u>(pairs, 1u));
    }
    if (kPlain || end < 0 || end >= kPlaces) return;
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
        if (i != end) continue;
        shared_add(address<0>(row.at[i + 1], shared) + offset, -1);
        shared_add(address<1>(row.at[i + 1], shared) + offset, -1);
    }
}

// Adds all counts to those of the image. Called by all threads.
__device__ __forceinline__ void spill(const Boxes& boxes, unsigned* shared, Count* counts) {
    __syncthreads();
    const int levels = boxes.bins - 1, from = boxes.never_enters == 0;
    for (int i = threadIdx.x; i < kWords * levels; i += kThreads) {
        const int word = i / levels, code = i - word * levels + from;
        const unsigned* const copies = shared + (word * kCapacity + code + 1) * kCopies;
        Count points = 0, pairs = 0;
        for (int k = 0; k < kCopies; ++k) {
            const unsigned sum = copies[(k + i) & (kCopies - 1)];
            points += sum & 0xFFFFu, pairs += sum >> 16;
        }
        Count* const at = counts + (long long)2 * word * boxes.bins + code;
        if (points) atomicAdd(at, points);
        if (pairs) atomicAdd(at + boxes.bins, pairs);
    }
    __syncthreads();
}

__device__ __forceinline__ void clear(unsigned* shared) {
    for (int i = threadIdx.x; i < kWords * kCapacity * kCopies; i += kThreads) shared[i] = 0;
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, 1) count_boxes(const Boxes boxes) {
    extern __shared__ uint4 memory[];
    unsigned* const shared = (unsigned*)memory;
    clear(shared);
    const int image = blockIdx.x / boxes.blocks, block = blockIdx.x % boxes.blocks;
    Count* const counts = boxes.counts + (long long)image * 2 * kWords * boxes.bins;
    const unsigned mine = shared_address(shared + threadIdx.x % kCopies) -
                          (kZero - 1) * 4u * kCopies;
    const int down = boxes.last[1] - boxes.first[1], slices = boxes.last[0] - boxes.first[0];
    const int chunks = (slices + 2 * boxes.chunk - 1) / (2 * boxes.chunk);
    const long long units = (long long)boxes.across * down * chunks;
    const Code* const data = boxes.data + image * boxes.batch;
    // The last slice whose cells are counted, and the last one that is read.
    const int last = boxes.last[0] - 1;
    const int deepest = min(last, !kPlain && boxes.wraps ? boxes.depth : boxes.depth - 1);
    int done = 0;
    for (long long begin = (long long)block * kThreads; begin < units;
         begin += (long long)boxes.blocks * kThreads) {
        const long long unit = begin + threadIdx.x;
        const long long line = unit / boxes.across;
        const int x = unit < units ? (int)(unit - line * boxes.across) * kPlaces : boxes.width;
        const int y = boxes.first[1] - 1 + (int)(line % down);
        int low = boxes.first[0] - 1 + (int)(line / down) * 2 * boxes.chunk;
        int high = low + boxes.chunk;
        const int end = boxes.last[2] <= boxes.width ? boxes.width - 1 - x : -1;
        const Columns columns(boxes, x);
        const int under = !kPlain && boxes.wraps && y + 1 == boxes.height ? 0 : y + 1;
        const bool here = x < boxes.width && y >= 0, below = x < boxes.width && under < boxes.height;
        const Code* low_at = data + low * boxes.slice + y * boxes.row + x;
        const Code* high_at = low_at + boxes.chunk * boxes.slice;
        const long long down_step = (under - y) * boxes.row;
        // Whether a slice is in the image, or is the first one again in a periodic image.
        const auto has = [&](int place) { return place >= 0 && place <= deepest; };
        const bool has_low = has(low), has_high = has(high);
        Row before = columns.read(boxes, low_at, here && has_low, high_at, here && has_high);
        Row before_below;
        if (kRows)
            before_below = larger(before, columns.read(boxes, low_at + down_step, below && has_low,
                                                       high_at + down_step, below && has_high));
        for (int step = 0; step < boxes.chunk; ++step) {
            ++low, ++high;
            low_at += boxes.slice, high_at += boxes.slice;
            if (!kPlain && boxes.wraps && low == boxes.depth) low_at -= boxes.depth * boxes.slice;
            if (!kPlain && boxes.wraps && high == boxes.depth) high_at -= boxes.depth * boxes.slice;
            if (high > last) {  // beyond the slices of this thread
                const pair never = pair_of(boxes.never_enters, boxes.never_enters);
                const pair kept = low > last ? 0u : 0xFFFFu;
#pragma unroll
                for (int i = 0; i < kPlaces + 2; ++i) {
                    before.at[i] = (before.at[i] & kept) | (never & ~kept);
                    if (kRows) before_below.at[i] = (before_below.at[i] & kept) | (never & ~kept);
                }
            }
            Row after, after_below;
            const bool has_low = low <= deepest, has_high = high <= deepest;
            if (kSlices)
                after = columns.read(boxes, low_at, here && has_low, high_at, here && has_high);
            if (kRows)
                after_below =
                    larger(after, columns.read(boxes, low_at + down_step, below && has_low,
                                               high_at + down_step, below && has_high));
            count<0>(before, mine, end);
            if (kRows) count<1>(before_below, mine, end);
            if (kSlices) count<kRows ? 2 : 1>(larger(before, after), mine, end);
            if (kRows) count<3>(larger(before_below, after_below), mine, end);
            before = after, before_below = after_below;
        }
        if (++done == boxes.units_between_spills) {
            spill(boxes, shared, counts);
            clear(shared);
            done = 0;
        }
    }
    if (done) spill(boxes, shared, counts);
}
