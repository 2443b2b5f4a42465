"""Which backend computes: chosen by the library and device of an array, imported when needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core import _checks
from ecc_core._thresholds import even_thresholds
from ecc_core.errors import BackendError

__all__ = ["Home", "cpu", "dtype_of", "is_dask", "need_cupy", "on_host", "streaming"]


def _library(array: Any) -> str:
    root = type(array).__module__.partition(".")[0]
    return root if root in ("cupy", "torch") else "numpy"


def _place(array: Any) -> str:
    """Library and device of an array, for comparison and for messages."""
    library = _library(array)
    if library == "numpy":
        return "numpy"
    device = f"cuda:{array.device.id}" if library == "cupy" else str(array.device)
    return f"{library} on {device}"


def dtype_of(array: Any) -> np.dtype[Any]:
    """The NumPy dtype that holds an array's values; object for what NumPy does not know."""
    if _library(array) != "torch":
        own: np.dtype[Any] = array.dtype
        return own
    name = str(array.dtype).removeprefix("torch.")
    try:
        return np.dtype("float32" if name == "bfloat16" else name)
    except TypeError:
        return np.dtype(object)


def cpu() -> ModuleType:
    """The backend of NumPy arrays."""
    from ecc_core._backends.cpu import launch

    return launch


class Home:
    """Where an image lives, and so where it is computed on and what results are."""

    def __init__(self, image: Any) -> None:
        self.library = _library(image)
        self.place = _place(image)
        self.on_device = self.library == "cupy" or "cuda" in self.place
        self._like = image if self.library != "numpy" else None
        if self.library == "torch" and not self.on_device and image.device.type != "cpu":
            raise BackendError(f"`image` must be on the CPU or a CUDA device, got {self.place}")

    def backend(self) -> ModuleType:
        """The backend's module: ``curve``, ``coefficients`` and the rest."""
        if not self.on_device:
            return cpu()
        need_cupy("arrays on CUDA devices")
        from ecc_core._backends.cuda import launch as cuda

        return cuda

    def shards(self) -> ModuleType:
        """The backend's module of images in parts."""
        if not self.on_device:
            from ecc_core._backends.cpu import shards as on_cpu

            return on_cpu
        need_cupy("arrays on CUDA devices")
        from ecc_core._backends.cuda import shards as on_cuda

        return on_cuda

    def transforms(self) -> ModuleType:
        """The backend's module of transforms, for what :meth:`lend` gives."""
        if not self.on_device:
            from ecc_core._backends.cpu import transform_launch

            return transform_launch
        need_cupy("arrays on CUDA devices")
        from ecc_core._backends.cuda import transform

        return transform

    @contextlib.contextmanager
    def lend(self, array: Any) -> Iterator[Any]:
        """The array for NumPy's functions: itself, or as CuPy's, its device and stream current."""
        if not self.on_device:
            yield array
            return
        need_cupy("arrays on CUDA devices")
        from ecc_core._backends.cuda.arrays import adopt, numbers

        with adopt(array) as adopted:
            yield numbers(adopted)

    def threads(self, workers: int | None) -> dict[str, int | None]:
        """The argument `workers` of the backend's functions, for those that have one."""
        return {} if self.on_device else {"workers": workers}

    def take(self, array: Any, name: str) -> Any:
        """The array as its backend reads it, without a copy and without leaving its device."""
        if _library(array) == "numpy":
            array = np.asarray(array)
        if self.on_device or "cuda" in _place(array) or _library(array) == "cupy":
            if _place(array) != self.place:
                raise ValueError(
                    f"`{name}` must be where the image is, {self.place}, got {_place(array)}"
                )
            return array
        if _library(array) == "torch":
            return _torch_on_host(array, name)
        return array

    def give(self, array: Any) -> Any:
        """A result of the backend, or a new NumPy array, as the image's library has it."""
        if self.library in ("numpy", _library(array)):
            return array
        if self.library == "cupy":
            import cupy

            with self._like.device:  # type: ignore[union-attr]
                return cupy.asarray(array)
        import torch

        if _library(array) == "cupy":
            return torch.from_dlpack(array)
        return torch.from_numpy(np.array(array, order="C")).to(
            self._like.device  # type: ignore[union-attr]
        )

    def thresholds(
        self,
        given: Any,
        bounds: tuple[float, float] | None,
        shape: tuple[int, ...],
        find_range: Callable[[], tuple[Any, Any]],
    ) -> tuple[Any, NDArray[Any]]:
        """Thresholds of an image as its library has them, and checked on the host."""
        count = _checks.as_count(given, "thresholds")
        if count is None:
            if bounds is not None:
                raise ValueError("`range` must be None where `thresholds` is an array, got both")
            host = _checks.check_threshold_array(on_host(given))
            return given if hasattr(given, "dtype") else self.give(host), host
        low, high = find_range() if bounds is None else _checks.check_range(bounds)
        if low is None:
            raise ValueError(
                "`range` must be given for an image without finite values, got None "
                f"(spatial shape {shape})"
            )
        even = even_thresholds(low, high, count)
        return self.give(even), even

    def permute(self, array: Any, order: tuple[int, ...]) -> Any:
        return array.permute(order) if hasattr(array, "permute") else array.transpose(order)

    def broadcast(self, array: Any, shape: tuple[int, ...]) -> Any:
        if isinstance(array, np.ndarray):
            return np.broadcast_to(array, shape)
        if self.library == "torch":
            return array.expand(shape)
        import cupy

        return cupy.broadcast_to(array, shape)


def need_cupy(what: str) -> None:
    """Raise unless CuPy can be imported."""
    try:
        import cupy  # noqa: F401
    except ImportError as error:
        raise BackendError(
            f"{what} need CuPy: install napari-ecc[cuda12] or napari-ecc[cuda13]"
        ) from error


def streaming(devices: Any) -> tuple[ModuleType, list[int]]:
    """The module that streams host arrays to CUDA devices, and the numbers of these."""
    numbers = _checks.check_devices(devices)
    need_cupy("`devices`")
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendError(f"`devices` need a CUDA device, got none: {error}") from error
    if max(numbers) >= count:
        raise ValueError(f"`devices` must be numbers below {count}, of CUDA devices, got {numbers}")
    from ecc_core._backends.cuda import stream

    return stream, numbers


def on_host(array: Any) -> NDArray[Any]:
    """A small array as NumPy's; one on a device is waited for and copied."""
    library = _library(array)
    if library == "cupy":
        host: NDArray[Any] = array.get()
        return host
    return _torch_on_host(array.cpu()) if library == "torch" else np.asarray(array)


def _torch_on_host(tensor: Any, name: str = "image") -> NDArray[Any]:
    """A tensor on the CPU as a NumPy array; bfloat16 as float32, which holds its values."""
    if str(tensor.layout) != "torch.strided" or tensor.is_nested:
        raise TypeError(f"`{name}` must be a dense tensor, got layout {tensor.layout}")
    _checks.check_image_dtype(dtype_of(tensor), name)
    tensor = tensor.detach().resolve_neg()
    host: NDArray[Any] = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
    return host


def is_dask(image: Any) -> bool:
    """Whether an image is a dask array, to be computed block by block."""
    return type(image).__module__.partition(".")[0] == "dask"
