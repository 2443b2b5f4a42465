"""Differentiable Euler characteristic curves and transforms, Betti curves and lifetimes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from ecc_core._backends import has_kernels
from ecc_core._backends.soft import Transformed
from ecc_core._request.filtration import check_connectivity, check_flag
from ecc_core._torch.curve import soft_curve
from ecc_core._torch.grids import coordinates
from ecc_core._torch.routes import bypasses_torch
from ecc_core._torch.transform import fused_transform, shape_of, transform, unit
from ecc_core.nn import _arguments as arguments
from ecc_core.nn._arguments import Scalar, Vector
from ecc_core.nn._betti import longest_lifetimes, soft_betti_curves
from ecc_core.nn._simplicial import soft_simplicial_transform

__all__ = [
    "longest_lifetimes",
    "soft_betti_curves",
    "soft_euler_curve",
    "soft_euler_transform",
    "soft_simplicial_transform",
]


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
    """Soft Euler characteristic curves, differentiable in every real argument.

    A cell that enters the filtration at the value v contributes
    ``sigmoid(sharpness * (t - v))`` at the threshold t, where the exact curve counts ``v <= t``
    [1]_. With growing sharpness the curve converges to :func:`ecc_core.euler_curve`. Memory does
    not grow with the product of points and thresholds.

    Parameters
    ----------
    image : (..., spatial) tensor
        Images along the last `n_spatial` axes; all axes before them are batch axes. Booleans and
        integers are converted to floats. Infinite points enter first or last, without a gradient.
    thresholds : (n,) tensor or sequence of float
        Thresholds in any order.
    sharpness : float or scalar tensor
        Positive sharpness of the steps, in inverse units of the image values. A step is about
        ``4 / sharpness`` wide.
    direction : (n_spatial,) tensor or sequence of float, optional
        Compute the curve of ``image + direction_scale * <u, x>``, where u is the unit vector along
        `direction` and ``x = (index - centre) * spacing``.
    direction_scale : float or scalar tensor, default 1
        Factor of the directional term; only with `direction`.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.euler_curve`: 1 connects points that share a face (V-construction),
        `n_spatial` (the default) also points that share only a corner (T-construction).
    superlevel : bool, default False
        Use the superlevel sets ``image >= t``: a cell contributes
        ``sigmoid(sharpness * (v - t))``.
    mask : (..., spatial) or (spatial) tensor of bool, optional
        Points where the mask is False never enter.
    spacing : float or n_spatial floats, default 1
        Distance between neighbouring points along each axis; only relevant with `direction`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    ties : {"raster", "split"}
        If several equal points determine the value of a cell, its gradient goes to the first of
        them in raster order, or is split evenly among them. The curve itself does not depend on it.

    Returns
    -------
    (..., n) tensor
        float64 for images of float64 or of integers with more than 16 bits, otherwise float32.

    Raises
    ------
    TypeError
        If `image` is not a tensor of real numbers or `mask` is not a tensor of booleans.
    ValueError
        If an argument has the wrong shape or is on another device than the image, if
        `connectivity`, `n_spatial`, `spacing` or `ties` is invalid, or if `direction_scale` is
        given without `direction`. On the CPU also for NaN, a `sharpness` that is not positive and a
        direction of length zero; on CUDA devices, where checking values would require a
        synchronization, these yield curves of NaN.

    See Also
    --------
    ecc_core.nn.EulerCurveLayer : The same as a layer, with learned thresholds and directions.

    Notes
    -----
    Thresholds and directions that are not tensors are copied to the device of the image, which
    synchronizes with it. Inside a CUDA graph, pass tensors that are already on the device.

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
    image, dtype = arguments.images(image, n_spatial, "image")
    connectivity = check_connectivity(connectivity, n_spatial)
    superlevel = check_flag(superlevel, "superlevel")
    if ties not in ("raster", "split"):
        raise ValueError(f'`ties` must be "raster" or "split", got {ties!r}')
    batch = image.shape[:-n_spatial]
    spatial = image.shape[-n_spatial:]
    levels = arguments.numbers_of(thresholds, "thresholds", image, dtype, "n")
    steps = arguments.spacing_of(spacing, n_spatial)
    terms = None
    if direction is not None:
        given = arguments.numbers_of(direction, "direction", image, dtype, n_spatial)
        along = unit(given)
        scale = 1.0 if direction_scale is None else direction_scale
        factor = arguments.finite_scalar(scale, "direction_scale", image, dtype)
        axes = [coordinates(n, s, along) for n, s in zip(spatial, steps, strict=True)]
        terms = factor * torch.cat([u * x for u, x in zip(along, axes, strict=True)])
    elif direction_scale is not None:
        raise ValueError("`direction_scale` must come with a `direction`, got no direction")
    if mask is not None:
        mask = arguments.check_mask(mask, image, spatial)
    keep = torch.is_grad_enabled() and (
        image.requires_grad or (terms is not None and terms.requires_grad)
    )
    slope = arguments.positive_scalar(sharpness, "sharpness", image, dtype)
    others = (levels, slope, terms, mask, connectivity, superlevel, ties, keep)
    by_kernels = image.is_cuda and bypasses_torch((image, *others))
    if by_kernels and has_kernels("cuda"):  # torch.compile cannot trace `has_kernels`.
        from ecc_core._torch import cuda

        if cuda.can_fuse(image, *others):
            return cuda.fused_curve(image, *others, n_spatial)
    views = len(batch) != 1  # The operator takes one axis of images.
    if views:
        image = image.reshape(math.prod(batch), *spatial)
    curve, *_ = soft_curve(image, *others)
    found: Tensor = curve.reshape(*batch, levels.numel()) if views else curve
    return found


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
    """Soft Euler characteristic transforms, differentiable in every real argument.

    A cell of weight w and height h contributes ``w * sigmoid(sharpness * (t - h))`` at the height
    t [1]_. With growing sharpness the transform converges to :func:`ecc_core.euler_transform`.

    Parameters
    ----------
    weights : (..., spatial) tensor
        Masks, boolean or of zeros and ones, or finite weights that are zero outside the object.
    directions : (k, n_spatial) tensor or sequence of vectors
        Directions, which need not have unit length.
    heights : (n,) tensor or sequence of float
        Heights in any order, in units of `spacing` and relative to the centre of the image.
    sharpness : float or scalar tensor
        Positive sharpness of the steps, in inverse units of `spacing`.
    connectivity, spacing, n_spatial
        As in :func:`soft_euler_curve`, except that `spacing` is always relevant.
    extension : {"max", "min"}
        How weights of points extend to cells. With "max" a cell has the weight that it has in
        :func:`ecc_core.euler_transform`: the maximum of its vertices (connectivity 1), or the
        minimum of the cubes of the object that contain it. "min" exchanges minimum and maximum, so
        that the transform of nonnegative weights is continuous where they become zero; use it for
        probabilities. For masks both give the same result.

    Returns
    -------
    (..., k, n) tensor
        float64 for weights of float64 or of integers with more than 16 bits, otherwise float32.
        The gradient of a weight that is zero is zero.

    Raises
    ------
    TypeError
        If `weights` is not a tensor of real numbers.
    ValueError
        If an argument has the wrong shape or is on another device than the weights, or if
        `connectivity`, `n_spatial`, `spacing` or `extension` is invalid. On the CPU also for
        weights that are not finite, a `sharpness` that is not positive and a direction of length
        zero; on CUDA devices these yield NaN.

    See Also
    --------
    ecc_core.nn.EulerTransformLayer : The same as a layer, with learned directions and heights.

    References
    ----------
    .. [1] Roell and Rieck, "Differentiable Euler characteristic transforms for shape
       classification", ICLR 2024, arXiv:2310.07630.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.functional import soft_euler_transform
    >>> letter = torch.tensor([[1, 0, 1], [1, 1, 1]], dtype=torch.bool)  # U
    >>> values = soft_euler_transform(letter, [[1, 0], [-1, 0]], [-0.5, 1.5], sharpness=60.0)
    >>> values.round().tolist()  # from above two arms, then joined; from below one part
    [[2.0, 1.0], [1.0, 1.0]]
    """
    weights, dtype = arguments.images(weights, n_spatial, "weights")
    connectivity = check_connectivity(connectivity, n_spatial)
    if extension not in ("max", "min"):
        raise ValueError(f'`extension` must be "max" or "min", got {extension!r}')
    vectors = arguments.numbers_of(directions, "directions", weights, dtype, "k", n_spatial)
    levels = arguments.numbers_of(heights, "heights", weights, dtype, "n")
    steps = arguments.spacing_of(spacing, n_spatial)
    slope = arguments.positive_scalar(sharpness, "sharpness", weights, dtype)
    if weights.dtype != dtype:
        weights = weights.to(dtype)
    given = Transformed(
        weights=weights,
        directions=vectors,
        heights=levels,
        sharpness=slope,
        connectivity=connectivity,
        extension=extension,
        spacing=steps,
    )
    if weights.numel() == 0:
        # Zero, with a graph that reaches all arguments: other ranks of a training step have images.
        zero = weights.sum() + 0 * (vectors.sum() + levels.sum() + slope)
        return zero.expand(shape_of(given))
    fused = fused_transform(given)
    return transform(given) if fused is None else fused
