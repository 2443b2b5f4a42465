"""Differentiable Euler characteristic curves and transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from ecc_core._request.filtration import check_connectivity
from ecc_core._torch import orthants
from ecc_core._torch.curve import soft_curve
from ecc_core._torch.transform import soft_projection
from ecc_core.nn import _arguments as arguments
from ecc_core.nn._arguments import Scalar, Vector

__all__ = ["soft_euler_curve", "soft_euler_transform"]


def soft_euler_curve(
    image: Tensor,
    thresholds: Vector,
    *,
    sharpness: Scalar,
    direction: Vector | None = None,
    direction_scale: Scalar | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Tensor | None = None,
    spacing: float | Sequence[float] | None = None,
    n_spatial: int = 2,
    ties: Literal["raster", "split"] = "raster",
) -> Tensor:
    """Euler characteristic curves with soft steps, differentiable in every real argument.

    A cell that enters at the value v counts ``sigmoid(sharpness * (t - v))`` at the threshold t
    instead of ``v <= t`` [1]_. As the sharpness grows the curve tends to
    :func:`ecc_core.euler_curve`. Nothing as large as points times thresholds is ever stored.

    Parameters
    ----------
    image : (..., spatial) tensor
        The last `n_spatial` axes are the image's, those before them a batch. Floats; booleans and
        integers are converted. Infinite points enter first or last and have no gradient.
    thresholds : (n,) tensor or numbers
        In any order.
    sharpness : float or scalar tensor
        Positive, in units of 1 / the image's: a step is about ``4 / sharpness`` wide.
    direction : (n_spatial,) tensor or numbers, optional
        Take the curve of ``image + direction_scale * <u, x>``, u the unit vector of the direction
        and ``x = (index - centre) * spacing``.
    direction_scale : float or scalar tensor, optional
        Default 1; only with `direction`.
    connectivity : {None, 1, n_spatial}
        As for :func:`ecc_core.euler_curve`: 1 joins points that share a face (V-construction),
        n_spatial (the default) also those that share a corner only (T-construction).
    superlevel : bool, default False
        Count where the image is at least t, with ``sigmoid(sharpness * (v - t))``.
    mask : (..., spatial) or (spatial) boolean tensor, optional
        Points where it is False never enter.
    spacing : float or n_spatial floats, optional
        Distance of neighbouring points along each axis, default 1; it matters with `direction`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    ties : {"raster", "split"}
        Where equal points give a cell its value, its gradient goes to the first in raster order, or
        is split evenly among them. Values do not depend on it.

    Returns
    -------
    (..., n) tensor
        float32, or float64 for images of float64 and of integers of more than 16 bits.

    Raises
    ------
    TypeError
        If `image` is not a tensor of real numbers or `mask` not one of booleans.
    ValueError
        For a wrong shape, a tensor on another device than the image, a wrong `connectivity`,
        `n_spatial`, `spacing` or `ties`, a scale without a direction, and on the CPU for NaN, a
        `sharpness` that is not positive or a direction that is zero. On CUDA devices, where looking
        at values would wait for the device, these give curves of NaN.

    Notes
    -----
    Thresholds and directions that are no tensors are copied to the image's device, which waits for
    it: inside a CUDA graph give tensors that are there.

    References
    ----------
    .. [1] Roell and Rieck, "Differentiable Euler characteristic transforms for shape
       classification", ICLR 2024, arXiv:2310.07630.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.functional import soft_euler_curve
    >>> ring = torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]], requires_grad=True)
    >>> curve = soft_euler_curve(ring, [0.5, 1.1], sharpness=40.0, connectivity=1)
    >>> curve.detach().round().tolist()  # a hole, then none
    [0.0, 1.0]
    >>> curve[1].backward()
    >>> bool(ring.grad[1, 1] < 0)  # a lower centre fills the hole sooner
    True
    """
    image = arguments.check_tensor(image, "image")
    arguments.check_axes(image, n_spatial, "image")
    connectivity = check_connectivity(connectivity, n_spatial)
    arguments.check_flag(superlevel, "superlevel")
    if ties not in ("raster", "split"):
        raise ValueError(f'`ties` must be "raster" or "split", got {ties!r}')
    batch, spatial = image.shape[:-n_spatial], image.shape[-n_spatial:]
    image = arguments.widened(image)
    dtype = torch.float64 if image.dtype == torch.float64 else torch.float32
    levels = arguments.vector(thresholds, "thresholds", image, dtype)
    steps = arguments.spacing_of(spacing, n_spatial)
    terms = None
    if direction is not None:
        unit = arguments.unit(arguments.vector(direction, "direction", image, dtype, n_spatial))
        scale = 1.0 if direction_scale is None else direction_scale
        factor = arguments.finite_scalar(scale, "direction_scale", image, dtype)
        axes = [arguments.coordinates(n, s, unit) for n, s in zip(spatial, steps, strict=True)]
        terms = factor * torch.cat([u * x for u, x in zip(unit, axes, strict=True)])
    elif direction_scale is not None:
        raise ValueError("`direction_scale` must come with a `direction`, got no direction")
    if mask is not None:
        mask = arguments.check_mask(mask, image, spatial)
    keep = torch.is_grad_enabled() and (
        image.requires_grad or (terms is not None and terms.requires_grad)
    )
    curve: Tensor
    curve, *_ = soft_curve(
        image.reshape(math.prod(batch), *spatial),
        levels,
        arguments.positive_scalar(sharpness, "sharpness", image, dtype),
        terms,
        mask,
        connectivity,
        bool(superlevel),
        ties,
        keep,
    )
    return curve.reshape(*batch, levels.numel())


def soft_euler_transform(
    weights: Tensor,
    directions: Tensor | Sequence[Sequence[float]],
    heights: Vector,
    *,
    sharpness: Scalar,
    connectivity: int | None = None,
    spacing: float | Sequence[float] | None = None,
    n_spatial: int = 2,
    extension: Literal["max", "min"] = "max",
) -> Tensor:
    """Euler characteristic transforms with soft steps, differentiable in every real argument.

    A cell of weight w and height h counts ``w * sigmoid(sharpness * (t - h))`` at the height t. As
    the sharpness grows the transform tends to :func:`ecc_core.euler_transform`.

    Parameters
    ----------
    weights : (..., spatial) tensor
        A mask, boolean or of zeros and ones, or weights: finite, zero where there is no object.
    directions : (k, n_spatial) tensor or numbers
        Need not have unit length.
    heights : (n,) tensor or numbers
        In any order, in units of `spacing`, counted from the image's centre.
    sharpness : float or scalar tensor
        Positive, in units of 1 / `spacing`.
    connectivity, spacing, n_spatial
        As for :func:`soft_euler_curve`; the spacing matters always.
    extension : {"max", "min"}
        "max": weights of cells as in :func:`ecc_core.euler_transform`, the largest of the vertices
        (connectivity 1) or the smallest of the object's cubes around it. "min" exchanges smallest
        and largest, so that the transform of weights that are not negative is continuous where
        they become zero: the choice for probabilities. For masks both are the same.

    Returns
    -------
    (..., k, n) tensor
        float32, or float64 for weights of float64 and of integers of more than 16 bits. Gradients
        of weights that are zero are zero.

    Raises
    ------
    TypeError
        If `weights` is not a tensor of real numbers.
    ValueError
        For a wrong shape, a tensor on another device than the weights, a wrong `connectivity`,
        `n_spatial`, `spacing` or `extension`, and on the CPU for weights that are not finite, a
        `sharpness` that is not positive or a direction that is zero. On CUDA devices these give
        NaN.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.functional import soft_euler_transform
    >>> letter = torch.tensor([[1, 0, 1], [1, 1, 1]], dtype=torch.bool)  # U
    >>> values = soft_euler_transform(letter, [[1, 0], [-1, 0]], [-0.5, 1.5], sharpness=60.0)
    >>> values.round().tolist()  # from above two parts that join, from below one
    [[2.0, 1.0], [1.0, 1.0]]
    """
    weights = arguments.check_tensor(weights, "weights")
    arguments.check_axes(weights, n_spatial, "weights")
    connectivity = check_connectivity(connectivity, n_spatial)
    if extension not in ("max", "min"):
        raise ValueError(f'`extension` must be "max" or "min", got {extension!r}')
    batch, spatial = weights.shape[:-n_spatial], weights.shape[-n_spatial:]
    weights = arguments.widened(weights)
    dtype = torch.float64 if weights.dtype == torch.float64 else torch.float32
    vectors = arguments.vectors(directions, "directions", weights, dtype, n_spatial)
    levels = arguments.vector(heights, "heights", weights, dtype)
    unit, steps = arguments.unit(vectors), arguments.spacing_of(spacing, n_spatial)
    slope = arguments.positive_scalar(sharpness, "sharpness", weights, dtype)
    flat = weights.to(dtype).reshape(math.prod(batch), *spatial)
    flat = flat.masked_fill(flat.isinf(), torch.nan)  # which cells keep, to be refused
    if flat.numel() == 0:
        return flat.sum().expand(*batch, vectors.shape[0], levels.numel())
    owned = orthants.orthant_coefficients(flat, connectivity, extension)
    values: Tensor
    values, *_ = soft_projection(
        owned.flatten(2),
        orthants.positions(owned.shape[2:], steps, unit),
        unit,
        orthants.orthants_of(unit),
        levels,
        slope,
    )
    return values.reshape(*batch, vectors.shape[0], levels.numel())
