"""Soft curves on the CPU, as sums over points weighted by their coefficients.

With the transforms of `host_transforms.py` and the complexes of `host_shapes.py`, this module is
what computes on the CPU.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cpu.soft.sums import Sums
from ecc_core._backends.soft import SoftImages
from ecc_core._torch.cells import coefficients_of, filtration
from ecc_core._torch.host_coefficients import as_points, coefficients_of_points
from ecc_core._torch.host_curves import layer_curves as layer_curves
from ecc_core._torch.host_parameters import check_levels, doubles
from ecc_core._torch.host_shapes import simplicial_curves as simplicial_curves
from ecc_core._torch.host_shapes import simplicial_gradients as simplicial_gradients
from ecc_core._torch.host_transforms import by_orthant as by_orthant
from ecc_core._torch.host_transforms import fused_transform as fused_transform
from ecc_core._torch.host_transforms import gradients_by_orthant as gradients_by_orthant
from ecc_core._torch.host_transforms import projection_gradients as projection_gradients
from ecc_core._torch.host_transforms import projections as projections
from ecc_core._torch.threads import threads

Array = NDArray[Any]
Floats = NDArray[np.float64]


def curves(images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    values = _values(images)
    weights = coefficients_of_points(values, images.connectivity)
    kept = torch.from_numpy(weights if keep else weights[:, :0].copy())
    return *_sums(values, weights, images), kept


def weighted_curves(images: SoftImages, coefficients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return _sums(_values(images), coefficients.contiguous().numpy(), images)


def _sums(values: Array, weights: Array, images: SoftImages) -> tuple[Tensor, Tensor, Tensor]:
    """Return the curves, and their derivatives by threshold and by sharpness.

    `values` are those of the sublevel filtration and `weights` the coefficients of the points.
    """
    levels = doubles(images.thresholds)
    slope = float(images.sharpness)
    check_levels(levels, slope, "thresholds")
    sign = -1 if images.superlevel else 1
    sums = Sums(
        values=as_points(values),
        weights=weights,
        levels=sign * levels,
        sharpness=slope,
        workers=threads(),
    ).curves()
    sums[1] *= sign
    curve, slopes, spreads = map(torch.from_numpy, sums.astype(values.dtype))
    return curve, slopes, spreads


def gradient(
    upstream: Tensor,
    coefficients: Tensor,
    images: SoftImages,
    split: bool,
    dtype: torch.dtype,
    double: bool,
) -> Tensor:
    """Return the gradient of the images.

    That of a point is its coefficient times the sum of upstream * sharpness * s'(z) over the
    levels. With `double`, sums are in double precision: gradients of directions need it, because
    their terms cancel.
    """
    values = _values(images)
    weights = coefficients.contiguous().numpy()
    if split:
        divided = coefficients_of(torch.from_numpy(values), images.connectivity, "split")
        weights = as_points(divided.numpy())
    elif not coefficients.shape[1]:
        weights = coefficients_of_points(values, images.connectivity)
    sign = -1 if images.superlevel else 1
    levels = sign * doubles(images.thresholds)
    slope = float(images.sharpness)
    sums = Sums(
        values=as_points(values), weights=weights, levels=levels, sharpness=slope, workers=threads()
    )
    found = sums.gradients(-sign * doubles(upstream), double)
    return torch.from_numpy(found.reshape(values.shape)).to(dtype)


def _values(images: SoftImages) -> Array:
    """Return values (batch, *spatial) of the sublevel filtration, in the dtype of the levels."""
    terms = images.direction_terms
    if terms is not None and not bool(terms.isfinite().all()):
        raise ValueError(
            "`direction` must be finite and not zero and `direction_scale` finite, got "
            f"{terms[~terms.isfinite()][0]:g} * x"
        )
    image = images.image.to(images.thresholds.dtype)
    return filtration(image, terms, images.mask, images.superlevel).contiguous().numpy()
