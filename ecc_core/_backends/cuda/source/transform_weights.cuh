// The coefficients of weighted points: sums of (-1)**dimension * weight over the cells of a point.
//
// Integer weights wrap as on the CPU. Sums of floats are kept in two integers, so that the order of
// addition does not matter: a coefficient is rounded to a multiple of 1 / first_scale, and the rest
// to a multiple of 1 / (first_scale * second_scale). The host chooses scales so that no sum overflows.
#pragma once
#include "transform.cuh"

typedef ECC_WEIGHT Weight;
constexpr int kParts = ECC_PARTS;  // integers of a sum
constexpr unsigned kAll = 0xFFFFFFFFu;

__device__ __forceinline__ Weight magnitude(Weight value) { return value < 0 ? -value : value; }
__device__ __forceinline__ Weight larger(Weight a, Weight b) { return a < b ? b : a; }  // no NaN

// Weights (V) or minus the weights (T), with one more point on both sides of rows, of columns and, if
// the image has them, of slices. Points that do not belong to the complex have the value `absent`,
// negated for T. There it is never a maximum; in V it is the maximum wherever points do not form a cell.
struct Weights {
    const Weight* padded;
    int rows, columns;  // with the padding
    int cubes;
    int sign;       // of the construction, 1 or -1
    Weight absent;  // more than any weight
    double first_scale, second_scale;
};

__device__ __forceinline__ Weight cell(const Weights& image, Weight weight) {
    return magnitude(weight) < image.absent ? weight : 0;
}

// The part of a coefficient within a slice: two points of the row and two of the row beside it.
__device__ __forceinline__ Weight in_slice(const Weights& image, Weight here, Weight far,
                                           Weight below, Weight far_below) {
    const Weight x = larger(here, far), y = larger(here, below),
                 xy = larger(larger(x, below), far_below);
    return cell(image, here) - (cell(image, x) + cell(image, y)) + cell(image, xy);
}

// The four rows that contain the cells of a row of points.
struct WeightLines {
    const Weight *here, *below, *behind, *below_behind;
    Pair pair;  // of columns
    bool deep;

    __device__ __forceinline__ WeightLines(const Weights& image, const Grid& grid, const Owner& owner,
                                     int z, int y)
        : pair(owner.x), deep(grid.z.present) {
        const int near_z = z + (deep ? owner.z.here + 1 : 0);
        const int near_y = y + 1 + (grid.y.present ? owner.y.here : 0);
        const long long down = (long long)(owner.y.far - owner.y.here) * image.columns;
        const long long back =
            (long long)(owner.z.far - owner.z.here) * image.rows * image.columns;
        here = image.padded + ((long long)near_z * image.rows + near_y) * image.columns + 1;
        below = here + down;
        behind = here + back;
        below_behind = behind + down;
    }

    // Operations are in the order of the CPU.
    __device__ __forceinline__ Weight coefficient(const Weights& image, int x) const {
        const int near = x + pair.here, side = x + pair.far;
        const Weight w = here[near], far = here[side], down = below[near], far_down = below[side];
        const Weight own = in_slice(image, w, far, down, far_down);
        if (!deep) return own;
        return own - in_slice(image, larger(w, behind[near]), larger(far, behind[side]),
                              larger(down, below_behind[near]),
                              larger(far_down, below_behind[side]));
    }
};

// A sum, or a coefficient, as integers.
struct Parts {
    Sum part[kParts];
};

__device__ __forceinline__ Parts operator+(const Parts& a, const Parts& b) {
    Parts sum;
#pragma unroll
    for (int i = 0; i < kParts; ++i) sum.part[i] = a.part[i] + b.part[i];
    return sum;
}

__device__ __forceinline__ Parts operator-(const Parts& a, const Parts& b) {
    Parts difference;
#pragma unroll
    for (int i = 0; i < kParts; ++i) difference.part[i] = a.part[i] - b.part[i];
    return difference;
}

__device__ __forceinline__ Parts from_lane(const Parts& sum, int lane) {
    Parts other;
#pragma unroll
    for (int i = 0; i < kParts; ++i) other.part[i] = __shfl_sync(kAll, sum.part[i], lane);
    return other;
}

__device__ __forceinline__ Parts split(const Weights& image, long long weight) {
    return {(Sum)(image.sign * weight)};
}

__device__ __forceinline__ Parts split(const Weights& image, double weight) {
    const double scaled = image.sign * weight * image.first_scale;
    const long long first = __double2ll_rn(scaled);
    const long long second = __double2ll_rn((scaled - (double)first) * image.second_scale);
    Parts parts;
    parts.part[0] = (Sum)first;
    parts.part[kParts - 1] = (Sum)second;
    return parts;
}
