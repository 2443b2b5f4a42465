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
        curves, derivatives = tiles.curves(values, weights, grid, levels, slope, cpu.threads())
        kept = [torch.from_numpy(array) for array in (*weights, *derivatives)]
        ctx.save_for_backward(image, thresholds, sharpness, *kept)
        ctx.grid, ctx.superlevel = grid, superlevel
        return torch.from_numpy(curves).to(thresholds.dtype)

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
        *kept: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        arrays = [tensor.numpy() for tensor in kept]
        by_value, by_level, by_sharpness = tiles.gradients(
            cpu.values(image, thresholds, None, None, superlevel).numpy(),
            arrays[: len(arrays) // 2],
            arrays[len(arrays) // 2 :],
            grid,
            cpu.sublevel(thresholds, superlevel),
            float(sharpness),
            upstream.resolve_neg().double().numpy(),
            cpu.threads(),
        )
        return (
            torch.from_numpy(-by_value if superlevel else by_value).to(image.dtype),
            torch.from_numpy(-by_level if superlevel else by_level).to(thresholds.dtype),
            sharpness.new_tensor(by_sharpness),
        )

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
