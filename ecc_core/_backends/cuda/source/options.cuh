// Choices fixed when a kernel is compiled. compile.py defines every ECC_ macro; this file names
// what they mean.
#pragma once

// The order in which values are compared. "Up": a cell belongs to its greatest point.
// V sublevel and T superlevel go up, the other two down.
constexpr bool kDown = ECC_DOWN;
// Points are closed cubes (T-construction), and borders own their outer faces; else vertices.
constexpr bool kCubes = ECC_CUBES;
// Which thresholds admit a value: those above it (sublevel) or those below it (superlevel).
constexpr bool kSuper = ECC_SUPER;

enum NanPolicy { kNanNone = 0, kNanReport = 1, kNanOmit = 2 };
constexpr int kNan = ECC_NAN;
constexpr bool kMask = ECC_MASK;

// Four samples at a time; needs aligned rows whose length is a multiple of four.
constexpr bool kVector = ECC_VECTOR;
// 2: and rows are multiples of 16 bytes.
constexpr bool kWide = ECC_VECTOR > 1;

// How a value finds its bin (see bins.cuh) and where bins are counted (see histogram.cuh).
enum BinRule {
    kUniform = 0,
    kSearch = 1,
    kConsecutive = 2,
    kTable = 3,
    kAffine = 4,
    kCells = 5,
    kComplement = 6,  // kAffine, of the complements of 16-bit integers
    kPieces = 7,
};
constexpr int kBins = ECC_BINS;
constexpr bool kIsAffine = kBins == kAffine || kBins == kComplement;
constexpr bool kLooksUp = !kIsAffine && kBins != kTable;  // pairs: thresholds of codes
enum Store { kShared = 0, kPacked = 1, kGlobal = 2 };
constexpr int kStore = ECC_STORE;
// Whether the thresholds, and the table of kCells, are copied to shared memory.
constexpr bool kSharedTable = ECC_SHARED_TABLE;

// Pairs: whether there are more codes than 1025, and how often the table of thresholds is repeated.
#ifndef ECC_MANY_CODES
#define ECC_MANY_CODES 0
#define ECC_TABLE_COPIES 1
#endif
#ifndef ECC_FOUND
#define ECC_FOUND 0
#endif
constexpr bool kManyCodes = ECC_MANY_CODES;
constexpr int kTableCopies = ECC_TABLE_COPIES;
constexpr bool kFound = ECC_FOUND;  // kUniform: guesses follow a line that is in memory
constexpr int kLineCopies = kTableCopies < 16 ? kTableCopies : 16;

// samples.cuh: values are those along a direction, in double precision.
#ifndef ECC_DIRECTIONAL
#define ECC_DIRECTIONAL 0
#endif
constexpr bool kDirectional = ECC_DIRECTIONAL;

// pairs2d.cu: blocks take images by turns, each alone, and no warp has another beside it.
constexpr bool kBatch = ECC_BATCH;

// pairs3d.cu: groups of sixteen rows that share a warp, each with as many of its lanes, where an image
// has few columns.
#ifndef ECC_FOLD
#define ECC_FOLD 1
#endif
constexpr int kFold = ECC_FOLD;

// bytes3d.cu: slices of which the samples of a column are next to each other, as channels of an image are.
#ifndef ECC_CHANNELS
#define ECC_CHANNELS 1
#endif
constexpr int kChannels = ECC_CHANNELS;

// pairs*.cu and sliced.cuh count by code, in units of 1/16. pairs*.cu keep two codes in a register,
// shorts3d.cu two samples. They say so before all else.
#if defined(ECC_PAIRS) || defined(ECC_BYTES)
constexpr bool kPairs = true;
#else
constexpr bool kPairs = false;
#endif
#if defined(ECC_SHORTS)
constexpr bool kShorts = true;
#else
constexpr bool kShorts = false;
#endif
