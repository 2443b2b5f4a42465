"""Soft curves of overlapping windows on the CPU, as an operation of autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ecc_core._torch import cpu
from ecc_core._torch.batching import bypasses_torch

__all__ = ["soft_windows", "supported"]


def supported(*arguments: Any) -> bool:
    """Whether :func:`soft_windows` takes these arguments: plain tensors on the CPU.

    It is neither traced nor transformed by `torch.func` nor differentiated in forward mode.
    """
    first = arguments[0]
    return first.device.type == "cpu" and bypasses_torch(arguments)


def soft_windows(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    connectivity: int,
    superlevel: bool,
    count: int,
    stride: int,
) -> Tensor:
    """Curves (batch, *positions, n) of the windows of images (batch, *spatial).

    Windows have `count` tiles of side `stride` along each axis. The spatial shape is a multiple of
    `stride`, which is at least 2. `thresholds` and `sharpness` are float64 for a float64 image and
    float32 for any other.
    """
    given = image, thresholds, sharpness, connectivity, superlevel, count, stride
    curves: Tensor = _Windows.apply(*given)  # type: ignore[no-untyped-call]
    return curves


class _Windows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        thresholds: Tensor,
        sharpness: Tensor,
        connectivity: int,
        superlevel: bool,
        count: int,
        stride: int,
    ) -> Tensor:
        from ecc_core._backends.cpu.soft import tiles

        values = cpu.values(image, thresholds, None, None, superlevel).numpy()
        levels = cpu.sublevel(thresholds, superlevel)
        slope = cpu.check_numbers(levels, sharpness, "thresholds")
        grid = tiles.Tiles(stride, count)

        def coefficients(images: Any) -> Any:
            found = cpu.coefficients(torch.from_numpy(images), connectivity, "raster")
            return found.numpy().reshape(images.shape)

        weights = tiles.differences(values, grid, coefficients)
        curves, derivatives = tiles.curves(values, weights, grid, levels, slope, cpu.threads())
        kept = [torch.from_numpy(array) for array in (*weights, *derivatives)]
        ctx.save_for_backward(image, thresholds, sharpness, *kept)
        ctx.grid, ctx.superlevel = grid, superlevel
        return torch.from_numpy(curves).to(thresholds.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        from ecc_core._backends.cpu.soft import tiles

        image, thresholds, sharpness, *kept = ctx.saved_tensors
        arrays = [tensor.numpy() for tensor in kept]
        values = cpu.values(image, thresholds, None, None, ctx.superlevel).numpy()
        by_image, by_level, by_sharpness = tiles.gradients(
            values,
            arrays[: len(arrays) // 2],
            arrays[len(arrays) // 2 :],
            ctx.grid,
            cpu.sublevel(thresholds, ctx.superlevel),
            float(sharpness),
            upstream.double().numpy(),
            cpu.threads(),
        )
        sign = -1 if ctx.superlevel else 1
        return (
            torch.from_numpy(sign * by_image).to(image.dtype),
            torch.from_numpy(sign * by_level).to(thresholds.dtype),
            sharpness.new_tensor(by_sharpness),
            *(None,) * 4,
        )
