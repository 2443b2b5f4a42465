// Images that have been recoded (recode.cu).
#pragma once

typedef ECC_CODE Code;

// Codes next to each other in memory.
struct alignas(4 * sizeof(Code) < 16 ? 4 * sizeof(Code) : 16) FourCodes {
    Code v[4];
};
