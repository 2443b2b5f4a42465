// The Euler characteristic of images of bytes at one threshold. Points are bits, and a cell is in the
// complex if all of its vertices (V), or any of the cubes that contain it (T), are in the set.
//
// A lane has 16 columns of kTall rows, and in volumes goes from slice to slice; a 2-D image is one slice.
// Each point counts the cells that reach from it back to the points before it. T also has cells beyond the
// last points of each axis. Each of these is in the set if its point or cell at the end of the axis is, and
// has the opposite sign: both are left out, where no lane, row or slice lies beyond to count them.
#include "common.cuh"
#include "options.cuh"

constexpr bool kFlat = ECC_FLAT;
constexpr bool kSigned = (ECC_ELEMENT)-1 < 0;
constexpr int kRows = ECC_ROWS;   // Words of a lane in a slice, with bits of rows r and r + kRows.
constexpr int kTall = 2 * kRows;  // Rows of a lane.

// As in scan.py.
struct Bytes {
    const unsigned char* data;
    unsigned long long* sums;  // (images,), 0 at launch; with a reply one word, `start` at launch
    long long* reply;          // Where the number of a single image goes in host memory, or null.
    unsigned long long start;
    long long batch, slice, row;
    int images, depth, height, width;
    int lanes;                   // Lanes of a warp along a row, a power of two.
    int across, down, chunk;     // Warps of a row and of a column of the image; slices of a warp.
    unsigned least, high, flip;  // See `compare`.
    int sign;
};

// With a reply, blocks add their sums and this number to one word, which then also counts the blocks.
constexpr long long kArrival = 1ll << 42;

struct Word {
    unsigned own, along;  // The points; the cells that reach back from them along x.
};

ECC_DEVICE unsigned join(unsigned a, unsigned b) { return kCubes ? a | b : a & b; }
ECC_DEVICE Word join(Word a, Word b) { return {join(a.own, b.own), join(a.along, b.along)}; }

// Returns in bit 7 of each byte whether the sample is in the set: whether it is at least a least byte, or
// with `flip` (all ones) whether it is less. Each byte of `least` is 128 minus the last seven bits of the
// least byte, and `high` is all ones if the least byte is below 128.
ECC_DEVICE unsigned compare(const Bytes& image, unsigned four) {
    const unsigned low = (four & 0x7F7F7F7Fu) + image.least;
    const unsigned own = kSigned ? ~four : four;
    const unsigned reached = (low & own) | (image.high & (low | own));
    return (reached ^ image.flip) & 0x80808080u;
}

// Returns the bits of 16 bytes, times 128.
ECC_DEVICE unsigned bits_of(const Bytes& image, uint4 bytes) {
    unsigned low = __dp4a(compare(image, bytes.x), 0x08040201u, 0u);
    unsigned high = __dp4a(compare(image, bytes.z), 0x08040201u, 0u);
    low = __dp4a(compare(image, bytes.y), 0x80402010u, low);
    high = __dp4a(compare(image, bytes.w), 0x80402010u, high);
    return low + (high << 8);
}

// Bytes of a slice: the row above the lane's rows and these rows, and one byte to the left of the warp's
// columns, of which lane i loads that in row i - 1.
struct Loaded {
    uint4 rows[kTall + 1];
    unsigned char left;
};

// The points of a slice, and the cells that reach back from them along y.
struct NumberSlice {
    Word rows[kRows], pairs[kRows];
};

ECC_DEVICE NumberSlice join(const NumberSlice& a, const NumberSlice& b) {
    NumberSlice both;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
        both.rows[j] = join(a.rows[j], b.rows[j]);
        both.pairs[j] = join(a.pairs[j], b.pairs[j]);
    }
    return both;
}

struct NumberLane {
    const Bytes& image;
    const unsigned char* data;  // The lane's first column and row.
    const unsigned char* left;  // The byte to the left of the warp's columns, or null.
    bool above, first;          // Whether there is a row above; whether the lane is first in a row.
    int rows;                   // Rows from the lane's first one to the end of the image.
    unsigned inside[kRows];     // Points in the image.
    unsigned kept, last_kept;   // Points that are not left out at the end of rows, and of columns.

    ECC_DEVICE NumberLane(const Bytes& image, int index, int across, int down) : image(image) {
        const int lane = threadIdx.x & 31, lanes = image.lanes, place = lane & (lanes - 1);
        const int begin = across * lanes * 16, x = begin + place * 16;
        const int group = lane / lanes, groups = 32 / lanes;
        const int y = (down * groups + group) * kTall, beside = y + lane - 1;
        const bool shown = x < image.width;
        data = image.data + index * image.batch + y * image.row + x;
        first = place == 0, above = shown && y > 0 && y <= image.height;
        rows = shown ? image.height - y : 0;
        const bool has_left = begin > 0 && lane <= kTall && beside >= 0 && beside < image.height;
        left = has_left ? data - x + (lane - 1) * image.row + begin - 1 : nullptr;
#pragma unroll
        for (int j = 0; j < kRows; ++j)
            inside[j] = (j < rows ? 0xFFFFu : 0u) | (j + kRows < rows ? 0xFFFF0000u : 0u);
        kept = kCubes && place == lanes - 1 && x + 16 == image.width ? 0x7FFF7FFFu : ~0u;
        last_kept = kCubes && group == groups - 1 && rows == kTall ? 0xFFFFu : ~0u;
    }

