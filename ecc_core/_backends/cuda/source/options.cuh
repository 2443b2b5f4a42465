// Options of kernels that are fixed when they are compiled, as constants. kernels.py, recipe.py and the
// callers of plan_call choose the ECC_ macros.
#pragma once

// The order in which values are compared. "Up": a cell belongs to its greatest point.
// V sublevel and T superlevel go up, the other two down.
constexpr bool kDown = ECC_DOWN;
// Points are closed cubes (T-construction), and borders own their outer faces; else vertices.
constexpr bool kCubes = ECC_CUBES;
// Which thresholds admit a value: those from the value up (sublevel), or those up to the value
// (superlevel).
constexpr bool kSuper = ECC_SUPER;

enum NanPolicy { kNanNone = 0, kNanReport = 1, kNanOmit = 2 };
constexpr int kNan = ECC_NAN;
constexpr bool kMask = ECC_MASK;

// Whether samples are read four at a time, which needs aligned rows whose length is a multiple of four.
constexpr bool kVector = ECC_VECTOR;
// Whether rows are also multiples of 16 bytes.
constexpr bool kWide = ECC_VECTOR > 1;

// How a value finds its bin (see bins.cuh).
enum BinRule {
    kUniform = 0,
    kSearch = 1,
    kConsecutive = 2,
    kTable = 3,
    kAffine = 4,
    kCells = 5,
    kComplement = 6,  // As kAffine, for the complements of 16-bit integers.
    kPieces = 7,
};
constexpr int kBins = ECC_BINS;
constexpr bool kIsAffine = kBins == kAffine || kBins == kComplement;
// pairs2d.cu, pairs3d.cu: whether codes are guessed, and corrected by thresholds.
constexpr bool kLooksUp = !kIsAffine && kBins != kTable;
// Whether the thresholds and the table of kCells are copied to shared memory; not used where pairs are
// scanned.
constexpr bool kSharedTable = ECC_SHARED_TABLE;

// pairs2d.cu, pairs3d.cu: whether there are more codes than 1025, and how often the table of thresholds is
// repeated.
#ifndef ECC_MANY_CODES
#define ECC_MANY_CODES 0
#define ECC_TABLE_COPIES 1
#endif
#ifndef ECC_FOUND
#define ECC_FOUND 0
#endif
constexpr bool kManyCodes = ECC_MANY_CODES;
constexpr int kTableCopies = ECC_TABLE_COPIES;
constexpr bool kFound = ECC_FOUND;  // kUniform: a kernel has written the line that guesses follow.
constexpr int kLineCopies = kTableCopies < 16 ? kTableCopies : 16;

// samples.cuh: values are those along a direction, in double precision.
#ifndef ECC_DIRECTIONAL
#define ECC_DIRECTIONAL 0
#endif
constexpr bool kDirectional = ECC_DIRECTIONAL;

// pairs2d.cu: a block takes one image of a batch after the other, and a warp spans the whole width.
constexpr bool kBatch = ECC_BATCH;

// pairs2d.cu: the number of rows of images of a few long rows, of which a warp takes several tiles at once;
// else 0.
#ifndef ECC_LINES
#define ECC_LINES 0
#endif
constexpr bool kLines = ECC_LINES > 0;

// pairs2d.cu, pairs3d.cu: the distance of samples of a row. Beyond 1 it needs kVector.
#ifndef ECC_STEP
#define ECC_STEP 1
#endif
constexpr int kStep = ECC_STEP;

// pairs3d.cu: how many groups of sixteen rows share the lanes of a warp, if images have few columns.
#ifndef ECC_FOLD
#define ECC_FOLD 1
#endif
constexpr int kFold = ECC_FOLD;

// bytes3d.cu, pairs3d.cu: the number of slices if they are the channels of an image, else 1.
#ifndef ECC_CHANNELS
#define ECC_CHANNELS 1
#endif
constexpr int kChannels = ECC_CHANNELS;
