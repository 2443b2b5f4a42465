// The gradient of images: the coefficient times a function of the value, which is interpolated in a
// table.
#include "soft_levels.cuh"

typedef ECC_ELEMENT Element;
typedef ECC_OUT Out;
constexpr bool kDirectional = ECC_DIRECTIONAL;
constexpr bool kUnit = ECC_UNIT;  // all coefficients are 1, and `packed` is not read
// Small images: each block computes the table of its image, except for the first totals.blocks blocks,
// which sum the gradients of thresholds and sharpness.
constexpr bool kSmall = ECC_SMALL;

struct Image {
    const Element* data;
    // With kDirectional; null for axes that the image does not have.
    const float *offset_z, *offset_y, *offset_x;
    long long strides[4];  // batch, z, y, x, in samples
    int depth, height, width;
};

struct Work {
    float* windows;
    const float* sharpness;  // used by kSmall
    const float2* table;     // (images, slots): value and slope per bin at the start of each bin
    const plane* packed;     // as soft_scan.cu writes it
    Out* out;                // (images, depth, height, width)
    int levels;
    int slots;   // room for each image
    int blocks;  // of each image
    int room;    // words of shared memory for the table
};

struct Lookup {
    const Windows windows;
    const Head head;
    const Window only;
    const float2* table;  // null if it does not fit
    const Totals& totals;
    float sharpness;
    int image;

    // By cubic Hermite interpolation; zero outside of the windows.
    template <bool kOneWindow>
    __device__ __forceinline__ float value(float v) const {
        if (kSmall && !table && v == v)
            return response(windows, totals.upstream, image, totals.levels, sharpness, v, 0.0f).x;
        if (kSmall && !table) return v;
        const Window window = kOneWindow ? only : windows.get(windows.find(v));
        const Place place = locate(v, window, head);
        const int slot = max(place.slot - 1, 0);
        const float u = place.offset + 0.5f;
        const float2 left = table[slot], right = table[slot + 1];
        const float rise = right.x - left.x, cubic = left.y + right.y - 2.0f * rise;
        const float found = left.x + u * (left.y + u * (rise - left.y - cubic + u * cubic));
        return place.inside ? found : head.count < 0 || v != v ? __uint_as_float(0x7FC00000u) : 0.0f;
    }

    // Half a word of points, with their coefficients, the first one in the highest bits.
    template <bool kOneWindow>
    __device__ __forceinline__ void points(plane packed, const float* v, float* found) const {
#pragma unroll
        for (int k = 0; k < kPacked / 2; ++k) {
            const int c = (int)(packed << (4 * k)) >> 28;
            const float looked = (float)(kSuper ? c : -c) * value<kOneWindow>(v[k]);
            found[k] = c ? looked : 0.0f;
        }
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_gather(const Image image, const Work work, const Totals totals) {
    extern __shared__ uint4 memory[];
    if (kSmall && blockIdx.x < totals.blocks) {
        totals.write(blockIdx.x);
        return;
    }
    const unsigned block = kSmall ? blockIdx.x - totals.blocks : blockIdx.x;
    const int index = block / work.blocks;
    const Windows windows(work.windows, work.levels);
    const Head head = *windows.head;
    const float sharpness = kSmall ? work.sharpness[0] : 0.0f;
    const float2* table = kSmall ? nullptr : work.table + (long long)index * work.slots;
    if (2 * head.slots <= work.room) {
        float2* copy = (float2*)memory;
        for (int i = threadIdx.x; i < head.slots - kSmall; i += blockDim.x)
            copy[i] = kSmall ? response_at(windows, head, totals.upstream, index, work.levels,
                                           sharpness, i)
                             : table[i];
        table = copy;
        __syncthreads();
    }
    const Lookup lookup = {windows, head,   head.count == 1 ? windows.get(0) : Window(),
                           table,   totals, sharpness, index};
    const int words = (image.depth + kPacked - 1) / kPacked;
    const long long slice = (long long)image.height * image.width;
    const unsigned width = image.width, height = image.height, total = words * height * width;
    for (unsigned i = block % work.blocks * blockDim.x + threadIdx.x; i < total;
         i += work.blocks * blockDim.x) {
        const unsigned rest = i / width, x = i - rest * width;
        const unsigned y = rest % height, z = rest / height * kPacked;
        const plane packed =
            kUnit ? 0x11111111u : work.packed[(long long)index * total + i];
        Out* out = work.out + ((long long)index * image.depth + z) * slice + y * width + x;
        const int count = min(kPacked, image.depth - (int)z);
        float found[kPacked] = {};
        if (packed) {
            const Element* data = image.data + index * image.strides[0] + z * image.strides[1] +
                                  y * image.strides[2] + x * image.strides[3];
            Element sample[kPacked];
#pragma unroll
            for (int k = 0; k < kPacked; ++k) sample[k] = data[min(k, count - 1) * image.strides[1]];
            const float across = !kDirectional    ? 0.0f
                                 : image.offset_y ? image.offset_y[y] + image.offset_x[x]
                                                  : image.offset_x[x];
            float v[kPacked];
#pragma unroll
            for (int k = 0; k < kPacked; ++k) {
                v[k] = to_real(sample[k]);
                if (kDirectional)
                    v[k] +=
                        (image.offset_z ? image.offset_z[z + min(k, count - 1)] : 0.0f) + across;
                if (kSuper) v[k] = -v[k];
            }
#pragma unroll
            for (int k = 0; k < kPacked; k += kPacked / 2) {
                const plane half = packed << (4 * k) & 0xFFFF0000u;
                if (half && head.count == 1)
                    lookup.points<true>(half, v + k, found + k);
                else if (half)
                    lookup.points<false>(half, v + k, found + k);
            }
        }
#pragma unroll
        for (int k = 0; k < kPacked; ++k)
            if (k < count) store(out + k * slice, found[k]);
    }
}
