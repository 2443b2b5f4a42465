// Runs a kernel, which `kernel.cpp` is compiled to, block by block.
#include "cuda.hpp"

#include <algorithm>
#include <csetjmp>
#include <deque>
#include <memory>
#include <string>
#include <ucontext.h>
#include <vector>

Index threadIdx, blockIdx, blockDim, gridDim;
alignas(1024) uint4 memory[1 << 14];

namespace {
struct Copy {
    void* to;
    const void* from;
    int bytes;
};
constexpr int kStackBytes = 1 << 16;
constexpr int kMarginBytes = 1 << 10;
// Begins as a context of its own, and goes on by jumps, which need no system calls. One that is done waits
// for the next block.
struct Thread {
    ucontext_t start;
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    jmp_buf here;
    bool begun = false, done = false;
    const int* gate;  // opens when it is not `closed` any more
    int closed;
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;

    bool held() const { return gate && *gate == closed; }
};
struct Warp {
    std::array<char, kMost> given[2][32];
    int arrived, turn;
};
struct Block {
    int arrived, turn;
    bool any[2];
};

std::deque<Thread> threads;
std::vector<Warp> warps;
Block block;
jmp_buf scheduler;
std::string broken;
int shared_bytes;
// Shared addresses: what a kernel declares, kDeclared bytes each, then what it is launched with.
constexpr unsigned kDeclared = 128, kAsked = 1 << 16;
std::vector<const char*> declared;
int idle;  // turns since some threads could go on

Thread& self() { return threads[threadIdx.x]; }
void wait() {
    if (!_setjmp(self().here)) _longjmp(scheduler, 1);
}
// Waits until the others of a warp or block have come, which begins another turn.
void wait_for_next(const int& turn) {
    Thread& thread = self();
    thread.gate = &turn, thread.closed = turn;
    wait();
    thread.gate = nullptr;
}
void go_on(Thread& thread) {
    if (_setjmp(scheduler)) return;
    if (thread.begun) _longjmp(thread.here, 1);
    thread.begun = true;
    setcontext(&thread.start);
}

void run_thread();
void begin(Thread& thread) {
    thread.open.clear(), thread.groups.clear();
    const bool waits = thread.done;  // and not within a kernel whose launch failed
    thread.done = false;
    thread.gate = nullptr;
    if (waits) return;
    thread.begun = false;
    getcontext(&thread.start);
    thread.start.uc_stack.ss_sp = thread.stack.get();
    thread.start.uc_stack.ss_size = kStackBytes;
    makecontext(&thread.start, run_thread, 0);
}
// Lanes and warps in another order each time, so that none can rely on one.
void run_block() {
    memset((void*)memory, 0xA5, std::min<std::size_t>(shared_bytes + kMarginBytes, sizeof memory));
    for (Warp& warp : warps) warp.arrived = warp.turn = 0;
    block = {};
    for (unsigned i = 0; i < blockDim.x; ++i) begin(threads[i]);
    unsigned random = 1, left = blockDim.x;
    for (idle = 0; left; ++idle) {
        if (idle > 10000) return fail("all lanes come to where they meet");
        random = random * 1664525u + 1013904223u;
        const unsigned first = (random >> 16) % warps.size() * 32, turn = random >> 8;
        for (unsigned i = 0; i < 32; ++i) {
            threadIdx.x = first + ((i * 5 + turn) & 31);
            if (self().done || self().held()) continue;
            go_on(self());
            if (self().done) --left, idle = 0;
        }
    }
}

void (*kernel)(void* const* arguments);
void* const* arguments;
void run_thread() {
    for (;;) {
        kernel(arguments);
        self().done = true;
        wait();
    }
}
}  // namespace

void fail(const char* rule) {
    if (broken.empty()) broken = rule;
}

const std::array<char, kMost>* meet(const void* value, int bytes) {
    Warp& warp = warps[threadIdx.x / 32];
    const int turn = warp.turn;
    memcpy(&warp.given[turn][threadIdx.x & 31], value, bytes);
    if (++warp.arrived == 32)
        warp.arrived = idle = 0, warp.turn ^= 1;
    else
        wait_for_next(warp.turn);
    return warp.given[turn];
}

bool any_in_block(bool value) {
    const int turn = block.turn;
    if (block.arrived == 0) block.any[turn] = false;
    block.any[turn] |= value;
    if (++block.arrived == (int)blockDim.x)
        block.arrived = idle = 0, block.turn ^= 1;
    else
        wait_for_next(block.turn);
    return block.any[turn];
}
void meet_in_block() { any_in_block(false); }

unsigned shared_address(const void* pointer) {
    const char* const here = (const char*)pointer;
    const std::ptrdiff_t offset = here - (const char*)memory;
    if (offset >= 0 && offset < (std::ptrdiff_t)sizeof memory) return kAsked + (unsigned)offset;
    const auto found = std::find(declared.begin(), declared.end(), here);
    const unsigned index = found - declared.begin();
    if (found == declared.end()) declared.push_back(here);
    return kDeclared * (1 + index) + (std::size_t)here % 16;
}
char* shared(unsigned address, int bytes) {
    if (address % bytes) fail("an address is a multiple of what is there");
    if (address >= kAsked && address - kAsked + bytes <= (unsigned)shared_bytes)
        return (char*)memory + (address - kAsked);
    const unsigned index = address / kDeclared - 1;
    if (index < declared.size())
        return (char*)((std::size_t)declared[index] & ~15ul) + address % kDeclared;
    fail("shared memory is used as far as it was asked for");
    return (char*)memory;
}

void copy_later(void* to, const void* from, int bytes) {
    shared(shared_address(to), bytes);
    if ((std::size_t)from % bytes) fail("a copy begins at a multiple of its bytes");
    const auto in_the_way = [&](const Copy& copy) {
        return (char*)to < (char*)copy.to + copy.bytes && (char*)copy.to < (char*)to + bytes;
    };
    for (const auto& group : self().groups)
        if (std::any_of(group.begin(), group.end(), in_the_way))
            fail("no copy goes where another is on its way");
    self().open.push_back({to, from, bytes});
}
void close_group() {
    self().groups.push_back({});
    self().groups.back().swap(self().open);
}
void finish_groups(int but) {
    for (auto& groups = self().groups; (int)groups.size() > but; groups.pop_front())
        for (const Copy& copy : groups.front()) memcpy(copy.to, copy.from, copy.bytes);
}

// Returns the rule that was broken first, or an empty string.
extern "C" const char* launch(void (*run)(void* const*), const unsigned* grid,
                              unsigned block_threads, int shared_memory, void* const* given) {
    broken.clear();
    declared.clear();
    kernel = run;
    shared_bytes = shared_memory;
    arguments = given;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block_threads, 1, 1};
    memset((void*)memory, 0xA5, sizeof memory);
    // Threads of earlier launches are used again.
    if (threads.size() < block_threads) threads.resize(block_threads);
    warps.resize(block_threads / 32);
    for (blockIdx.z = 0; blockIdx.z < grid[2]; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < grid[1]; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < grid[0]; ++blockIdx.x) run_block();
    return broken.c_str();
}
