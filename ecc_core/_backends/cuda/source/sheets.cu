// Copies the points of regions to sheets on which nothing else enters.

typedef ECC_CODE Code;

// Copies boxes. A row of `boxes` has the number of a region, the first index and the length of its box
// along each axis, and the row and the column of the sheet at which it begins. The blocks of a column share
// a box.
extern "C" __global__ void lay_out(const Code* codes, const int* numbers, const int height,
                                   const int width, const int* boxes, Code* sheet, int* regions,
                                   const int rows, const int columns) {
    const int* const box = boxes + 9 * blockIdx.x;
    const long long across = (long long)box[5] * box[6], size = box[4] * across;
    for (long long i = blockIdx.y * blockDim.x + threadIdx.x; i < size;
         i += gridDim.y * blockDim.x) {
        const int z = i / across, y = i % across / box[6], x = i % box[6];
        const long long from = ((long long)(z + box[1]) * height + y + box[2]) * width + x + box[3];
        if (numbers[from] != box[0]) continue;
        const long long to = ((long long)z * rows + y + box[7]) * columns + x + box[8];
        sheet[to] = codes[from];
        regions[to] = box[0];
    }
}
