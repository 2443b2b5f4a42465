// Packs a mask into planes of bits.
#include "transform.cuh"

constexpr int kRows = 32, kTurns = 2;                   // Rows of a block, and words of a thread.
constexpr int kWords = ECC_THREADS / (kRows / kTurns);  // Words of a row that a block packs.

ECC_DEVICE unsigned pack_word(const unsigned char* source, int count) {
    unsigned plane = 0;
    if (count == 32 && (unsigned long long)source % 16 == 0) {
        const uint4 low = *(const uint4*)source, high = *(const uint4*)(source + 16);
        const unsigned four[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int i = 7; i >= 0; --i) {
            // `set` has the highest bit of each byte that is not 0; the product has the four bits from bit
            // 28 on.
            const unsigned set = (((four[i] & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | four[i]) & 0x80808080u;
            plane = __funnelshift_l(set * 0x00204081u, plane, 4);
        }
    } else {
        for (int i = 0; i < count; ++i) plane |= (unsigned)(source[i] != 0) << i;
    }
    return plane;
}

// A block packs 32 rows of kWords words, which are 6 so that rows of 128, 512 or 2048 points fill blocks,
// with a word of the border on each side.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    pack(const unsigned char* pixels, const Planes planes, int slices, int rows, int columns) {
    __shared__ unsigned packed[kRows][kWords + 1];
    const unsigned groups = (planes.words + kWords - 1) / kWords, tiles = blockIdx.x / groups;
    const int group = blockIdx.x - tiles * groups;
    const int slice = tiles / (unsigned)planes.tiles, tile = tiles - slice * planes.tiles;
    const int down = threadIdx.x / kWords, across = threadIdx.x - down * kWords;
    const int z = slice - planes.deep, y = kRows * tile + down - 1;
    const int word = kWords * group + across - 1, count = min(32, columns - 32 * word);
    const bool inside = z >= 0 && z < slices && word >= 0 && count > 0;
    const unsigned char* source = pixels + ((long long)z * rows + y) * columns + 32 * word;
#pragma unroll 1
    for (int turn = 0; turn < kTurns; ++turn) {
        const int more = turn * (kRows / kTurns);
        const bool there = inside && y + more >= 0 && y + more < rows;
        const unsigned plane = there ? pack_word(source + (long long)more * columns, count) : 0;
        packed[down + more][across] = plane ^ planes.outside;
    }
    __syncthreads();
    unsigned* to = planes.bits + ((long long)tiles * planes.words + kWords * group) * kRows;
    for (int i = threadIdx.x; i < kRows * min(kWords, planes.words - kWords * group);
         i += ECC_THREADS)
        to[i] = packed[i % kRows][i / kRows];
}
