// The Euler characteristic of images of bytes at one threshold: 32 points are bits of a word, and the
// cells of a kind are those of which all vertices (V), or any cube (T), are in the set.
//
// A thread has a word of columns, and in volumes some rows, and goes through rows (slices). With every
// point it counts the cells that reach from there to the points before it, so it goes to one row,
// column and slice beyond the image, where nothing is in the set.
#include "options.cuh"
#include "running_sum.cuh"

constexpr bool kFlat = ECC_FLAT;
constexpr int kRows = kFlat ? 1 : 4;  // of a thread

// As in number.py. In images of two axes a slice is a row.
struct Bytes {
    const unsigned char* data;
    unsigned long long* sums;  // (images,); zero at launch
    long long batch, slice, row;
    int images, depth, height, width;
    int across, down, chunk;    // words of a row, threads along y, slices of a thread
    unsigned bias, least, high;  // a byte is in the set if (byte ^ bias) >= least; four at a time
    unsigned flip;               // all ones: if it is not
    int sign;
};

struct Word {
    unsigned own, along;  // the points; the cells along x that reach back from them
};

__device__ __forceinline__ unsigned join(unsigned a, unsigned b) { return kCubes ? a | b : a & b; }
__device__ __forceinline__ Word join(Word a, Word b) {
    return {join(a.own, b.own), join(a.along, b.along)};
}
__device__ __forceinline__ int count(Word word) { return __popc(word.own) - __popc(word.along); }

// Bit 7 of each byte tells whether it is in the set. `least` has 128 less the last seven bits of the
// least byte, `high` all ones where that is below 128.
__device__ __forceinline__ unsigned compare(const Bytes& image, unsigned four) {
    four ^= image.bias;
    const unsigned low = (four & 0x7F7F7F7Fu) + image.least;
    return ((low & four) | (image.high & (low | four))) ^ image.flip;
}

__device__ __forceinline__ unsigned bits_of(const Bytes& image, uint4 bytes) {
    const unsigned words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        bits |= (compare(image, words[i]) & 0x80808080u) * 0x00204081u >> 28 << (4 * i);
    return bits;
}

// What a thread has of a slice: rows, and the cells that reach back from them along y.
struct Slice {
    Word rows[kRows], pairs[kRows];
};

struct Reader {
    const Bytes& image;
    const unsigned char* data;
    int x, y;

    __device__ __forceinline__ Word word(int s, int row) const {
        const bool inside =
            s >= 0 && s < image.depth && row >= 0 && row < image.height && x - 1 < image.width;
        const unsigned char* at = data + s * image.slice + row * image.row + x;
        uint4 half[2] = {};
        unsigned left = 0, own = 0;
        if (inside && x + 16 <= image.width) half[0] = *(const uint4*)at;
        if (inside && x + 32 <= image.width) half[1] = *(const uint4*)(at + 16);
        if (inside && x > 0) left = compare(image, at[-1]) >> 7 & 1u;
        if (inside && x + 16 <= image.width) own = bits_of(image, half[0]);
        if (inside && x + 32 <= image.width) own |= bits_of(image, half[1]) << 16;
        return {own, join(own, own << 1 | left)};
    }

    __device__ __forceinline__ Slice slice(int s) const {
        Slice slice;
        Word last = {};
        if (!kFlat) last = word(s, y - 1);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            slice.rows[r] = word(s, y + r);
            if (!kFlat) slice.pairs[r] = join(last, slice.rows[r]);
            last = slice.rows[r];
        }
        return slice;
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS) number(const Bytes image) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const int chunks = image.depth / image.chunk + 1;  // up to the slice beyond
    const long long unit = (long long)blockIdx.x * ECC_THREADS + threadIdx.x;
    const long long rest = unit / image.across, above = rest / image.down;
    const int index = (int)(above / chunks);
    int sum = 0;
    if (index < image.images) {
        const Reader reader = {image, image.data + index * image.batch,
                               (int)(unit - rest * image.across) * 32,
                               (int)(rest - above * image.down) * kRows};
        const int begin = (int)(above - (long long)index * chunks) * image.chunk;
        const int end = min(begin + image.chunk, image.depth + 1);
        Slice before = reader.slice(begin - 1);
#pragma unroll 4
        for (int s = begin; s < end; ++s) {
            const Slice own = reader.slice(s);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                sum += count(own.rows[r]) - count(join(before.rows[r], own.rows[r]));
                if (!kFlat)
                    sum += count(join(before.pairs[r], own.pairs[r])) - count(own.pairs[r]);
            }
            before = own;
        }
    }
    // Threads of a block may have different images.
    if (image.images > 1) {
        if (sum) atomicAdd(image.sums + index, (unsigned long long)(long long)(image.sign * sum));
        return;
    }
    const int warp = running_sum(sum, threadIdx.x & 31);
    if ((threadIdx.x & 31) == 31 && warp) atomicAdd(&total, warp);
    __syncthreads();
    if (threadIdx.x == 0 && total)
        atomicAdd(image.sums, (unsigned long long)(long long)(image.sign * total));
}
