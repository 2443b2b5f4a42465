"""Tensors of torch."""

import sys
import weakref
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.adapters.base import Adapter
from ecc_core._backends.plain.namespaces import Standard, TorchFunctions
from ecc_core._request.dtypes import dtype_in_words, holder_of, name_of


@lru_cache(maxsize=64)
def _numpy_dtype(dtype: Any) -> np.dtype[Any] | None:
    """Return the NumPy dtype that holds the values of a torch dtype, or None."""
    try:
        found = holder_of(name_of(dtype))
    except TypeError:
        return None
    return found if found.isbuiltin == 1 else None  # Other packages register their own.


class Torch(Adapter):
    """Dense tensors and their subclasses. Gradients are not tracked."""

    name = "torch"

    def __init__(self) -> None:
        # Values of tensors on devices, by the tensor's id, with the version and the place in memory
        # that the tensor had when they were read.
        self._read: dict[int, tuple[weakref.ref[Any], Any, NDArray[Any]]] = {}

    def supports(self, array: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(array, torch.Tensor)

    def device(self, array: Any) -> str:
        return str(array.device)

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        found = _numpy_dtype(array.dtype)
        if found is None:
            raise TypeError(
                f"`{name}` must have a boolean, integer or real floating dtype of at most 64 bits, "
                f"got {dtype_in_words(array.dtype)}"
            )
        return found

    def layout(self, array: Any) -> Hashable | None:
        import torch

        plain = type(array) is torch.Tensor and array.is_cuda and array.layout is torch.strided
        if not plain or array.is_nested or array.is_neg():
            return None
        place = array.device.index, array.data_ptr() % 16
        return tuple(array.shape), array.stride(), array.dtype, place

    def unwrap(self, array: Any, name: str) -> Any:
        import torch

        if array.is_nested:
            raise TypeError(f"`{name}` must be a dense tensor, got a nested one")
        if array.layout != torch.strided:
            raise TypeError(f"`{name}` must be a dense tensor, got layout {array.layout}")
        self.dtype(array, name)
        tensor = array.detach().as_subclass(torch.Tensor)
        if tensor.is_neg() or tensor.is_conj():
            tensor = tensor.resolve_conj().resolve_neg()
        if tensor.device.type != "cpu":
            return tensor
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()

    def wrap(self, result: Any, like: Any) -> Any:
        import torch

        if isinstance(result, torch.Tensor):
            return result
        if isinstance(result, np.ndarray):
            return torch.from_numpy(np.array(result, order="C")).to(like.device)
        return torch.from_dlpack(result)

    def on_host(self, array: Any) -> NDArray[Any]:
        found: NDArray[Any] = self.unwrap(array.cpu(), "array")
        return found

    def read_once(self, array: Any) -> NDArray[Any]:
        # Inference tensors have no version, by which a change would be seen.
        if array.device.type == "cpu" or array.is_inference():
            return self.on_host(array)
        state = array._version, array.data_ptr(), array.shape, array.stride()
        key = id(array)
        known = self._read.get(key)
        if known is not None and known[0]() is array and known[1] == state:
            return known[2]
        host = self.on_host(array)
        host.setflags(write=False)
        self._read[key] = weakref.ref(array, lambda _: self._read.pop(key, None)), state, host
        return host

    def as_integers(self, array: Any) -> Any:
        return array.long()

    def threads(self) -> int:
        import torch

        return torch.get_num_threads()

    def standard(self, array: Any) -> Standard | None:
        import torch

        return Standard(TorchFunctions(torch))
