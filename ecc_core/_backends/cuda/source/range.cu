// Finds the range of images for the host.
#include "range.cuh"

// Writes the range to the memory of the host: the lower and upper halves of `least` and of `largest`, then
// the sum of 1 if there is a finite value and 2 if there is a NaN.
extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    find_range(const Samples samples, Range* range, volatile long long* reply) {
    Range found = range_of_block(samples);
    if (threadIdx.x || !join_ranges(found, range)) return;
    reply[0] = found.least & 0xFFFFFFFFu, reply[1] = found.least >> 32;
    reply[2] = found.largest & 0xFFFFFFFFu, reply[3] = found.largest >> 32;
    reply[4] = found.some | found.nan << 1;
}
