// Errors of the persistence pairs of images, whose classes are compared with the classes of their targets.

#include "common.cuh"

typedef unsigned long long Word;

constexpr int kThreads = ECC_THREADS;

// Images and targets (count, lines, side). In the volume whose pairs were computed they lie side by side
// along the last axis, first all images, and a point that never enters follows each of them.
struct Batch {
    const float* images;
    const unsigned char* targets;
    int count, lines, side, axes;
};

// A class of an image or a target. Points are those of the volume; `death` is -1 if the class does not die.
// A group has the classes of one dimension of an image or a target; groups of targets have larger numbers.
struct Class {
    int birth, death;
    unsigned group;
};

// How an error changes with the values at the points of a class.
struct Amounts {
    double by_birth, by_death, error;
};

// The classes of images and their targets.
struct Classes {
    Class* classes;
    Word* entries;      // They increase from the longest class of images to the shortest.
    unsigned* numbers;  // How many classes of each group of targets are born where targets are 1.
    const long long* order;     // The classes in the order of their entries.
    const long long* by_group;  // The places in `order`, sorted by group.
    unsigned size;
};

// What classes contribute, linked for each point of the images from its head: entry 2 c is the birth of
// class c, and 2 c + 1 its death.
struct Links {
    Amounts* amounts;
    int* next;
    int* heads;
};

// A point of an image or of its target.
struct Point {
    int image, place;

    ECC_DEVICE Point(const Batch& batch, long long laid_out) {
        const int apart = batch.side + 1, width = 2 * batch.count * apart;
        const int line = quotient(laid_out, width), along = laid_out - (long long)line * width;
        image = along / apart;
        const int own = image < batch.count ? image : image - batch.count;
        place = (own * batch.lines + line) * batch.side + along - image * apart;
    }
};

ECC_DEVICE double value_at(const Batch& batch, int place) {
    return place < 0 ? 0.0 : (double)batch.images[place];
}

// Returns a word that decreases with a number, which is not NaN.
ECC_DEVICE Word descending(double number) {
    const Word bits = __double_as_longlong(number + 0.0);  // -0 is 0
    return bits >> 63 ? bits : ~(bits | 1ull << 63);
}

// Describes the classes of one dimension, behind the `first` ones of those before.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    describe_classes(const Batch batch, const Classes all, const long long* births,
                     const long long* deaths, const unsigned size, const unsigned first,
                     const int dimension) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= size) return;
    const Point birth(batch, births[i]);
    const int death = deaths[i] < 0 ? -1 : Point(batch, deaths[i]).place;
    const unsigned group = birth.image * batch.axes + dimension;
    all.classes[first + i] = {birth.place, death, group};
    if (birth.image < batch.count) {
        const double length = value_at(batch, birth.place) - value_at(batch, death);
        all.entries[first + i] = descending(length);
        return;
    }
    all.entries[first + i] = ~0ull;
    if (batch.targets[birth.place]) atomicAdd(all.numbers + group - batch.count * batch.axes, 1u);
}

// Lists the groups of classes in the order of entries.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    list_groups(const Classes all, unsigned* groups) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i < all.size) groups[i] = all.classes[all.order[i]].group;
}

ECC_DEVICE double squared(double number) { return number * number; }

// Returns what a class contributes that should be born at 1 and die at 0 (`kept`), or else not exist.
ECC_DEVICE Amounts amounts_of(double birth, double death, bool kept) {
    if (kept) return {2 * (birth - 1), 2 * death, squared(1 - birth) + squared(death)};
    const double length = birth - death;
    return {2 * length, -2 * length, squared(length)};
}

// Links what each class of an image contributes. In each group, as many of the longest classes are kept as
// the target has classes. The others contribute if they last for at least `least`.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    link_amounts(const Batch batch, const Classes all, const double least, const Links links) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= all.size) return;
    const int index = all.order[all.by_group[i]];
    const Class own = all.classes[index];
    if (own.group >= (unsigned)(batch.count * batch.axes)) return;
    const unsigned number = all.numbers[own.group];
    const bool is_among_first =
        i < number || all.classes[all.order[all.by_group[i - number]]].group != own.group;
    const bool kept = number > 0 && is_among_first;
    const double birth = value_at(batch, own.birth), death = value_at(batch, own.death);
    if (!kept && !(birth - death >= least)) return;
    links.amounts[index] = amounts_of(birth, death, kept);
    const int born = 2 * index, died = born + 1;
    links.next[born] = atomicExch(links.heads + own.birth, born);
    if (own.death >= 0) links.next[died] = atomicExch(links.heads + own.death, died);
}

// Returns the sum over the block, whose order is always the same, in the first thread.
ECC_DEVICE double block_sum(double value) {
    __shared__ double sums[kThreads / 32];
    const double sum = warp_sum(value);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    double total = 0;
    for (int i = 0; i < kThreads / 32; ++i) total += sums[i];
    return total;
}

// Returns the sum of the slopes that are linked at a point, and adds the errors of the classes that are
// born there. The sum has the order of entries; each is searched in the list, since lists are short.
ECC_DEVICE double sum_at(const Links& links, int head, double& error) {
    double slope = 0;
    for (int last = -1;;) {
        int following = -1;  // The least entry after `last`.
        for (int entry = head; entry >= 0; entry = links.next[entry])
            if (entry > last && (following < 0 || entry < following)) following = entry;
        if (following < 0) return slope;
        const Amounts& own = links.amounts[following / 2];
        const bool is_birth = following % 2 == 0;
        slope += is_birth ? own.by_birth : own.by_death;
        if (is_birth) error += own.error;
        last = following;
    }
}

// Writes the slope at each point, and the sum of errors of each block; blocks have points of one image.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    add_amounts(const Batch batch, const Links links, const int blocks, float* slopes,
                double* errors) {
    const int points = batch.lines * batch.side, image = blockIdx.x / blocks;
    const int first = (blockIdx.x - image * blocks) * kThreads + threadIdx.x;
    double error = 0;
    for (int i = first; i < points; i += blocks * kThreads) {
        const long long place = (long long)image * points + i;
        slopes[place] = (float)sum_at(links, links.heads[place], error);
    }
    const double sum = block_sum(error);
    if (threadIdx.x == 0) errors[blockIdx.x] = sum;
}

// Sums the errors of the blocks of each image.
extern "C" __global__ void __launch_bounds__(ECC_THREADS)
    total_errors(const double* errors, const int blocks, float* totals) {
    double error = 0;
    for (int i = threadIdx.x; i < blocks; i += kThreads) error += errors[blockIdx.x * blocks + i];
    const double sum = block_sum(error);
    if (threadIdx.x == 0) totals[blockIdx.x] = (float)sum;
}
