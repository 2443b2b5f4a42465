// What depends on every point of an image: moments of the critical points in the slots of their
// values (see soft.cuh), or gradients from a table, or the coefficients themselves.
//
// A block holds a tile of columns in shared memory, a thread one column of up to 31 points and what
// is next to it. Tiles overlap by one column on each side, whose threads only help their neighbours.
typedef ECC_REAL Real;
#include "soft_planes.cuh"

typedef ECC_ELEMENT Element;
typedef ECC_OUT Out;
enum Mode { kDeposit = 0, kGather = 1, kCoefficients = 2, kUnit = 3 };  // kUnit: gather, c = 1
constexpr int kMode = ECC_MODE;
constexpr bool kSuper = ECC_SUPER;
constexpr bool kMask = ECC_MASK;
constexpr bool kTilt = ECC_TILT;
constexpr bool kGathers = kMode == kGather || kMode == kUnit;

struct Image {
    const Element* data;
    const unsigned char* mask;
    const Real *tilt_z, *tilt_y, *tilt_x;  // kTilt; tilt_y only unless kFlat
    long long strides[4];                  // batch, z, y, x, in samples
    long long mask_strides[4];
    int depth, height, width;
};

struct Tiling {
    int across, down, chunks;  // units along x, y, z; in flat images a row of a block is a chunk
    int own;                   // points of a column
    int blocks;                // an image
    int room;                  // words of shared memory for moments or the table
    int flush;                 // kDeposit: units between two additions to global memory
    float scale;               // of the first moment; the second's is twice as large
};

struct Work {
    float* windows;
    int levels;
    int slots;           // room of an image
    long long* moments;  // kDeposit: (images, 3 * slots + 1), zero; the last one: NaN was seen
    const float2* table;  // kGathers: (images, slots), value and slope at the start of each bin
    Out* out;             // (images, depth, height, width); kCoefficients: bytes
};

constexpr int kBatch = 11;  // loads of a thread in flight

struct Column {
    const Element* data;
    const unsigned char* mask;
    Real tilt;
    bool inside;
};

__device__ __forceinline__ Real infinity() { return (Real)__uint_as_float(0x7F800000u); }

__device__ __forceinline__ Column find_column(const Image& image, int index, int y, int x) {
    const bool inside = y >= 0 && y < image.height && x >= 0 && x < image.width;
    Column column = {image.data, image.mask, 0, inside};
    if (inside) {
        column.data += index * image.strides[0] + y * image.strides[2] + x * image.strides[3];
        if (kMask)
            column.mask += index * image.mask_strides[0] + y * image.mask_strides[2] +
                           x * image.mask_strides[3];
        if (kTilt) column.tilt = kFlat ? image.tilt_x[x] : image.tilt_y[y] + image.tilt_x[x];
    }
    return column;
}

// The value of the sublevel filtration; points that are not there never enter.
__device__ __forceinline__ Real value(const Image& image, const Column& column, int z) {
    if (!column.inside || z < 0 || z >= image.depth) return infinity();
    if (kMask && !column.mask[z * image.mask_strides[1]]) return infinity();
    Real v = to_real(column.data[z * image.strides[1]]);
    if (kTilt) v += image.tilt_z[z] + column.tilt;
    return (kSuper ? -v : v) + (Real)0;  // no -0: it would not be equal to 0
}

__device__ __forceinline__ void add_to_global(long long* moments, int at, long long amount) {
    if (amount) atomicAdd((unsigned long long*)moments + at, (unsigned long long)amount);
}

struct Deposit {
    const Windows windows;
    const Head head;
    const Window only;
    int* counts;
    long long* moments;
    bool shared;
    float scale;

    __device__ __forceinline__ void add(int at, int amount) const {
        if (shared)
            atomicAdd(counts + at, amount);
        else
            add_to_global(moments, at, amount);
    }

    __device__ __forceinline__ void operator()(float v, int c) const {
        if (v >= infinity()) return;
        const Window window = head.count == 1 && v < only.end ? only : windows.get(windows.find(v));
        const Place place = locate(v, window, head);
        const int at = kMoments * place.slot;
        add(at, c);
        if (!place.inside) return;
        add(at + 1, c * __float2int_rn(place.offset * scale));
        add(at + 2, c * __float2int_rn(place.offset * place.offset * 2.0f * scale));
    }

    __device__ __forceinline__ void flush() const {
        if (!shared) return;
        __syncthreads();
        for (int i = threadIdx.y * kLanes + threadIdx.x; i < kMoments * head.slots;
             i += blockDim.y * kLanes) {
            add_to_global(moments, i, counts[i]);
            counts[i] = 0;
        }
        __syncthreads();
    }
};

struct Lookup {
    const Windows windows;
    const Head head;
    const Window only;
    const float2* table;

