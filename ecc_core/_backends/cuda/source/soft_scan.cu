// From images to the moments of their critical points in the slots of their values (see soft.cuh),
// and to coefficients, packed, that the gradient is made from.
//
// A block holds a tile of columns in shared memory, a thread one column of kOwn points and what is
// next to it. Tiles overlap by one column on each side, whose threads only help their neighbours.
typedef ECC_REAL Real;
#include "soft_planes.cuh"

typedef ECC_ELEMENT Element;
constexpr bool kSuper = ECC_SUPER;
constexpr bool kMask = ECC_MASK;
constexpr bool kDirectional = ECC_DIRECTIONAL;
constexpr bool kDeposit = ECC_DEPOSIT;  // whether moments are wanted

struct Image {
    const Element* data;
    const unsigned char* mask;
    // kDirectional; null along axes that the image does not have
    const Real *offset_z, *offset_y, *offset_x;
    long long strides[4];                   // batch, z, y, x, in samples
    long long mask_strides[4];
    int depth, height, width;
};

struct Tiling {
    int across, down, chunks;  // units along x, y, z; in flat images a row of a block is a chunk
    int blocks;                // an image
    int room;                  // words of shared memory for moments
    int flush;                 // units between two additions to global memory
    float scale;               // of the first moment; the second's is twice as large, and so on
};

struct Work {
    float* windows;
    long long* moments;  // (images, kMoments * slots + 1), zero: moment after moment; the last
                         // one tells that NaN was seen
    plane* packed;       // (images, depth / kPacked rounded up, height, width), or null
    int levels;
    int slots;  // room of an image
};

// A column of the image; one outside is that at the border, and `inside` is false.
struct Column {
    const Element* data;
    const unsigned char* mask;
    Real offset;
    bool inside;
};

__device__ __forceinline__ Real infinity() { return (Real)__uint_as_float(0x7F800000u); }

__device__ __forceinline__ Column find_column(const Image& image, int index, int y, int x) {
    const int row = min(max(y, 0), image.height - 1), place = min(max(x, 0), image.width - 1);
    Column column = {image.data, image.mask, 0, row == y && place == x};
    column.data += index * image.strides[0] + row * image.strides[2] + place * image.strides[3];
    if (kMask)
        column.mask += index * image.mask_strides[0] + row * image.mask_strides[2] +
                       place * image.mask_strides[3];
    if (kDirectional)
        column.offset =
            kFlat ? image.offset_x[place] : image.offset_y[row] + image.offset_x[place];
    return column;
}

// Values of the sublevel filtration from z on; points that are not there never enter. Loads do not
// depend on conditions, so that they are all on their way at once.
__device__ __forceinline__ void load(const Image& image, const Column& column, int z,
                                     Real (&v)[kSteps]) {
    Element sample[kSteps];
    unsigned char kept[kSteps];
    Real offset[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
        const int at = min(max(z + i, 0), image.depth - 1);
        sample[i] = column.data[at * image.strides[1]];
        if (kMask) kept[i] = column.mask[at * image.mask_strides[1]];
        if (kDirectional) offset[i] = image.offset_z ? image.offset_z[at] : (Real)0;
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
        Real number = to_real(sample[i]);
        if (kDirectional) number += offset[i] + column.offset;
        number = (kSuper ? -number : number) + (Real)0;  // no -0: it would not be equal to 0
        const bool there = column.inside && (unsigned)(z + i) < (unsigned)image.depth;
        v[i] = there && (!kMask || kept[i]) ? number : infinity();
    }
}

__device__ __forceinline__ void add_to_global(long long* moments, int at, long long amount) {
    if (amount) atomicAdd((unsigned long long*)moments + at, (unsigned long long)amount);
}

struct Deposit {
    const Windows windows;
    const Head head;
    const Window only;
    int* counts;
    long long* moments;
    int room;  // slots of an image in global memory
    bool shared;
    float scale;

    __device__ __forceinline__ void add(int moment, int slot, int amount) const {
        if (shared)
            atomicAdd(counts + moment * head.slots + slot, amount);
        else
            add_to_global(moments, moment * room + slot, amount);
    }

    template <bool kOneWindow>
    __device__ __forceinline__ void point(float v, int c) const {
        if (v >= infinity()) return;
        const Window window = kOneWindow ? only : windows.get(windows.find(v));
        const Place place = locate(v, window, head);
        add(0, place.slot, c);
        if (!place.inside) return;
        const float first = place.offset * scale, twice = 2.0f * place.offset;
        add(1, place.slot, c * to_int(first + kRound));
        add(2, place.slot, c * to_int(first * twice + kRound));
        add(3, place.slot, c * to_int(first * twice * twice + kRound));
    }

