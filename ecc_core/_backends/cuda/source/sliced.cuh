// Images of 8-bit types whose samples are compared bit by bit. Rows are multiples of four samples.
//
// A word has the same bit of 32 samples of a column, so that comparing 32 samples with their
// neighbours takes eight logical operations, and the maxima eight more. A warp spans 128 columns,
// four in each lane, and takes 32 rows at a time.
#pragma once
#include "histogram.cuh"
#include "tiling.cuh"

static_assert(kVector, "rows are multiples of four samples");
constexpr int kBits = 8;
constexpr int kRows = 32, kRowBytes = kWarpWidth * kChannels, kBlockBytes = kRows * kRowBytes;
constexpr int kLaneBytes = kLaneWidth * kChannels;
constexpr int kCopyBytes = kWide ? 16 : 4;  // Bytes that a lane copies at a time.
constexpr int kCopyLanes = kWarpWidth / kCopyBytes, kCopyRows = 32 / kCopyLanes;
// Shared memory of a warp: a row that is never written, then a block of rows for each of two slices, or one
// block for all channels.
constexpr int kPad = kRowBytes, kWarpBytes = kPad + (kChannels > 1 ? 1 : 2) * kBlockBytes;
constexpr bool kSigned = Element(-1) < Element(0);

// The samples of a column. Row r is bit 31 - r of each word.
struct Column {
    unsigned bit[kBits];
};

// Returns where b owns the cells that a and b share.
ECC_DEVICE plane owned_by_second(const Column& a, const Column& b) {
    const Column &low = kDown ? b : a, &high = kDown ? a : b;
    plane less = ~low.bit[0] & high.bit[0];
#pragma unroll
    for (int k = 1; k < kBits; ++k) less = logic<kMajorityNotA>(low.bit[k], high.bit[k], less);
    return less;
}

ECC_DEVICE Column choose(plane second, const Column& a, const Column& b) {
    Column chosen;
#pragma unroll
    for (int k = 0; k < kBits; ++k) chosen.bit[k] = logic<kChoice>(second, b.bit[k], a.bit[k]);
    return chosen;
}

// Returns each sample's neighbour in the next row. That of the last row is in the first row of `after`.
ECC_DEVICE Column next_row(const Column& a, const Column& after) {
    Column next;
#pragma unroll
    for (int k = 0; k < kBits; ++k) next.bit[k] = __funnelshift_l(after.bit[k], a.bit[k], 1);
    return next;
}

// The same where the neighbours of the last row are not needed.
struct NoRows {
    ECC_DEVICE NoRows operator[](int) const { return {}; }
};
ECC_DEVICE Column next_row(const Column& a, NoRows) {
    Column next;
#pragma unroll
    for (int k = 0; k < kBits; ++k) next.bit[k] = a.bit[k] << 1;
    return next;
}

// Returns the first column of the next lane.
ECC_DEVICE Column next_lane(const Column& first) {
    Column next;
#pragma unroll
    for (int k = 0; k < kBits; ++k) next.bit[k] = __shfl_down_sync(kWarp, first.bit[k], 1);
    return next;
}

// Does a step of the transposition of the bits of eight words, in each of their bytes: exchanges bits
// between words whose indices differ in the bit `distance`.
template <int distance>
ECC_DEVICE void exchange(unsigned (&words)[8]) {
    constexpr unsigned low = distance == 4   ? 0x0F0F0F0Fu
                             : distance == 2 ? 0x33333333u
                                             : 0x55555555u;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (i & distance) continue;
        const unsigned a = words[i], b = words[i + distance];
        words[i] = select_bits<low>(a, b << distance);
        words[i + distance] = select_bits<low>(a >> distance, b);
    }
}

// Loads a lane's 32 rows of four columns from shared memory.
ECC_DEVICE void load_columns(unsigned address, Column (&out)[kLaneWidth]) {
    unsigned part[4][8];  // Eight rows each, from the last row to the first.
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            part[k][i] = shared_word(address + (kRows - 1 - 8 * k - i) * kRowBytes);
        exchange<4>(part[k]);
        exchange<2>(part[k]);
        exchange<1>(part[k]);
    }
#pragma unroll
    for (int k = 0; k < kBits; ++k) {
        const unsigned a = __byte_perm(part[0][k], part[1][k], 0x5140),
                       b = __byte_perm(part[0][k], part[1][k], 0x7362),
                       c = __byte_perm(part[2][k], part[3][k], 0x5140),
                       d = __byte_perm(part[2][k], part[3][k], 0x7362);
        out[0].bit[k] = __byte_perm(a, c, 0x5410);
        out[1].bit[k] = __byte_perm(a, c, 0x7632);
        out[2].bit[k] = __byte_perm(b, d, 0x5410);
        out[3].bit[k] = __byte_perm(b, d, 0x7632);
    }
    if (kSigned) {
#pragma unroll
        for (int x = 0; x < kLaneWidth; ++x) out[x].bit[kBits - 1] = ~out[x].bit[kBits - 1];
    }
}