    // Cubic Hermite interpolation; zero outside of the windows.
    __device__ __forceinline__ float operator()(float v) const {
        if (v != v || head.count < 0) return v - v + __uint_as_float(0x7FC00000u);
        const Window window = head.count == 1 && v < only.end ? only : windows.get(windows.find(v));
        const Place place = locate(v, window, head);
        if (!place.inside) return 0.0f;
        const float u = place.offset + 0.5f;
        const float2 left = table[place.slot - 1], right = table[place.slot];
        const float rise = right.x - left.x, cubic = left.y + right.y - 2.0f * rise;
        return left.x + u * (left.y + u * (rise - left.y - cubic + u * cubic));
    }
};

extern "C" __global__ void __launch_bounds__(ECC_THREADS, ECC_BLOCKS)
    soft_points(const Image image, const Tiling tiling, const Work work) {
    extern __shared__ uint4 memory[];
    const int rows = blockDim.y, row = threadIdx.y, lane = threadIdx.x;
    const int threads = rows * kLanes, thread = row * kLanes + lane;
    const int index = blockIdx.x / tiling.blocks;
    Real* keys = (Real*)memory;
    plane* exchange = (plane*)(keys + (tiling.own + 2) * threads);
    int* room = (int*)(exchange + (kFlat || kMode == kUnit ? 0 : kExchanged * threads));
    const Tile tile = {keys, rows, row, lane};

    const Windows windows(work.windows, work.levels);
    Head head = {0, 0, 0.0f, 0.0f};
    if (kMode != kCoefficients) head = *windows.head;
    long long* moments = work.moments + (long long)index * (kMoments * work.slots + 1);
    const bool fits = (kGathers ? 2 : kMoments) * head.slots <= tiling.room;
    const Window only = kMode == kCoefficients || head.count != 1 ? Window() : windows.get(0);
    const Deposit deposit = {windows, head, only, room, moments, fits, tiling.scale};
    const float2* table = work.table + (long long)index * work.slots;
    if (kMode == kDeposit && fits)
        for (int i = thread; i < kMoments * head.slots; i += threads) room[i] = 0;
    if (kGathers && fits) {
        for (int i = thread; i < head.slots; i += threads) ((float2*)room)[i] = table[i];
        table = (const float2*)room;
    }
    const Lookup lookup = {windows, head, only, table};
    __syncthreads();

    const int units = tiling.across * tiling.down *
                      (kFlat ? (tiling.chunks + rows - 1) / rows : tiling.chunks);
    bool nan = false;
    int waiting = 0;
    for (int unit = blockIdx.x % tiling.blocks; unit < units; unit += tiling.blocks) {
        const int rest = unit / tiling.across;
        const int x = unit % tiling.across * (kLanes - 2) + lane - 1;
        const int y = kFlat ? 0 : rest % tiling.down * (rows - 2) + row - 1;
        const int z = (kFlat ? rest * rows + row : rest / tiling.down) * tiling.own;
        const int count = min(tiling.own, image.depth - z);  // negative: nothing to do
        const Column column = find_column(image, index, y, x);
        for (int step = 0; step < count + 2; step += kBatch) {
            Real v[kBatch];
#pragma unroll
            for (int i = 0; i < kBatch; ++i)
                v[i] = step + i < count + 2 ? value(image, column, z + step + i - 1) : (Real)0;
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                nan |= v[i] != v[i];
                if (step + i < count + 2) tile.own(step + i) = kDual ? (Real)0 - v[i] : v[i];
            }
        }
        if (kFlat)
            __syncwarp();
        else
            __syncthreads();
        Digits c = {~0u, 0, 0, 0};
        if (kMode != kUnit) c = coefficients(compare(tile, max(count, 0), exchange));
        const bool own = column.inside && lane > 0 && lane < kLanes - 1 &&
                         (kFlat || (row > 0 && row < rows - 1));
        if (own && kMode == kDeposit) {
            plane events = (c.b0 | c.b1 | c.b2 | c.b3) & (count > 0 ? ~(~0u << count) : 0u);
            while (events) {
                const int position = __ffs(events) - 1;
                events &= events - 1;
                const Real key = tile.own(count - position);
                deposit(kDual ? -key : key, c.get(position));
            }
        }
        if (own && kMode != kDeposit) {
            const long long first =
                (((long long)index * image.depth + z) * image.height + y) * image.width + x;
            const long long slice = (long long)image.height * image.width;
            for (int step = 1; step <= count; ++step) {
                const int number = c.get(count - step);
                const long long at = first + (step - 1) * slice;
                if (kMode == kCoefficients) {
                    ((signed char*)work.out)[at] = number;
                } else {
                    const Real key = tile.own(step);
                    const float v = kDual ? -key : key;
                    const float found = number || v != v ? lookup(v) : 0.0f;
                    store(work.out + at, (Real)(kSuper ? number * found : -number * found));
                }
            }
        }
        if (kFlat)
            __syncwarp();
        else
            __syncthreads();
        if (kMode == kDeposit && ++waiting == tiling.flush) {
            deposit.flush();
            waiting = 0;
        }
    }
    if (kMode == kDeposit) {
        if (waiting) deposit.flush();
        if (nan) moments[kMoments * work.slots] = 1;
    }
}
