// Writes the bins of samples as an image of integers, whose curve at every integer is that of the samples.
// Images of any type and strides, with masks, directions and any thresholds can thus be scanned by the
// kernels for 8 and 16 bits.
#include "bins.cuh"
#include "codes.cuh"
#include "samples.cuh"

// Whether the codes of a row of samples lie next to each other in memory.
constexpr bool kAlongRows = ECC_ALONG_ROWS;
// Whether the last samples are repeated beyond the image; else points that never enter are written there.
constexpr bool kRepeat = ECC_REPEAT;

struct Codes {
    Code* data;
    long long strides[4];        // Strides along the samples' axes.
    int depth, height, width;    // At least those of the samples.
    int first;                   // The bin whose code is 0.
    long long* not_finite;       // kNanReport: whether a NaN was seen.
    unsigned long long* ticket;  // kNanReport: as `report` takes it, or null.
};

struct Recoder {
    const Samples& samples;
    const Codes& codes;
    const Bins& bins;
    const SharedTable shared;
    bool nan = false;

    ECC_DEVICE Code code(const SampleRow& row, Element sample, int x, bool shown) {
        const Key key = row.key(sample, min(x, samples.width - 1));
        if (kNan == kNanReport) nan |= shown && is_nan(key);
        if (kNan == kNanOmit) shown = shown && !is_nan(key);
        const Code bin = (Code)(bin_of(key, bins, shared.thresholds, shared.table) - codes.first);
        return shown ? bin : (Code)(kSuper ? 0 : bins.count);
    }

    // `inside` tells whether the slice and the row are in the image.
    ECC_DEVICE FourCodes four_codes(const SampleRow& row, const FourSamples& four, bool inside) {
        FourCodes found;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int x = four.x + i * four.step;
            const bool shown = four.shown[i] && (kRepeat || (inside && x < samples.width));
            found.v[i] = code(row, four.sample[i], x, shown);
        }
        return found;
    }

    ECC_DEVICE void store(Code* row, const FourSamples& four, const FourCodes& code) const {
        if (kVector && kAlongRows) {
            *(FourCodes*)(row + four.x) = code;
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int x = four.x + i * four.step;
                if (x < codes.width) row[x * codes.strides[3]] = code.v[i];
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    recode(const Samples samples, const Codes codes, const Bins bins) {
    extern __shared__ uint4 memory[];
    Recoder recoder = {samples, codes, bins, share_table(memory, bins)};
    __syncthreads();
    visit_samples(samples, codes.depth, codes.height, codes.width,
                  [&](int index, int z, int y, const SampleRow& from, const FourSamples& four) {
                      const bool inside = z < samples.depth && y < samples.height;
                      Code* const row = codes.data + index * codes.strides[0] +
                                        z * codes.strides[1] + y * codes.strides[2];
                      recoder.store(row, four, recoder.four_codes(from, four, inside));
                  });
    if (kNan == kNanReport) report(codes.not_finite, codes.ticket, recoder.nan);
}
