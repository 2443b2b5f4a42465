"""Windows of images as images of their own, by kernels on CUDA devices, otherwise by views."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._backends import has_kernels
from ecc_core._backends.image_cuts import Cut
from ecc_core._torch.routes import bypasses_torch, is_plain


def windows(
    image: Tensor,
    before: Sequence[int],
    after: Sequence[int],
    value: float,
    side: int,
    stride: int,
) -> Tensor:
    """Return the windows (..., *positions, *window) of images (..., *spatial).

    Spatial axes are first padded with `value`, by as many points as `before` and `after` have for
    each of them; negative numbers crop them.
    """
    if torch.onnx.is_in_onnx_export() and torch._C._get_tracing_state() is not None:
        raise RuntimeError(
            "curves of windows can only be exported to ONNX with `torch.onnx.export(dynamo=True)`"
        )
    real = image.dtype in (torch.float32, torch.float64)
    # torch.compile can trace neither `is_neg` nor `has_kernels`; `bypasses_torch` is false for it.
    if image.is_cuda and real and bypasses_torch((image,)) and not image.is_neg():
        lengths = image.shape[image.dim() - len(before) :]
        spans = [sum(three) for three in zip(before, lengths, after, strict=True)]
        if min(spans) >= side and has_kernels("cuda"):
            positions = tuple((span - side) // stride + 1 for span in spans)
            options = tuple(before), tuple(after), positions, value, side, stride
            found: Tensor = _Windows.apply(image, *options)  # type: ignore[no-untyped-call]
            return found
    return cut_in_torch(image, before, after, value, side, stride)


def cut_in_torch(
    image: Tensor, before: Sequence[int], after: Sequence[int], value: float, side: int, stride: int
) -> Tensor:
    """Return windows as `windows` does, as views of a padded image."""
    sides = zip(reversed(before), reversed(after), strict=True)
    image = pad(image, [n for pair in sides for n in pair], value=value)
    for axis in range(image.dim() - len(before), image.dim()):
        image = image.unfold(axis, side, stride)
    return image


class _Windows(torch.autograd.Function):
    """Windows by one kernel in each pass; torch needs about four, and as many nodes of autograd."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, *options: Any) -> Tensor:
        from ecc_core._backends.cuda import soft_windows

        before, _, positions, value, side, stride = options
        ctx.cut = Cut(before, positions, side, stride, value)
        ctx.options = options
        ctx.shape = image.shape
        return soft_windows.windows(image.contiguous(), ctx.cut)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        from ecc_core._backends.cuda import soft_windows

        if is_plain(gradient):
            found = soft_windows.gradients(gradient.contiguous(), ctx.shape, ctx.cut)
            return found, *[None] * 6
        before, after, _, value, side, stride = ctx.options
        # The gradient may be batched by `is_grads_batched`, and so would be its `new_zeros`.
        dtype = gradient.dtype
        device = gradient.device
        with torch.enable_grad():
            image = torch.zeros(ctx.shape, dtype=dtype, device=device, requires_grad=True)
            cut = cut_in_torch(image, before, after, value, side, stride)
        return *torch.autograd.grad(cut, image, gradient, create_graph=True), *[None] * 6
