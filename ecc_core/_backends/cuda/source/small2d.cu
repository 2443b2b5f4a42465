// The Euler characteristic curve of small 2-D images, where a call takes as long as its longest
// chain of instructions: as curve2d.cu, sample by sample, so that many warps share the work.
//
// A lane owns kRows samples of a column, a warp 32 columns, a block four warps side by side and more
// below them. The grid is images, blocks across, blocks down.
#include "march.cuh"

constexpr int kRows = 4;  // tiling.py: SMALL_TILE
constexpr int kAcross = 4;  // warps side by side

// A row as a lane sees it.
template <class T>
struct Three {
    T left, own, right;
};

__device__ __forceinline__ Three<Key> later(const Three<Key>& a, const Three<Key>& b) {
    return {later(a.left, b.left), later(a.own, b.own), later(a.right, b.right)};
}

__device__ __forceinline__ int before(Key a, Key b) { return kDown ? is_less(b, a) : is_less(a, b); }

// A lane's column on its way down the rows.
struct Column {
    bool first, last;  // of the image

    // Beyond the border nothing is read.
    template <class T>
    __device__ __forceinline__ Three<T> load(const T* at) const {
        return {first ? T() : at[-1], at[0], last ? T() : at[1]};
    }

    // The coefficient of a row by itself.
    __device__ __forceinline__ int step(const Three<Key>& row) const {
        const int right = last ? !kDual : before(row.own, row.right);
        return right - (first ? kDual : before(row.left, row.own));
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    curve(const Image image, const Tiling tiling, const Bins bins, const Result result) {
    extern __shared__ uint4 memory[];
    const int index = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int x = (blockIdx.y * kAcross + warp % kAcross) * 32 + lane;
    const int y = tiling.first + blockIdx.z * tiling.chunk + warp / kAcross * kRows;
    const int own = min(x, image.width - 1);
    const Column column = {own == 0, own == image.width - 1};
    const long long top = min(max(y - 1, 0), image.height - 1);
    const Element* data = image.data + index * image.batch + top * image.row + own;
    const unsigned char* mask = image.mask + index * image.mask_batch + top * image.mask_row + own;
    Three<Element> sample[kRows + 2];
    Three<unsigned char> present[kRows + 2];
#pragma unroll
    for (int r = 0; r < kRows + 2; ++r) {  // on their way while counts are cleared
        sample[r] = column.load(data);
        if (kMask) present[r] = column.load(mask);
        if (y + r > 0 && y + r < image.height) data += image.row, mask += image.mask_row;
    }
    Histogram histogram = {0, result.counts_of(index, bins.count + 1), bins.count + 1, result.copies,
                           lane & (result.copies - 1)};
    const SharedLayout layout = lay_out(memory, bins);
    histogram.counts = layout.counts;
    histogram.clear();
    __syncthreads();

    FiniteCheck check;
    const Counter count(bins, layout, histogram);
    const auto key = [&](int r) -> Three<Key> {
        return {admit(sample[r].left, !kMask || present[r].left),
                admit(sample[r].own, !kMask || present[r].own),
                admit(sample[r].right, !kMask || present[r].right)};
    };
    Three<Key> row = key(1), up = key(0);
    int given = 0;  // what the row above gives to this one
    if (y > 0 ? before(up.own, row.own) : kDual) given = column.step(later(up, row));
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const Three<Key> next = key(r + 2);
        const int shared = column.step(later(row, next));
        const bool below = y + r < image.height - 1 ? before(row.own, next.own) : !kDual;
        const int c = column.step(row) - given - (below ? 0 : shared);
        given = below ? shared : 0;
        const bool owned = x < image.width && y + r < tiling.last && (!kMask || present[r + 1].own);
        if (kNan == kNanReport) check.see(row.own);
        if (owned && c != 0) count.event(row.own, c);
        row = next;
    }
    finish(histogram, result, index, check.failed());
}
