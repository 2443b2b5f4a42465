// Packs a mask into planes of bits.
#include "transform_planes.cuh"

constexpr int kRows = 32, kWords = ECC_THREADS / kRows;  // of a block

__device__ __forceinline__ unsigned pack_word(const unsigned char* source, int count) {
    unsigned plane = 0;
    if (count == 32 && (unsigned long long)source % 16 == 0) {
        const uint4 low = *(const uint4*)source, high = *(const uint4*)(source + 16);
        const unsigned four[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int i = 7; i >= 0; --i) {
            // The highest bit of each byte that is not 0; the product has the four from bit 28 on.
            const unsigned set = (((four[i] & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | four[i]) & 0x80808080u;
            plane = __funnelshift_l(set * 0x00204081u, plane, 4);
        }
    } else {
        for (int i = 0; i < count; ++i) plane |= (unsigned)(source[i] != 0) << i;
    }
    return plane;
}

// A block packs 32 rows of 8 words.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    pack(const unsigned char* pixels, const Planes planes, int slices, int rows, int columns) {
    __shared__ unsigned packed[kRows][kWords + 1];
    const int groups = (planes.words + kWords - 1) / kWords;
    const int group = blockIdx.x % groups, tiles = blockIdx.x / groups;
    const int slice = tiles / planes.tiles, tile = tiles - slice * planes.tiles;
    const int z = slice - planes.deep, y = kRows * tile + (int)(threadIdx.x / kWords) - 1;
    const int word = kWords * group + (int)(threadIdx.x % kWords) - 1, count = min(32, columns - 32 * word);
    unsigned plane = 0;
    if (z >= 0 && z < slices && y >= 0 && y < rows && word >= 0 && count > 0)
        plane = pack_word(pixels + ((long long)z * rows + y) * columns + 32 * word, count);
    packed[threadIdx.x / kWords][threadIdx.x % kWords] = plane ^ planes.outside;
    __syncthreads();
    const int own = kWords * group + (int)(threadIdx.x / kRows), row = threadIdx.x % kRows;
    if (own < planes.words)
        planes.bits[((long long)tiles * planes.words + own) * kRows + row] = packed[row][threadIdx.x / kRows];
}