    // The points from step `step` on, of the coefficients in a word.
    template <bool kOneWindow>
    __device__ __forceinline__ void points(plane packed, const Tile& tile, int step) const {
        while (packed) {
            const int i = __clz(packed) >> 2;
            const int c = (int)(packed << (4 * i)) >> 28;
            packed &= (1u << (28 - 4 * i)) - 1u;
            const Real key = tile.own(step + i);
            point<kOneWindow>(kCubes ? -key : key, c);
        }
    }

    __device__ __forceinline__ void flush() const {
        if (!shared) return;
        __syncthreads();
        for (int slot = threadIdx.y * kLanes + threadIdx.x; slot < head.slots;
             slot += blockDim.y * kLanes) {
#pragma unroll
            for (int moment = 0; moment < kMoments; ++moment) {
                int& count = counts[moment * head.slots + slot];
                add_to_global(moments, moment * room + slot, count);
                count = 0;
            }
        }
        __syncthreads();
    }
};

__device__ __forceinline__ void wait_for_tile() {
    if (kFlat)
        __syncwarp();
    else
        __syncthreads();
}

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_scan(const Image image, const Tiling tiling, const Work work) {
    extern __shared__ uint4 memory[];
    const int rows = blockDim.y, row = threadIdx.y, lane = threadIdx.x;
    const int threads = rows * kLanes, thread = row * kLanes + lane;
    const int index = blockIdx.x / tiling.blocks;
    Real* keys = (Real*)memory + kPadding;
    plane* exchange = (plane*)(keys + kSteps * threads + kPadding);
    int* counts = (int*)(exchange + (kFlat ? 0 : kExchanged * threads));
    const Tile tile = {keys, rows, row, lane};

    const Windows windows(work.windows, work.levels);
    Head head = {0, 0, 0.0f, 0.0f};
    if (kDeposit) head = *windows.head;
    long long* moments = work.moments + (long long)index * (kMoments * work.slots + 1);
    const Window only = head.count == 1 ? windows.get(0) : Window();
    const bool shared = kMoments * head.slots <= tiling.room;
    const Deposit deposit = {windows, head,       only,   counts,
                             moments, work.slots, shared, tiling.scale};
    if (kDeposit && shared)
        for (int i = thread; i < kMoments * head.slots; i += threads) counts[i] = 0;
    __syncthreads();

    const int words = (image.depth + kPacked - 1) / kPacked;
    const int units = tiling.across * tiling.down *
                      (kFlat ? (tiling.chunks + rows - 1) / rows : tiling.chunks);
    bool nan = false;
    int waiting = 0;
    for (int unit = blockIdx.x % tiling.blocks; unit < units; unit += tiling.blocks) {
        const int rest = unit / tiling.across;
        const int x = unit % tiling.across * (kLanes - 2) + lane - 1;
        const int y = kFlat ? 0 : rest % tiling.down * (rows - 2) + row - 1;
        const int z = (kFlat ? rest * rows + row : rest / tiling.down) * kOwn;
        const Column column = find_column(image, index, y, x);
        Real v[kSteps];
        load(image, column, z - 1, v);
        plane present = ~0u;
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            nan |= v[step] != v[step];
            tile.own(step) = kCubes ? (Real)0 - v[step] : v[step];
            if (kMask && step > 0 && step <= kOwn && v[step] >= infinity())
                present &= ~(1u << (kOwn - step));
        }
        wait_for_tile();
        Digits c = coefficients(compare(tile, exchange));
        if (kMask) c = {c.b0 & present, c.b1 & present, c.b2 & present, c.b3 & present};
        const bool own = column.inside && lane > 0 && lane < kLanes - 1 &&
                         (kFlat || (row > 0 && row < rows - 1));
#pragma unroll
        for (int first = 0; first < kOwn; first += kPacked) {
            if (!own || z + first >= image.depth) continue;
            const plane packed = c.pack(first);
            const long long word = (long long)index * words + z / kPacked + first / kPacked;
            if (work.packed)
                work.packed[(word * image.height + y) * image.width + x] = packed;
            if (kDeposit && head.count == 1)
                deposit.points<true>(packed, tile, 1 + first);
            else if (kDeposit)
                deposit.points<false>(packed, tile, 1 + first);
        }
        wait_for_tile();
        if (kDeposit && ++waiting == tiling.flush) {
            deposit.flush();
            waiting = 0;
        }
    }
    if (kDeposit) {
        if (waiting) deposit.flush();
        if (nan) moments[kMoments * work.slots] = 1;
    }
}