// Returns the selector of byte permutation k = 1, 2, ... of those that gather the four samples of a channel
// from the words of a lane. It adds the samples in word k; the first one also takes those in word 0.
__device__ constexpr unsigned selector_of(int channel, int k) {
    unsigned selector = 0;
    for (int x = 0; x < kLaneWidth; ++x) {
        const int byte = kChannels * x + channel, word = byte / 4;
        const int from = word == k ? 4 + byte % 4 : k == 1 ? byte % 4 : x;
        selector |= from << 4 * x;
    }
    return selector;
}

// Sorts the bytes of a lane by channel, in every row: afterwards each word has four columns of a channel.
ECC_DEVICE void separate_channels(unsigned address) {
#pragma unroll 4
    for (int r = 0; r < kRows; ++r, address += kRowBytes) {
        unsigned words[kChannels];
#pragma unroll
        for (int k = 0; k < kChannels; ++k) words[k] = shared_word(address + 4 * k);
#pragma unroll
        for (int channel = 0; channel < kChannels; ++channel) {
            unsigned four = words[0];
#pragma unroll
            for (int k = 1; k < kChannels; ++k)
                four = __byte_perm(four, words[k], selector_of(channel, k));
            shared_store(address + 4 * channel, four);
        }
    }
}

// Compares samples with their right neighbours.
ECC_DEVICE void compare_right(const Column (&p)[kLaneWidth], plane (&right)[kLaneWidth]) {
    const Column next = next_lane(p[0]);
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x)
        right[x] = owned_by_second(p[x], x < kLaneWidth - 1 ? p[(x + 1) % kLaneWidth] : next);
}

// Compares samples with the row below, and the maxima of both rows with their right neighbours. `after` are
// the rows after these, and `bottom` is the last row of the image.
template <class Rows>
ECC_DEVICE void compare_below(const Column (&p)[kLaneWidth], const Rows& after, plane bottom,
                              plane (&below)[kLaneWidth], plane (&right)[kLaneWidth]) {
    Column first_of_next, before;
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) {
        const Column next = next_row(p[x], after[x]);
        below[x] = owned_by_second(p[x], next);
        if (kCubes) below[x] = force(below[x], bottom);
        const Column both = choose(below[x], p[x], next);
        if (x == 0)
            first_of_next = next_lane(both);
        else
            right[x - 1] = owned_by_second(before, both);
        before = both;
    }
    right[kLaneWidth - 1] = owned_by_second(before, first_of_next);
}

// The position of a warp in the image.
struct SlicedPlace {
    plane top, bottom;  // The first and the last row of the image.
    bool last;          // Whether the lane has the last column of the warp or of the image.
    bool inside;        // Whether the lane has any columns of the image.

    // `rest` is the number of rows from the first one of the warp to the last one of the image.
    ECC_DEVICE SlicedPlace(int y, int rest, int left, int width) {
        const int columns = width - left - lane_index() * kLaneWidth;
        top = y == 0 ? 0x80000000u : 0u;
        bottom = rest < kRows ? 0x80000000u >> rest : 0u;
        last = lane_index() == 31 || columns <= kLaneWidth;
        inside = columns > 0;
    }
};

// Computes coefficients in 2-D from the comparisons. `above` is what the rows above give to the first row,
// in the last bit; on return it is what these rows give to the next ones.
ECC_DEVICE void combine(plane (&right)[kLaneWidth], plane (&maxima)[kLaneWidth],
                        const plane (&below)[kLaneWidth], Sides sides, Sides maxima_sides,
                        const SlicedPlace& place, Trits (&above)[kLaneWidth],
                        Numbers3 (&out)[kLaneWidth]) {
    constexpr int end = kLaneWidth - 1;
    if (place.last) right[end] = sides.right, maxima[end] = maxima_sides.right;
    plane left = __shfl_up_sync(kWarp, right[end], 1),
          maxima_left = __shfl_up_sync(kWarp, maxima[end], 1);
    if (lane_index() == 0) left = sides.left, maxima_left = maxima_sides.left;
#pragma unroll
    for (int x = 0; x < kLaneWidth; ++x) {
        const Trits own = {right[x], left};
        const plane kept = kCubes ? below[x] : force(below[x], place.bottom);
        const Trits lost = {maxima_left & ~kept, maxima[x] & ~kept};
        const Trits given = {maxima_left & below[x], maxima[x] & below[x]};
        Trits got = {__funnelshift_r(given.plus, above[x].plus, 1),
                     __funnelshift_r(given.minus, above[x].minus, 1)};
        // The first row of the image is also the row above, and gives everything to itself.
        if (kCubes) got.plus |= own.minus & place.top, got.minus |= own.plus & place.top;
        out[x] = sum(own, lost, got);
        above[x] = given;
        left = right[x], maxima_left = maxima[x];
    }
}

