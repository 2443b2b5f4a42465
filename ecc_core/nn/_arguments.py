"""Check the arguments of soft curves, transforms and layers and convert them.

The values of tensors are not checked here, which would synchronize with a device and break the
graph of a compiled function.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.cuda import is_current_stream_capturing

from ecc_core._arithmetic import overflows_float
from ecc_core._torch.routes import bypasses_torch

Scalar = float | Tensor
Vector = Sequence[float] | Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
DTYPES = frozenset([torch.bool, *FLOATS, *INTEGERS, *UNSIGNED])

MOST_CONSTANTS = 256
"""Numbers that are kept on devices."""
SLOPE_OF_STEP = 4.0
"""The tangent to sigmoid(l * z) at its centre rises from 0 to 1 over 4 / l."""


def check_tensor(tensor: Any, name: str) -> Tensor:
    """Check that this is a dense tensor of real numbers and return it as a plain tensor.

    What a subclass records about an image, such as its position in space, does not hold for curves.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"`{name}` must be a torch tensor, got {type(tensor).__name__}")
    if tensor.layout != torch.strided or tensor.is_nested:
        kind = "a nested tensor" if tensor.is_nested else tensor.layout
        raise TypeError(f"`{name}` must be a dense tensor, got {kind}")
    if tensor.dtype not in DTYPES:
        raise TypeError(
            f"`{name}` must be a tensor of booleans, integers or real floats of 16 to 64 bits, "
            f"got {tensor.dtype}"
        )
    return plain(tensor)


def plain(tensor: Tensor) -> Tensor:
    """Drop the subclass of a tensor, through which gradients still flow."""
    kind = type(tensor)
    if kind is Tensor or kind.__torch_function__ is torch._C._disabled_torch_function_impl:
        return tensor
    if kind.__torch_dispatch__ is not Tensor.__torch_dispatch__:  # It may hold no data of its own.
        return tensor
    return tensor.as_subclass(Tensor)


def widened(tensor: Tensor) -> Tensor:
    """Convert integers and booleans to floats: float64 for more than 16 bits, else float32."""
    if tensor.is_floating_point():
        return tensor
    return tensor.to(torch.float64 if tensor.dtype.itemsize > 2 else torch.float32)


def images(tensor: Any, n_spatial: int, name: str) -> tuple[Tensor, torch.dtype]:
    """Check images and convert them to floats. Also returns the dtype of their curves."""
    found = check_tensor(tensor, name)
    check_n_spatial(n_spatial)
    if found.dim() < n_spatial:
        got = tuple(found.shape)
        raise ValueError(f"`{name}` must have at least {n_spatial} axes (`n_spatial`), got {got}")
    found = widened(found)
    return found, torch.float64 if found.dtype == torch.float64 else torch.float32


def check_dtype(dtype: Any) -> torch.dtype:
    """Check the dtype of a layer's parameters; None stands for torch's default."""
    if dtype is None:
        return torch.get_default_dtype()
    if dtype not in FLOATS:
        raise TypeError(f"`dtype` must be a torch dtype of real floats, got {dtype!r}")
    found: torch.dtype = dtype
    return found


def check_n_spatial(n_spatial: Any) -> int:
    if isinstance(n_spatial, bool) or n_spatial not in (1, 2, 3):
        raise ValueError(f"`n_spatial` must be 1, 2 or 3, got {n_spatial!r}")
    return int(n_spatial)


