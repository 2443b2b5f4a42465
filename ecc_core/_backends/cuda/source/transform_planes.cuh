// The planes of a mask.
#pragma once

// Words of 32 pixels, or of their complement if `outside` is all ones, with a border that is
// outside. Word w of row y of a slice is bits[((slice * tiles + y / 32) * words + w) * 32 + y % 32], so
// that the words of 32 rows lie next to each other.
struct Planes {
    unsigned* bits;
    int deep;  // slices of the border on each side; rows and words have one on each side
    int slices, tiles, words;
    int cubes;
    unsigned outside;
    int sign;  // of the construction, 1 or -1
};
