// Which labels there are, of those up to `most`, and whether there are larger or negative ones.
typedef ECC_LABEL Label;

extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    mark_labels(const Label* labels, long long size, unsigned long long most, int* present,
                int* beyond) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= size) return;
    const unsigned long long label = (unsigned long long)*(const volatile Label*)(labels + at);
    if (label > most)
        *beyond = 1;
    else if (label)
        present[label] = 1;
}
