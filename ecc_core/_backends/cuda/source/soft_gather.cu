// Writes the gradient of images. At a point it is the coefficient times a function of the value, which is
// interpolated in a table.
#include "soft_points.cuh"

typedef ECC_OUT Out;
// Small images: each block computes the table of its image, except for the first totals.blocks blocks,
// which sum the gradients of thresholds and sharpness.
constexpr bool kSmall = ECC_SMALL;

struct GatherWork {
    SoftPoints points;
    float* windows;
    const float* sharpness;  // Only with kSmall.
    const float2* table;     // (images, slots): value, and slope per bin, at the start of each bin
    Out* out;                // (images, points)
    int levels;
    int slots;   // The most slots of an image for which there is room.
    int blocks;  // Blocks of each image.
    int room;    // Words of shared memory for the table.
};

ECC_DEVICE void store(float* to, float v) { *to = v; }
ECC_DEVICE void store(Half* to, float v) { to->bits = to_half(v); }
ECC_DEVICE void store(BFloat* to, float v) { to->bits = to_bfloat(v); }

struct Lookup {
    const Windows windows;
    const Head head;
    const Window only;
    const float2* table;  // kSmall: null if it does not fit.
    const Totals& totals;
    float sharpness;
    int image;

    // Interpolates by cubic Hermite polynomials. The result is zero outside of the windows.
    ECC_DEVICE float value(float v) const {
        if (kSmall && !table && v == v)
            return response(windows, totals.upstream, image, totals.levels, sharpness, v, 0.0f).x;
        if (kSmall && !table) return v;
        const Window window = head.count == 1 ? only : windows.get(windows.find(v));
        const BinPlace place = locate(v, window, head);
        const int slot = max(place.slot - 1, 0);
        const float u = place.offset + 0.5f;
        const float2 left = table[slot], right = table[slot + 1];
        const float rise = right.x - left.x, cubic = left.y + right.y - 2.0f * rise;
        const float found = left.x + u * (left.y + u * (rise - left.y - cubic + u * cubic));
        return place.inside               ? found
               : head.count < 0 || v != v ? __uint_as_float(0x7FC00000u)
                                          : 0.0f;
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_gather(const GatherWork work, const Totals totals) {
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
                           table,   totals, sharpness,
                           index};
    const SoftPoints points = work.points.of(index);
    Out* const out = work.out + index * points.count;
    for (int turn = block % work.blocks; turn < points.turns(); turn += work.blocks) {
        int c[kEach];
        float v[kEach];
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            const long long i = points.at(turn, k);
            c[k] = i < points.count ? points.coefficients[i] : 0;
        }
#pragma unroll
        for (int k = 0; k < kEach; ++k) v[k] = c[k] ? points.value(points.at(turn, k)) : 0.0f;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            const long long i = points.at(turn, k);
            const float found = c[k] ? (float)(kSuper ? c[k] : -c[k]) * lookup.value(v[k]) : 0.0f;
            if (i < points.count) store(out + i, found);
        }
    }
}
