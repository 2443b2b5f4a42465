// The kernels of the file SOURCE, as a thread of `grid.cpp` calls them.
#include "cuda.hpp"

#include <utility>

#include SOURCE

namespace {
template <class... Types, std::size_t... index>
void call(void (*kernel)(Types...), void* const* arguments, std::index_sequence<index...>) {
    kernel(*(std::decay_t<Types>*)arguments[index]...);
}
template <class... Types>
void call(void (*kernel)(Types...), void* const* arguments) {
    call(kernel, arguments, std::index_sequence_for<Types...>());
}
}  // namespace

#define RUN(kernel) \
    extern "C" void run_##kernel(void* const* arguments) { call(kernel, arguments); }

RUN_KERNELS