    ECC_DEVICE void load(Loaded& loaded, int s) const {
        const unsigned char* at = data + s * image.slice - image.row;
#pragma unroll
        for (int r = 0; r <= kTall; ++r, at += image.row) {
            loaded.rows[r] = {};
            if (r ? r <= rows : above) loaded.rows[r] = *(const uint4*)at;
        }
        loaded.left = left ? left[s * image.slice] : 0;
    }

    // Returns points with the cells along x; `before` has the bits to the left of the warp.
    ECC_DEVICE Word word(unsigned own, unsigned before) const {
        unsigned carry = __shfl_up_sync(0xFFFFFFFFu, own, 1) >> 15;
        if (first) carry = before;
        return {own, join(own, (own << 1 & 0xFFFEFFFEu) | (carry & 0x00010001u))};
    }

    ECC_DEVICE NumberSlice slice(const Loaded& loaded) const {
        unsigned before = 0;  // It has a bit for each row.
        if (image.across > 1) {
            const bool set = left && (compare(image, loaded.left) & 0x80u);
            before = __ballot_sync(0xFFFFFFFFu, set);
        }
        NumberSlice slice;
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
            const unsigned low = bits_of(image, loaded.rows[j + 1]) >> 7;
            const unsigned high = bits_of(image, loaded.rows[j + 1 + kRows]) << 9;
            const unsigned bits = before >> (j + 1);
            slice.rows[j] = word((low | high) & inside[j], (bits & 1) | bits >> kRows << 16);
        }
        const unsigned top = above ? bits_of(image, loaded.rows[0]) >> 7 : 0u;
        const unsigned bits = (before & 1) | before >> kRows << 16;
        Word last = word(top | slice.rows[kRows - 1].own << 16, bits);
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
            slice.pairs[j] = join(last, slice.rows[j]);
            last = slice.rows[j];
        }
        return slice;
    }

    ECC_DEVICE int count(const NumberSlice& slice) const {
        int sum = 0;
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
            const unsigned all = j == kRows - 1 ? last_kept : ~0u;
            sum += __popc(slice.rows[j].own & kept & all) - __popc(slice.rows[j].along & all);
            sum += __popc(slice.pairs[j].along) - __popc(slice.pairs[j].own & kept);
        }
        return sum;
    }
};

// Returns the sum over slices from `begin` to `end`.
ECC_DEVICE int sum_slices(const NumberLane& lane, int begin, int end) {
    Loaded loaded;
    lane.load(loaded, begin);
    if (kFlat) return lane.count(lane.slice(loaded));
    NumberSlice before = {};
    if (begin > 0) {
        Loaded earlier;
        lane.load(earlier, begin - 1);
        before = lane.slice(earlier);
    }
    int sum = 0;
    for (int s = begin; s < end; ++s) {
        const NumberSlice own = lane.slice(loaded);
        if (s + 1 < end) lane.load(loaded, s + 1);
        sum += lane.count(own) - lane.count(join(before, own));
        before = own;
    }
    if (kCubes && end == lane.image.depth) sum -= lane.count(before);
    return sum;
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS) number(const Bytes image) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const int chunks = (image.depth + image.chunk - 1) / image.chunk;
    const int unit = blockIdx.x * (ECC_THREADS / 32) + threadIdx.x / 32;
    const int rest = unit / image.down, above = rest / image.across;
    const int index = above / chunks, begin = (above - index * chunks) * image.chunk;
    int sum = 0;
    if (index < image.images) {
        const NumberLane lane(image, index, rest - above * image.across, unit - rest * image.down);
        sum = sum_slices(lane, begin, min(begin + image.chunk, image.depth));
        sum = image.sign * __reduce_add_sync(0xFFFFFFFFu, sum);
    }
    if (image.images > 1) {  // Warps of a block may have different images.
        if (threadIdx.x % 32 == 0 && sum)
            atomicAdd(image.sums + index, (unsigned long long)(long long)sum);
        return;
    }
    if (threadIdx.x % 32 == 0 && sum) atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x) return;
    if (!image.reply) {
        if (total) atomicAdd(image.sums, (unsigned long long)(long long)total);
        return;
    }
    const unsigned long long own = (unsigned long long)(kArrival + total);
    const long long sum_of_all = (long long)(atomicAdd(image.sums, own) + own - image.start);
    const long long arrived = (sum_of_all + kArrival / 2) / kArrival;  // No sum is half as large.
    if (arrived == gridDim.x) *(volatile long long*)image.reply = sum_of_all - arrived * kArrival;
}
