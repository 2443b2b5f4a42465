// Planes as coefficients, sixteen rows a lane.
#pragma once
#include "planes.cuh"

// The four planes of a word as eight words: word r holds in its bytes the coefficients of rows r
// and r + 8 of its first column, then of its second.
__device__ __forceinline__ void spread(unsigned b0, unsigned b1, unsigned b2, unsigned b3,
                                       unsigned (&rows)[8]) {
    constexpr unsigned kTwos = 0x55555555u, kFours = 0x33333333u, kUpper = 0xF0F0F0F0u;
    const unsigned even01 = (b0 & kTwos) | ((b1 & kTwos) << 1),
                   odd01 = ((b0 >> 1) & kTwos) | (b1 & ~kTwos);
    const unsigned even23 = (b2 & kTwos) | ((b3 & kTwos) << 1),
                   odd23 = ((b2 >> 1) & kTwos) | (b3 & ~kTwos);
    const unsigned word[4] = {(even01 & kFours) | ((even23 & kFours) << 2),
                              (odd01 & kFours) | ((odd23 & kFours) << 2),
                              ((even01 >> 2) & kFours) | (even23 & ~kFours),
                              ((odd01 >> 2) & kFours) | (odd23 & ~kFours)};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        rows[r] = (word[r] << 4) & kUpper;
        rows[r + 4] = word[r] & kUpper;
    }
}

// The same of both words, where there are events.
__device__ __forceinline__ void spread(const Numbers4& c, plane events, unsigned (&first)[8],
                                       unsigned (&second)[8]) {
    const plane b0 = c.b0 & events, b1 = c.b1 & events, b2 = c.b2 & events, b3 = c.b3 & events;
    spread(b0.a, b1.a, b2.a, b3.a, first);
    spread(b0.b, b1.b, b2.b, b3.b, second);
}
