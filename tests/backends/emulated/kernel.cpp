// The kernel RUN_KERNEL of the file KERNEL, as a thread of `grid.cpp` calls it.
#include "cuda.hpp"

#include <utility>

#include KERNEL

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

extern "C" void run(void* const* arguments) { call(RUN_KERNEL, arguments); }
