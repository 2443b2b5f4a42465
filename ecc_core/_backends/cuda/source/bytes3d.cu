// As pairs3d.cu, for types of 8 bits and rows of a multiple of 16 bytes: the slice before stays in
// shared memory, so that more warps fit.
#define ECC_CACHED
#include "pairs3d.cu"
