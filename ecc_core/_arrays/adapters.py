"""Adapters of array libraries, which convert between their arrays and those of backends."""

import sys
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.plain.namespaces import Standard, TorchFunctions, dtype_of
from ecc_core._request.dtypes import (
    BRAIN_FLOAT,
    dtype_in_words,
    holder_of,
    name_of,
    object_in_words,
)
from ecc_core.errors import BackendError

HOST_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
CUDA = 2  # kDLCUDA
MOST_BYTES = 1 << 20  # of arrays for which preparing a call pays


def widened(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of NumPy's own types: bfloat16 becomes float32, exactly."""
    return array.astype(np.float32) if is_brain_float(array) else array


def is_brain_float(array: Any) -> bool:
    """Whether a NumPy or dask array has a dtype of two bytes that only ml_dtypes knows."""
    dtype: np.dtype[Any] = array.dtype
    return dtype.itemsize == 2 and dtype.name == BRAIN_FLOAT


class Adapter:
    """Base of adapters. By default arrays are like those of NumPy, in host memory."""

    name = ""  # name of the library in messages
    reads_early = False  # whether `read_early` is faster than `read_once`
    lazy = False  # whether arrays are computed later, block by block
    chunks = False
    """Whether NumPy's functions take the arrays, so that they may be the chunks of a dask array."""

    def supports(self, array: Any) -> bool:
        """Whether an object is an array of the library. Must not import the library."""
        raise NotImplementedError

    def device(self, array: Any) -> str:
        """Return "cpu" for host memory, or a kind of device with a number such as "cuda:0"."""
        return "cpu"

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        """Return the NumPy dtype that holds the values. Raises TypeError if there is none."""
        found: np.dtype[Any] = array.dtype
        return found

    def layout(self, array: Any) -> Hashable | None:
        """Return all that plans depend on, so nothing about values; None if there are none."""
        return None

    def unwrap(self, array: Any, name: str) -> Any:
        """Return what the backend of the device takes, without a copy: on "cpu", a NumPy array."""
        return array

    def wrap(self, result: Any, like: Any) -> Any:
        """Return a result of the backend, or a NumPy array, as an array on the device of `like`."""
        return result

    def on_host(self, array: Any) -> NDArray[Any]:
        """Return a small array as a NumPy array, copied from its device if necessary."""
        return widened(np.asarray(array))

    def computed(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return what lazy arrays are when all of them are computed in one pass."""
        return arrays

    def read_once(self, array: Any) -> NDArray[Any]:
        """`on_host`, without a copy if the library says that the array has not changed since."""
        return self.on_host(array)

    def read_early(self, array: Any) -> tuple[NDArray[Any], Callable[[], bool] | None]:
        """Return what an array probably holds, and a function that tells whether it does.

        The function must be called once, since it may have to wait for a device. If it returns
        False, `read_once` reads the array again. It is None if the array certainly holds that.
        """
        return self.read_once(array), None

    def as_integers(self, array: Any) -> Any:
        """An array of whole numbers as int64."""
        return array.astype(np.int64)

    def threads(self) -> int | None:
        """Return the library's limit on the number of threads on the host, or None."""
        return None

    def place(self, array: Any) -> str:
        """Return the library and the device, for messages."""
        return f"{self.name} on {self.device(array)}"

    def current(self, array: Any) -> AbstractContextManager[Any]:
        """Return a context in which the device of an array is the library's current one."""
        return nullcontext()

    def beside(self, array: Any, other: Any) -> Any:
        """Return an array on the device of another one, a copy if it is elsewhere."""
        return array

    def standard(self, array: Any) -> Standard | None:
        """Return the functions of the array API standard for arrays on a device without kernels.

        None if the library does not follow the standard.
        """
        return None


class NumPy(Adapter):
    """NumPy arrays and their subclasses, numbers and sequences."""

    name = "numpy"
    chunks = True

    def supports(self, array: Any) -> bool:
        return isinstance(array, np.ndarray | np.generic | list | tuple | bool | int | float)

    def layout(self, array: Any) -> Hashable | None:
        if type(array) is not np.ndarray or array.nbytes > MOST_BYTES or is_brain_float(array):
            return None
        return array.shape, array.strides, array.dtype, array.flags.aligned

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        return self.unwrap(array, name).dtype

    def unwrap(self, array: Any, name: str) -> NDArray[Any]:
        if isinstance(array, list | tuple) and array and getattr(array[0], "ndim", 0) > 1:
            raise TypeError(
                f"`{name}` must be one array, got a {type(array).__name__} of {len(array)}; pass "
                "them one by one, or stack them and name the spatial axes in `axis`"
            )
        try:
            found = widened(np.asarray(array))
        except ValueError:
            raise ValueError(f"`{name}` must be an array, got a ragged sequence") from None
        is_array = hasattr(array, "dtype") or isinstance(array, list | tuple)
        if found.dtype.kind in "OSU" and not is_array:
            raise TypeError(f"`{name}` must be an array, got {object_in_words(array, name)}")
        return found

    def place(self, array: Any) -> str:
        return self.name


def _has_only_dlpack(array: Any) -> bool:
    """Whether NumPy takes an array by DLPack, as it has no conversion of its own."""
    return hasattr(type(array), "__dlpack__") and not hasattr(type(array), "__array__")


class ArrayLikes(NumPy):
    """Arrays of other libraries in host memory, which are not copied.

    Results are arrays of the library if it follows the array API standard.
    """

    name = "array-like"
    chunks = False

    def supports(self, array: Any) -> bool:
        return True

    def device(self, array: Any) -> str:
        find = getattr(type(array), "__dlpack_device__", None)
        if find is not None:
            kind, number = find(array)
            if kind in HOST_DEVICES:
                return "cpu"
            return f"CUDA device {number}" if kind == CUDA else f"DLPack device {int(kind)}"
        if hasattr(type(array), "__cuda_array_interface__"):
            return "a CUDA device"
        device = getattr(array, "device", None)
        on_host = not isinstance(device, str) or "cpu" in device.lower()
        return "cpu" if on_host else str(device)

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        return super().dtype(array, name) if self.device(array) == "cpu" else dtype_of(array)

    def unwrap(self, array: Any, name: str) -> Any:
        if self.device(array) != "cpu":  # it follows the standard, and is computed with as it is
            return array
        if _has_only_dlpack(array):
            return np.from_dlpack(array)
        return super().unwrap(array, name)

    def wrap(self, result: Any, like: Any) -> Any:
        if not hasattr(type(like), "__array_namespace__"):
            return result
        xp = like.__array_namespace__()
        if self.device(like) != "cpu":
            if isinstance(result, np.ndarray):
                return xp.asarray(result, device=like.device)
            return result
        wrapped = xp.asarray(result)
        if not np.array_equal(np.asarray(wrapped), result):
            raise BackendError(
                f"{xp.__name__} does not hold the results' {result.dtype} exactly as "
                f"{wrapped.dtype} (let it use 64-bit types, or pass NumPy arrays)"
            )
        return wrapped

    def on_host(self, array: Any) -> NDArray[Any]:
        if self.device(array) != "cpu":
            raise BackendError(f"arrays must be in host memory, got one {self.place(array)}")
        if _has_only_dlpack(array):
            found: NDArray[Any] = np.from_dlpack(array)
            return found
        return super().on_host(array)

    def place(self, array: Any) -> str:
        kind = type(array)
        return f"{kind.__module__}.{kind.__qualname__} on {self.device(array)}"

    def standard(self, array: Any) -> Standard | None:
        if not hasattr(type(array), "__array_namespace__"):
            return None
        return Standard(array.__array_namespace__())


class JAX(ArrayLikes):
    """Arrays that are not being traced. Results are 64-bit, whether JAX enables 64 bits or not."""

    name = "jax"

    def supports(self, array: Any) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and isinstance(array, jax.Array)

    def wrap(self, result: Any, like: Any) -> Any:
        import jax

        with jax.enable_x64(True):
            return jax.device_put(result, like.device)

    def as_integers(self, array: Any) -> Any:
        import jax

        with jax.enable_x64(True):
            return array.astype("int64")

    def standard(self, array: Any) -> Standard | None:
        import jax

        return Standard(jax.numpy, partial(jax.enable_x64, True))


@lru_cache(maxsize=64)
def _numpy_dtype(dtype: Any) -> np.dtype[Any] | None:
    """Return the NumPy dtype that holds the values of a torch dtype, or None."""
    try:
        found = holder_of(name_of(dtype))
    except TypeError:
        return None
    return found if found.isbuiltin == 1 else None  # other packages register dtypes of their own


class Torch(Adapter):
    """Dense tensors and their subclasses. Gradients are not tracked."""

    name = "torch"

    def __init__(self) -> None:
        # Tensors on devices that were read, by their id, with their version and place then.
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

        if array.layout != torch.strided or array.is_nested:
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
        if array.device.type == "cpu" or array.is_inference():  # inference tensors have no version
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


class CuPy(Adapter):
    """Arrays on CUDA devices, which the backend takes as they are."""

    name = "cupy"
    reads_early = True
    chunks = True

    def supports(self, array: Any) -> bool:
        cupy = sys.modules.get("cupy")
        return cupy is not None and isinstance(array, cupy.ndarray)

    def device(self, array: Any) -> str:
        return f"cuda:{array.device.id}"

    def layout(self, array: Any) -> Hashable:
        pointer = array.data
        return array.shape, array.strides, array.dtype, pointer.device_id, pointer.ptr % 16

    def wrap(self, result: Any, like: Any) -> Any:
        import cupy

        if isinstance(result, cupy.ndarray):
            return result
        from ecc_core._backends.cuda.arrays import device_of, on_device

        with device_of(like):
            return on_device(result)

    def current(self, array: Any) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = array.device
        return device

    def beside(self, array: Any, other: Any) -> Any:
        if array.device.id == other.device.id:
            return array
        from ecc_core._backends.cuda.arrays import copied_to

        return copied_to(array, other.device)

    def on_host(self, array: Any) -> NDArray[Any]:
        from ecc_core._backends.cuda.arrays import on_host

        return on_host(array)

    def read_early(self, array: Any) -> tuple[NDArray[Any], Callable[[], bool] | None]:
        from ecc_core._backends.cuda.readings import read_early

        return read_early(array)


class Dask(Adapter):
    """dask arrays, which :mod:`ecc_core._dask` computes."""

    name = "dask"
    lazy = True

    def supports(self, array: Any) -> bool:
        dask = sys.modules.get("dask.array")
        return dask is not None and isinstance(array, dask.Array)

    def unwrap(self, array: Any, name: str) -> Any:
        raise TypeError(f"`{name}` must be an array in memory, got a dask array (compute it first)")

    def computed(self, arrays: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = sys.modules["dask"].compute(*arrays)
        return found

    def place(self, array: Any) -> str:
        return "a dask array"
