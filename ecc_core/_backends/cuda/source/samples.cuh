// Reads images of any strides with masks, NaN policies and directions, sample by sample. Images of fewer
// axes have size 1 along the first ones.
#pragma once
#include "bins.cuh"

struct Samples {
    const Element* data;
    const unsigned char* mask;
    const double* heights;  // kDirectional: those of slices, then of rows, then of columns.
    double scale;           // Only with kDirectional.
    long long strides[4], mask_strides[4];  // Image, slice, row, column; in samples.
    int images, depth, height, width;
    int lanes, padding;  // Threads that share a row in visit_samples, a power of two.
};

// The samples along a row.
struct SampleRow {
    const Samples& samples;
    const Element* data;
    const unsigned char* mask;
    double height;  // kDirectional: that of the slice and the row.

    ECC_DEVICE SampleRow(const Samples& samples, int index, int z, int y)
        : samples(samples),
          data(samples.data + index * samples.strides[0] + z * samples.strides[1] +
               y * samples.strides[2]),
          mask(samples.mask + index * samples.mask_strides[0] + z * samples.mask_strides[1] +
               y * samples.mask_strides[2]),
          height(0.0) {
        if (kDirectional)
            height = __dadd_rn(samples.heights[z], samples.heights[samples.depth + y]);
    }

    ECC_DEVICE Element load(int x) const { return data[x * samples.strides[3]]; }
    ECC_DEVICE bool shown(int x) const { return !kMask || mask[x * samples.mask_strides[3]]; }

    // Returns sample + scale * height, rounded in the order in which the other backends compute it.
    ECC_DEVICE Key key(Element sample, int x) const {
#if ECC_DIRECTIONAL
        const double across = samples.heights[samples.depth + samples.height + x];
        return __dadd_rn(to_double(sample), __dmul_rn(samples.scale, __dadd_rn(height, across)));
#else
        return to_key(sample);
#endif
    }
};

// Four samples of a row, at columns x, x + step and so on, with kVector next to each other. The last sample
// of the row stands for those beyond it.
struct FourSamples {
    Element sample[4];
    bool shown[4];
    int x, step;

    // kInside: no samples are beyond the row, or the caller does not look at these.
    template <bool kInside = false>
    ECC_DEVICE void load(const SampleRow& row, int first, int apart) {
        const Samples& samples = row.samples;
        x = first, step = apart;
        if (kVector) {
            const int at = min(x, samples.width - 4);
            const bool beyond = !kInside && x >= samples.width;
            const Quad quad = *(const Quad*)(row.data + at);
            const unsigned bytes = kMask ? *(const unsigned*)(row.mask + at) : 0u;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sample[i] = beyond ? quad.v[3] : quad.v[i];
                shown[i] = !kMask || (bytes >> (beyond ? 24 : 8 * i) & 0xFFu);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = min(x + i * step, samples.width - 1);
                sample[i] = row.load(at);
                shown[i] = row.shown(at);
            }
        }
    }
};

// Rows are cut into pieces of so many samples, which the threads of a row visit one by one, as in
// samples.py.
constexpr int kPiece = 1 << 14;

// Calls visit(index, z, y, row, four) for all places up to `depth`, `height` and `width`, which may be
// more than there are samples, unless kInside.
template <bool kInside = false, class Visit>
ECC_DEVICE void visit_samples(const Samples& samples, int depth, int height, int width,
                              const Visit& visit) {
    constexpr int kGroups = 4;  // Groups of four samples that are loaded before the first is used.
    const int pieces = (width + kPiece - 1) / kPiece;
    const long long lines = (long long)samples.images * depth * height * pieces;
    const int lanes = samples.lanes, rows = blockDim.x / lanes, span = 4 * lanes;
    const int lane = threadIdx.x & (lanes - 1), step = kVector ? 1 : lanes;
    for (long long line = (long long)blockIdx.x * rows + threadIdx.x / lanes; line < lines;
         line += (long long)gridDim.x * rows) {
        const long long whole = pieces > 1 ? quotient(line, pieces) : line;
        const int first = (int)(line - whole * pieces) * kPiece, end = min(first + kPiece, width);
        const long long rest = quotient(whole, height);
        const int y = (int)(whole - rest * height), index = (int)quotient(rest, depth);
        const int z = (int)(rest - (long long)index * depth);
        const SampleRow row(samples, index, min(z, samples.depth - 1), min(y, samples.height - 1));
        for (int begin = first + (kVector ? 4 * lane : lane); begin < end;
             begin += kGroups * span) {
            FourSamples four[kGroups];
#pragma unroll
            for (int g = 0; g < kGroups; ++g)
                four[g].template load<kInside>(row, begin + g * span, step);
#pragma unroll
            for (int g = 0; g < kGroups; ++g)
                if (four[g].x < end) visit(index, z, y, row, four[g]);
        }
    }
}

// Returns an integer in the order of the keys, the same for 0 and -0.
ECC_DEVICE int ordinal(float key) {
    const int bits = __float_as_int(subtract_floats(key, -0.0f));
    return bits ^ (bits >> 31 & 0x7FFFFFFF);
}
ECC_DEVICE long long ordinal(double key) {
    const long long bits = __double_as_longlong(__dadd_rn(key, 0.0));
    return bits ^ (bits >> 63 & 0x7FFFFFFFFFFFFFFFll);
}
template <class T>
ECC_DEVICE T ordinal(T key) {
    return key;
}

// Returns the key of an ordinal; the second argument only gives its type.
ECC_DEVICE float key_of(int ordinal, float) {
    return __int_as_float(ordinal ^ (ordinal >> 31 & 0x7FFFFFFF));
}
ECC_DEVICE double key_of(long long ordinal, double) {
    return __longlong_as_double(ordinal ^ (ordinal >> 63 & 0x7FFFFFFFFFFFFFFFll));
}
template <class T>
ECC_DEVICE T key_of(T ordinal, T) {
    return ordinal;
}

typedef decltype(ordinal(Key())) Ordinal;
// Whether there are integers beyond those of all keys, as for floats.
constexpr bool kSpareOrdinals = (Key)0.5f != (Key)0;
