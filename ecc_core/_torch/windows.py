"""Soft curves of overlapping windows on the CPU, as an operation of autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ecc_core._backends.cpu.soft import tiles
from ecc_core._torch import cpu
from ecc_core._torch.batching import bypasses_torch
from ecc_core._torch.curve import no_second_derivatives

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
    numbers = (given.resolve_neg() for given in (image, thresholds, sharpness))
    options = connectivity, superlevel, count, stride
    curves: Tensor = _Windows.apply(*numbers, *options)  # type: ignore[no-untyped-call]
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
        values = cpu.values(image, thresholds, None, None, superlevel).numpy()
        levels = cpu.sublevel(thresholds, superlevel)
        slope = cpu.check_numbers(levels, sharpness, "thresholds")
        grid = tiles.Tiles(stride, count)

        def coefficients(images: Any) -> Any:
            found = cpu.coefficients(torch.from_numpy(images), connectivity, "raster")
            return found.numpy().reshape(images.shape)

        weights = tiles.differences(values, grid, coefficients)
        sums = tiles.curves(values, weights, grid, levels, slope, cpu.threads())
        curves, slopes, spreads = (torch.from_numpy(own).to(thresholds.dtype) for own in sums)
        kept = [torch.from_numpy(own) for own in weights]
        by_levels = -slopes if superlevel else slopes, spreads
        ctx.save_for_backward(image, thresholds, sharpness, *by_levels, *kept)
        ctx.grid, ctx.superlevel = grid, superlevel
        return curves

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch._C._functorch.is_legacy_batchedtensor(upstream):
            raise RuntimeError(
                "gradients of curves of windows cannot be computed in batches "
                "(`is_grads_batched`, `vectorize`); use `torch.func.jacrev`"
            )
        options = ctx.grid, ctx.superlevel
        found = _Gradients.apply(upstream, *options, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return *found, *(None,) * 4


class _Gradients(torch.autograd.Function):
    """Gradients of images, thresholds and sharpness, which have no derivatives themselves."""

    @staticmethod
    def forward(
        upstream: Tensor,
        grid: tiles.Tiles,
        superlevel: bool,
        image: Tensor,
        thresholds: Tensor,
        sharpness: Tensor,
        slopes: Tensor,
        spreads: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        by_value = tiles.gradients(
            cpu.values(image, thresholds, None, None, superlevel).numpy(),
            [own.numpy() for own in weights],
            grid,
            cpu.sublevel(thresholds, superlevel),
            float(sharpness),
            upstream.resolve_neg().numpy(),
            cpu.threads(),
        )
        by_image = torch.from_numpy(-by_value if superlevel else by_value)
        by_threshold = (upstream * slopes).flatten(0, -2).sum(0)
        return by_image.to(image.dtype), by_threshold, (upstream * spreads).sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save nothing."""

    @staticmethod
    def vmap(
        _info: Any, in_dims: tuple[int | None, ...], upstream: Tensor, *rest: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Jacobians map over `upstream` alone."""
        rows = upstream.unbind(in_dims[0] or 0)
        found = [_Gradients.apply(row, *rest) for row in rows]  # type: ignore[no-untyped-call]
        return tuple(torch.stack(part) for part in zip(*found, strict=True)), (0, 0, 0)

    backward = staticmethod(no_second_derivatives)
