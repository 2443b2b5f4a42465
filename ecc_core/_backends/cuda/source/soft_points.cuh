// Reads the points of images, which are contiguous, with coefficients that other kernels have computed
// (coefficients.py), and adds those whose coefficient is not zero to moments.
#pragma once
#include "soft.cuh"

typedef ECC_ELEMENT Element;
constexpr int kThreads = ECC_THREADS;
constexpr int kEach = 8, kTurn = kThreads * kEach;  // Points of a thread and of a block in a turn.

// Points of one image after the other.
struct SoftPoints {
    const Element* values;
    const signed char* coefficients;
    long long count;            // Points of an image.
    const unsigned char* mask;  // It may be null.

    ECC_DEVICE SoftPoints of(int image) const {
        const long long first = image * count;
        return {values + first, coefficients + first, count, mask ? mask + first : nullptr};
    }
    // Returns the value in the sublevel filtration, which is negated for superlevel sets.
    ECC_DEVICE float value(long long i) const {
        const float v = widen(values[i]);
        return kSuper ? -v : v;
    }
    // Returns the index of point `k` of the thread in a turn.
    ECC_DEVICE static long long at(long long turn, int k) {
        return turn * kTurn + k * kThreads + threadIdx.x;
    }
    ECC_DEVICE int turns() const { return (int)((count + kTurn - 1) / kTurn); }
};

// Adds points to moments, by counts.add(moment, slot, amount).
template <class Counts>
struct Deposit {
    const Windows windows;
    const Head head;
    const Window only;  // Used if there is a single window.
    const float scale;  // Factor of the first moment; that of each next one is twice as large.
    const Counts counts;

    ECC_DEVICE void point(float v, int c) const {
        if (v >= __uint_as_float(0x7F800000u)) return;
        const Window window = head.count == 1 ? only : windows.get(windows.find(v));
        const BinPlace place = locate(v, window, head);
        if (!counts.has(place.slot)) return;
        counts.add(0, place.slot, c);
        if (!place.inside) return;
        const float first = place.offset * scale, twice = 2.0f * place.offset;
        counts.add(1, place.slot, c * to_int(first + kRound));
        counts.add(2, place.slot, c * to_int(first * twice + kRound));
        counts.add(3, place.slot, c * to_int(first * twice * twice + kRound));
    }

    // Adds the points of a turn. Returns whether the thread has seen NaN.
    ECC_DEVICE bool turn(const SoftPoints& points, int turn) const {
        unsigned events = 0;
        bool nan = false;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            const long long i = points.at(turn, k);
            const bool inside = i < points.count;
            const float v = inside ? points.value(i) : 0.0f;
            nan |= v != v && (!points.mask || points.mask[i]);
            events |= (unsigned)(inside && points.coefficients[i]) << k;
        }
        // Events are taken one by one, so that all lanes of a warp that have any are busy at the same time.
        for (; events; events &= events - 1) {
            const long long i = points.at(turn, __ffs(events) - 1);
            point(points.value(i), points.coefficients[i]);
        }
        return nan;
    }
};