def _tensor(numbers: Any, name: str, like: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert numbers to a tensor on the device of the image, where a tensor must be already."""
    if not isinstance(numbers, Tensor):
        try:
            return torch.as_tensor(numbers, dtype=dtype, device=like.device)
        except OverflowError as error:
            raise overflow_error(name) from error
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"`{name}` must be real numbers, got {numbers!r}") from error
    _check_device(numbers, name, like)
    found = check_tensor(numbers, name)
    return found if found.dtype == dtype else found.to(dtype)


def overflow_error(name: str) -> ValueError:
    return ValueError(f"`{name}` must be within the range of floats, got an int beyond it")


def _check_device(tensor: Tensor, name: str, like: Tensor) -> None:
    if tensor.device != like.device:
        raise ValueError(
            f"`{name}` must be on the image's device, {like.device}, got {tensor.device}"
        )


def numbers_of(
    numbers: Any, name: str, like: Tensor, dtype: torch.dtype, *shape: int | str
) -> Tensor:
    """Convert numbers to a tensor of this shape, in which letters stand for any length."""
    found = _tensor(numbers, name, like, dtype)
    lengths = zip(shape, found.shape, strict=False)
    if found.dim() != len(shape) or any(n != m for n, m in lengths if isinstance(n, int)):
        wanted = ", ".join(map(str, shape))
        if len(shape) == 1:
            wanted += ","
        raise ValueError(f"`{name}` must have shape ({wanted}), got {tuple(found.shape)}")
    return found


def finite_scalar(number: Any, name: str, like: Tensor, dtype: torch.dtype) -> Tensor:
    if not isinstance(number, Tensor):
        value = real(number, name)
        if not -math.inf < value < math.inf:
            raise ValueError(f"`{name}` must be finite, got {value}")
        if torch.compiler.is_compiling():
            # Graphs treat the factor of a product, unlike a fill value, as an input.
            return torch.ones((), dtype=dtype, device=like.device) * value
        on_cuda = like.device.type == "cuda"
        if on_cuda and bypasses_torch(()) and not is_current_stream_capturing():
            found = _constant(value, dtype, like.device)
            # Its memory is not reused before this stream has read it, should others replace it.
            found.record_stream(torch.cuda.current_stream(like.device))
            return found
        return torch.full((), value, dtype=dtype, device=like.device)
    if number.numel() != 1:
        raise ValueError(f"`{name}` must be one number, got shape {tuple(number.shape)}")
    # Operators of torch take such numbers from the CPU, too.
    if number.dim() == 0 and number.device.type == "cpu":
        return check_tensor(number, name).to(like.device, dtype)
    found = _tensor(number, name, like, dtype)
    return found.reshape(()) if found.dim() else found


@lru_cache(maxsize=MOST_CONSTANTS)
def _constant(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a number on a CUDA device, which nothing must write to."""
    with torch.inference_mode(False):
        found = torch.full((), value, dtype=dtype, device=device)
    torch.cuda.current_stream(device).synchronize()  # Any stream may read it later.
    return found


def positive_scalar(number: Any, name: str, like: Tensor, dtype: torch.dtype) -> Tensor:
    if not isinstance(number, Tensor) and not real(number, name) > 0:
        raise ValueError(f"`{name}` must be positive, got {number}")
    return finite_scalar(number, name, like, dtype)


def real(number: Any, name: str) -> float:
    """Return a real number as a float."""
    if isinstance(number, float):
        return number
    if isinstance(number, int) and not isinstance(number, bool):
        if overflows_float(number):
            raise overflow_error(name)
        return float(number)
    of_numpy = isinstance(number, np.generic | np.ndarray)
    if of_numpy and number.dtype.kind in "iuf" and number.ndim == 0:
        return float(number)
    raise TypeError(f"`{name}` must be a real number, got {number!r}")


def spacing_of(spacing: Any, n_spatial: int) -> tuple[float, ...]:
    """Check the distance between neighbouring points along each axis."""
    if spacing is None:
        return (1.0,) * n_spatial
    if isinstance(spacing, Tensor | np.ndarray | np.generic):
        spacing = spacing.tolist()
    given = spacing if isinstance(spacing, list | tuple) else [spacing] * n_spatial
    steps = tuple(real(step, "spacing") for step in given)
    if len(steps) != n_spatial:
        raise ValueError(f"`spacing` must be one number or {n_spatial} of them, got {spacing}")
    if not all(0 < step < math.inf for step in steps):
        raise ValueError(f"`spacing` must be positive and finite, got {spacing}")
    return steps


def check_mask(mask: Any, image: Tensor, spatial: torch.Size) -> Tensor:
    """Check a mask and reshape it to (batch or 1, *spatial)."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"`mask` must be a tensor of booleans (True: keep the point), got {kind}")
    shown = check_tensor(mask, "mask")
    if shown.shape not in (image.shape, spatial):
        wanted = tuple(image.shape)
        got = tuple(shown.shape)
        raise ValueError(
            f"`mask` must have the image's shape {wanted} or {tuple(spatial)}, got {got}"
        )
    _check_device(shown, "mask", image)
    if shown.shape == image.shape:
        return shown.reshape(math.prod(image.shape[: image.dim() - len(spatial)]), *spatial)
    return shown[None]


def log_of(number: Any, name: str) -> float:
    """The logarithm of a positive number."""
    if isinstance(number, bool | str | complex) or np.ndim(number):
        raise TypeError(f"`{name}` must be a real number, got {number!r}")
    if not 0 < number < math.inf:
        raise ValueError(f"`{name}` must be positive and finite, got {number}")
    return math.log(number)
