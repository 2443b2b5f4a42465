"""The operator of soft curves and its derivatives.

The forward operator also returns the derivatives by thresholds and sharpness, which take hardly any
time in addition to the curve. A second operator computes the gradient of the image.
"""

import math
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends import soft_curves
from ecc_core._backends.soft import SoftImages
from ecc_core._torch.cells import Ties, cell_values, filtration, spread
from ecc_core._torch.operators import no_second_derivatives, operator


def _fake(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: str,
    keep: bool,
) -> tuple[Tensor, ...]:
    results = [thresholds.new_empty((image.shape[0], thresholds.shape[0])) for _ in range(3)]
    points = math.prod(image.shape[1:]) if keep else 0
    coefficients = image.new_empty((image.shape[0], points), dtype=torch.int8)
    return *results, coefficients


def _plain(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: Ties,
    keep: bool,
) -> tuple[Tensor, ...]:
    """Return the curve without its derivatives, as a sum over the cells."""
    values = filtration(image.to(thresholds.dtype), direction_terms, mask, superlevel)
    levels = -thresholds if superlevel else thresholds
    curve = torch.zeros_like(levels)
    for extent, cells in cell_values(values, connectivity, ties):
        above = levels - cells.flatten(1).unsqueeze(2)
        entered = torch.sigmoid(sharpness * above).sum(1)
        curve = curve + entered if sum(extent) % 2 == 0 else curve - entered
    return (curve,)


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 9
    return gradients_of(ctx.needs_input_grad, ctx.saved_tensors, ctx.options[:3], gradient)


def gradients_of(
    needed: tuple[bool, ...], saved: tuple[Any, ...], options: tuple[Any, ...], gradient: Tensor
) -> tuple[Any, ...]:
    """Return the gradients of the arguments of the operator, from the tensors that it saves."""
    needs_image, needs_thresholds, needs_sharpness, needs_terms = needed[:4]
    if needs_terms:
        wanted = "wide"
    elif needs_image:
        wanted = "image"
    else:
        wanted = "none"
    found = soft_curve_backward(gradient, *saved, *options, wanted)
    by_image, by_thresholds, by_sharpness = found
    return (
        by_image.to(saved[3].dtype) if needs_image else None,
        by_thresholds.sum(0) if needs_thresholds else None,
        by_sharpness.sum() if needs_sharpness else None,
        by_direction_terms(by_image, saved[6].dtype) if needs_terms else None,
        *(None,) * 5,
    )


def by_direction_terms(by_image: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the gradient of the terms along each axis, summed in float64 because terms cancel."""
    axes = range(1, by_image.dim())
    sums = []
    for axis in axes:
        others = [0, *[other for other in axes if other != axis]]
        sums.append(by_image.sum(others, dtype=torch.float64))
    return torch.cat(sums).to(dtype)


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    image = ctx.saved_tensors[3]
    by_image, by_threshold, by_sharpness, by_terms = tangents[:4]
    given = ctx.saved_tensors, ctx.options[:3]
    total = pushed(by_image, by_threshold, by_sharpness, *given)
    if by_terms is not None:
        total = total + _pushed_by_images(spread(by_terms, image.shape[1:]), *given)
    return total, None, None, None


def pushed(
    by_image: Tensor | None,
    by_threshold: Tensor | None,
    by_sharpness: Tensor | None,
    saved: tuple[Any, ...],
    options: tuple[Any, ...],
) -> Tensor:
    """Return the tangent (batch, n) of the curves for those of images, thresholds and sharpness."""
    slopes, spreads = saved[:2]
    total = torch.zeros_like(slopes)
    if by_image is not None:
        total = total + _pushed_by_images(by_image, saved, options)
    if by_threshold is not None:
        total = total + slopes * by_threshold
    if by_sharpness is not None:
        total = total + spreads * by_sharpness
    return total


def _pushed_by_images(change: Tensor, saved: tuple[Any, ...], options: tuple[Any, ...]) -> Tensor:
    """Return the tangent (batch, n) of the curves for a change of the filtration.

    It is the product with the gradient of the filtration, which is computed for one level at a
    time.
    """
    slopes, spreads, coefficients, image, thresholds, *others = saved
    change = change.to(slopes.dtype)
    each = []
    for j in range(thresholds.shape[0]):
        one = slice(j, j + 1)
        by_image, *_ = soft_curve_backward(
            torch.ones_like(slopes[:, one]),
            slopes[:, one],
            spreads[:, one],
            coefficients,
            image,
            thresholds[one],
            *others,
            *options,
            "wide",
        )
        each.append((by_image * change).flatten(1).sum(1))
    return torch.stack(each, 1) if each else torch.zeros_like(slopes)


@operator(_fake, stacked=(0, 4), backward=_backward, push=_push, plain=_plain)
def soft_curve(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: str,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return curves (batch, n) of images (batch, *spatial) and derivatives.

    The derivatives (batch, n) are those by threshold and by sharpness.

    `thresholds`, `sharpness` and `direction_terms` are float64 for a float64 image and float32 for
    all others. With `keep` the coefficients (batch, points) are returned too, so that the backward
    pass does not compute them again.
    """
    given = SoftImages(
        image=image,
        thresholds=thresholds,
        sharpness=sharpness,
        direction_terms=direction_terms,
        mask=mask,
        connectivity=connectivity,
        superlevel=superlevel,
    )
    return soft_curves(image.device.type).curves(given, keep)


def _fake_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    coefficients: Tensor,
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: str,
    wanted: str,
) -> tuple[Tensor, ...]:
    shape = (0,) if wanted == "none" else image.shape
    by_image = image.new_empty(shape, dtype=_dtype(image, wanted))
    return by_image, torch.empty_like(slopes), slopes.new_empty(image.shape[:1])


REFUSED = no_second_derivatives("soft Euler characteristic curves")


@operator(_fake_backward, stacked=(0, 1, 2, 3, 4, 8), backward=REFUSED)
def soft_curve_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    coefficients: Tensor,
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: str,
    wanted: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return gradients of images, and for each image of thresholds and of the sharpness.

    `wanted` tells which gradient of the images to return: "none" (an empty tensor), "image" (in
    their dtype), or "wide" (in float32 for images of a narrower dtype).
    """
    by_levels = gradient * slopes, (gradient * spreads).sum(1)
    if wanted == "none":
        return image.new_empty(0), *by_levels
    given = SoftImages(
        image=image,
        thresholds=thresholds,
        sharpness=sharpness,
        direction_terms=direction_terms,
        mask=mask,
        connectivity=connectivity,
        superlevel=superlevel,
    )
    by_image = soft_curves(image.device.type).gradient(
        gradient, coefficients, given, ties == "split", _dtype(image, wanted), wanted == "wide"
    )
    return by_image, *by_levels


def _dtype(image: Tensor, wanted: str) -> torch.dtype:
    wide = wanted == "wide" and image.dtype != torch.float64
    return torch.float32 if wide else image.dtype
