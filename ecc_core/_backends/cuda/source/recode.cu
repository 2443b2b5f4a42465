// The bins of samples as an image of integers, whose curve at every integer is that of the samples.
// So images with a mask, of any strides, type and thresholds, and along a direction, take the
// kernels of 8 and 16 bits.
#include "histogram.cuh"
#include "samples.cuh"

typedef ECC_CODE Code;

struct alignas(4 * sizeof(Code)) FourCodes {
    Code v[4];
};

// kVector: columns are next to each other.
struct Codes {
    Code* data;
    long long strides[4];      // of the samples' axes
    int depth, height, width;  // as many as there are samples, or more that never enter
    long long* not_finite;     // kNanReport: whether a NaN was seen
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    recode(const Samples samples, const Codes codes, const Bins bins) {
    extern __shared__ uint4 memory[];
    const SharedLayout layout = lay_out(memory, bins);
    __syncthreads();
    const Code never_enters = (Code)(kSuper ? 0 : bins.count);
    bool nan = false;
    visit_samples(
        samples, codes.depth, codes.height, codes.width,
        [&](int index, int z, int y, const SampleRow& row, const FourSamples& four) {
            const bool in_row = z < samples.depth && y < samples.height;
            FourCodes code;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int x = four.x + i * four.step;
                const Key key = row.key(four.sample[i], min(x, samples.width - 1));
                bool inside = four.shown[i] && in_row && x < samples.width;
                if (kNan == kNanReport) nan |= inside && is_nan(key);
                if (kNan == kNanOmit) inside = inside && !is_nan(key);
                const int bin = bin_of(key, bins, layout.thresholds, layout.table);
                code.v[i] = inside ? (Code)bin : never_enters;
            }
            Code* const to = codes.data + index * codes.strides[0] + z * codes.strides[1] +
                             y * codes.strides[2];
            if (kVector) {
                *(FourCodes*)(to + four.x) = code;
            } else {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int x = four.x + i * four.step;
                    if (x < codes.width) to[x * codes.strides[3]] = code.v[i];
                }
            }
        });
    if (nan) *codes.not_finite = 1;
}
