"""Exact curves as operators that ``torch.compile`` and ``vmap`` know, with soft gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ecc_core.curves import euler_curve
from ecc_core.transforms import euler_transform

__all__ = ["exact_curve", "exact_transform", "straight_through"]


def straight_through(exact: Tensor, soft: Tensor) -> Tensor:
    """The exact values with the gradient of the soft ones."""
    return exact.to(soft.dtype) + (soft - soft.detach())


@torch.library.custom_op("ecc_core::exact_curve", mutates_args=())
def exact_curve(
    image: Tensor,
    thresholds: Tensor,
    mask: Tensor | None,
    direction: Tensor | None,
    direction_scale: Tensor | None,
    spacing: list[float],
    connectivity: int,
    superlevel: bool,
    n_spatial: int,
) -> Tensor:
    """Exact curves of images whose last axes are spatial."""
    values: Tensor = euler_curve(  # type: ignore[assignment]
        image,
        thresholds,
        mask=mask,
        direction=direction if direction is None else direction.tolist(),
        direction_scale=1.0 if direction_scale is None else float(direction_scale),
        spacing=spacing,
        connectivity=connectivity,
        superlevel=superlevel,
        axis=range(-n_spatial, 0),
    ).values
    return values


@exact_curve.register_fake
def _(image: Tensor, thresholds: Tensor, *settings: Any) -> Tensor:
    batch = image.shape[: image.ndim - settings[-1]]
    return image.new_empty((*batch, len(thresholds)), dtype=torch.int64)


@torch.library.custom_op("ecc_core::exact_transform", mutates_args=())
def exact_transform(
    weights: Tensor,
    directions: Tensor,
    heights: Tensor,
    spacing: list[float],
    connectivity: int,
    n_spatial: int,
) -> Tensor:
    """Exact weighted transforms of images whose last axes are spatial."""
    batch, spatial = weights.shape[: weights.ndim - n_spatial], weights.shape[-n_spatial:]
    values = weights.new_empty((*batch, len(directions), len(heights)), dtype=torch.float64)
    rows = values.view(-1, *values.shape[-2:])
    for row, image in zip(rows, weights.reshape(len(rows), *spatial), strict=True):
        found: Any = euler_transform(
            image,
            directions,
            heights,
            connectivity=connectivity,
            spacing=spacing,
            weighted=True,
        )
        row.copy_(found.values)
    return values


@exact_transform.register_fake
def _(weights: Tensor, directions: Tensor, heights: Tensor, *settings: Any) -> Tensor:
    batch = weights.shape[: weights.ndim - settings[-1]]
    return weights.new_empty((*batch, len(directions), len(heights)), dtype=torch.float64)


def _vmap(operator: Any) -> None:
    """Map an operator over batches: those of the image alone are what it takes anyway."""

    def mapped(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        if in_dims[0] is not None and set(in_dims[1:]) == {None}:
            return operator(args[0].movedim(in_dims[0], 0), *args[1:]), 0
        calls = (
            [a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)]
            for i in range(info.batch_size)
        )
        return torch.stack([operator(*call) for call in calls]), 0

    operator.register_vmap(mapped)


_vmap(exact_curve)
_vmap(exact_transform)