// Copies the rows of a warp to shared memory.
struct SlicedFeed {
    // The first of the rows to ask for, in the warp's columns and in the columns beside it.
    const unsigned char *next, *left, *right;
    int row, rest;                     // Bytes from row to row; rows down to the last one.
    int last_column;                   // The last byte of a row at which a copy may begin.
    unsigned outer_left, outer_right;  // The samples beside the warp in row 31 - lane.

    // Begins at row `y` of a slice, for a warp whose first column is `first`.
    ECC_DEVICE SlicedFeed(const Image& image, const Element* slice, int first, int y)
        : row((int)image.row), rest(image.height - 1 - y) {
        const auto from = (const unsigned char*)slice + product(y, row);
        next = from + kChannels * first;
        last_column = kChannels * (image.width - first) - kCopyBytes;
        left = from + kChannels * max(first - 1, 0);
        right = from + kChannels * min(first + kWarpWidth, image.width - 1);
    }

    // Starts to copy 32 rows. The last row of the image is repeated.
    ECC_DEVICE void ask(char* to) {
        const int lane = lane_index(), first = lane / kCopyLanes;
        to += first * kRowBytes;
#pragma unroll
        for (int part = 0; part < kChannels; ++part) {
            const int column = part * kWarpWidth + lane % kCopyLanes * kCopyBytes;
            const unsigned char* const from = next + min(column, last_column);
#pragma unroll
            for (int r = 0; r < kRows; r += kCopyRows)
                copy_ahead<kCopyBytes>(to + column + r * kRowBytes,
                                       from + product(min(first + r, rest), row));
        }
        end_of_copy();
        ask_beside();
    }

    ECC_DEVICE void ask_beside() {
        const long long beside = product(min(kRows - 1 - lane_index(), rest), row);
        outer_left = load_once(left + beside), outer_right = load_once(right + beside);
    }

    ECC_DEVICE void advance(long long bytes) { next += bytes, left += bytes, right += bytes; }
};

// Returns half-precision codes as in pair_codes.cuh.
ECC_DEVICE pair codes(unsigned low, unsigned high) {
    return ((low | high << 16) ^ (kSigned ? 0x00800080u : 0u)) | 0x64006400u;
}

// Returns the borders of rows that have arrived at the shared address `rows`; lane i has row 31 - i. The
// outer columns are those that were loaded last.
ECC_DEVICE Border border_of(const SlicedFeed& feed, unsigned rows) {
    const unsigned row = rows + (kRows - 1 - lane_index()) * kRowBytes;
    const pair outer = codes(feed.outer_left, feed.outer_right),
               inner = codes(shared_byte(row), shared_byte(row + kRowBytes - kLaneBytes + 3));
    return {__byte_perm(outer, inner, 0x7610), __byte_perm(inner, outer, 0x7610)};
}

// Returns all bits of a side where the image has no column.
ECC_DEVICE Sides outside(int left, int width) {
    return {left == 0 ? ~0u : 0u, left + kWarpWidth >= width ? ~0u : 0u};
}

ECC_DEVICE Sides sides(Border border, Sides outside) {
    const Sides found = sides(border);
    return {kCubes ? found.left | outside.left : found.left & ~outside.left,
            force(found.right, outside.right)};
}

// Returns the row below, which for the last row is the first one of `after`.
ECC_DEVICE Border next_row(Border p, Border after) {
    if (lane_index() == 31) p = after;
    const int lane = (lane_index() + 31) & 31;
    return {__shfl_sync(kWarp, p.a, lane), __shfl_sync(kWarp, p.b, lane)};
}
ECC_DEVICE Border next_row(Border p) {
    return {__shfl_up_sync(kWarp, p.a, 1), __shfl_up_sync(kWarp, p.b, 1)};
}

// Shared memory of a warp: two blocks of rows, of which the second one is copied while the first one is in
// use, or one block that has all channels.
struct Room {
    char* memory;
    unsigned here, there;  // Shared addresses of the lane's columns.

    ECC_DEVICE Room(void* shared, int warp)
        : memory((char*)shared + warp * kWarpBytes + kPad),
          here(shared_address(memory) + lane_index() * kLaneBytes),
          there(here + (kChannels > 1 ? kLaneWidth : kBlockBytes)) {}

    ECC_DEVICE unsigned rows(unsigned block) const { return block - lane_index() * kLaneBytes; }
    ECC_DEVICE char* at(unsigned block) const {
        return memory + (rows(block) - shared_address(memory));
    }
    ECC_DEVICE void turn() {
        const unsigned before = here;
        here = there, there = kChannels > 1 ? here + kLaneWidth : before;
    }
    ECC_DEVICE static void wait() {
        wait_for_copy<0>();
        __syncwarp();
    }
};
