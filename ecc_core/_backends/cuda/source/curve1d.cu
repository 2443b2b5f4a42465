// The Euler characteristic curve of long 1-D images: with g(x) = [X(x) before X(x + 1)], where
// nothing is before the first sample and all is before the end, c(x) = g(x) - g(x - 1).
//
// A lane takes 16 bytes at a time. Only samples with a coefficient look for their bin.
#include "sides.cuh"

constexpr int kEach = 16 / sizeof(Element);  // samples of a lane
constexpr int kSpan = 32 * kEach;
constexpr int kGroups = 4;  // loads on their way

struct __align__(16) Sixteen {
    Element v[kEach];
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.x / result.blocks, block = blockIdx.x % result.blocks;
    const int lane = threadIdx.x & 31, warp = uniform(threadIdx.x >> 5), warps = blockDim.x >> 5;
    Histogram histogram = {0, result.counts_of(index, bins.count + 1), bins.count + 1, result.copies,
                           lane & (result.copies - 1)};
    const SharedLayout layout = lay_out(memory, bins);
    histogram.counts = layout.counts;
    histogram.clear();
    __syncthreads();

    const Element* const data = image.data + index * image.batch;
    const int width = image.width, spans = (width + kSpan - 1) / kSpan;
    const int step = result.blocks * warps;
    FiniteCheck check;
    for (int first = block * warps + warp; first < spans; first += kGroups * step) {
        Sixteen own[kGroups];
        Element beside[kGroups];  // of lanes 0 and 31: the sample before and the one behind the warp's
#pragma unroll
        for (int k = 0; k < kGroups; ++k) {
            const int x = min(first + k * step, spans - 1) * kSpan + lane * kEach;
            if (kWide && x + kEach <= width) {
                own[k] = *(const Sixteen*)(data + x);
            } else {
#pragma unroll
                for (int i = 0; i < kEach; ++i) own[k].v[i] = data[min(x + i, width - 1)];
            }
            if (lane % 31 == 0)
                beside[k] = data[lane ? min(x + kEach, width - 1) : max(x - 1, 0)];
        }
#pragma unroll
        for (int k = 0; k < kGroups; ++k) {
            const int span = first + k * step;
            if (span >= spans) continue;
            const int x = span * kSpan + lane * kEach;
            Key key[kEach];
#pragma unroll
            for (int i = 0; i < kEach; ++i) key[i] = admit(own[k].v[i]);
            const Key other = lane % 31 == 0 ? admit(beside[k]) : key[0];
            Key right = from_right(key[0]);
            if (lane == 31) right = other;
            unsigned g = 0;  // bit kEach - 1 - i is g(x + i)
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                push(g, key[i], i < kEach - 1 ? key[(i + 1) % kEach] : right);
                if (kNan == kNanReport) check.see(key[i]);
            }
            unsigned before = 0;  // g(x - 1)
            push(before, other, key[0]);
            const unsigned left = __shfl_up_sync(kWarp, g, 1) & 1u;
            before = x == 0 ? 0u : lane == 0 ? before : left;
            const int inside = min(max(width - x, 0), kEach);
            if (inside > 0 && x + inside == width) g |= 1u << (kEach - inside);
            const unsigned shown = inside ? ~0u << (kEach - inside) & ((1u << kEach) - 1) : 0u;
            const unsigned events = (g ^ (g >> 1 | before << (kEach - 1))) & shown;
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                const int bit = kEach - 1 - i;
                if (events >> bit & 1u)
                    histogram.add(bin_of(key[i], bins, layout.thresholds, layout.table),
                                  g >> bit & 1u ? 1 : -1);
            }
        }
    }
    finish(histogram, result, index, check.failed());
}
