// Writes the values of the filtration of images of any strides, with masks and directions, as the other
// kernels of soft curves read them: contiguous, and infinite at points that never enter.
#include "samples.cuh"

typedef ECC_VALUE Value;

struct alignas(16) FourValues {
    Value v[4];
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_values(const Samples samples, Value* out) {
    visit_samples<true>(
        samples, samples.depth, samples.height, samples.width,
        [&](int index, int z, int y, const SampleRow& row, const FourSamples& four) {
            const long long line = ((long long)index * samples.depth + z) * samples.height + y;
            Value* const to = out + line * samples.width + four.x;
            FourValues values;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int x = min(four.x + i * four.step, samples.width - 1);
                values.v[i] = (Value)(four.shown[i] ? row.key(four.sample[i], x) : never(Key()));
            }
            if (kVector) {
                *(FourValues*)to = values;
                return;
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (four.x + i * four.step < samples.width) to[i * four.step] = values.v[i];
        });
}
