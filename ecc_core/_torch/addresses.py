"""Addresses of tensors, which kernels take; 0 for those that are not given."""

from collections.abc import Iterable

from torch import Tensor


def address_of(tensor: Tensor | None) -> int:
    """Return the address of a tensor, 0 without one."""
    return 0 if tensor is None else tensor.data_ptr()


def addresses_of(tensors: Iterable[Tensor | None]) -> tuple[int, ...]:
    """Return the address of each tensor."""
    return tuple([0 if tensor is None else tensor.data_ptr() for tensor in tensors])
