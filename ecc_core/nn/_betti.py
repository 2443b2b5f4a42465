"""Soft Betti curves, and the classes that last longest, with gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._request.filtration import check_connectivity, check_flag
from ecc_core._request.persistence import check_persistence
from ecc_core._request.resources import check_positive_int
from ecc_core._torch.weighted import weighted_soft_curve
from ecc_core.nn import _arguments as arguments
from ecc_core.nn._arguments import Scalar, Vector
from ecc_core.nn._classes import betti_coefficients, check_no_export, longest_classes

__all__ = ["longest_lifetimes", "soft_betti_curves"]


def soft_betti_curves(
    image: Tensor,
    thresholds: Vector,
    *,
    sharpness: Scalar,
    min_persistence: float = 0,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Tensor | None = None,
    n_spatial: int = 2,
) -> Tensor:
    """Soft Betti curves, differentiable in the image, the thresholds and the sharpness.

    A component, hole (tunnel) or cavity that is born at the value b and dies at the value d
    contributes ``sigmoid(sharpness * (t - b)) - sigmoid(sharpness * (t - d))`` at the threshold t,
    where the exact curve counts ``b <= t < d``. With growing sharpness the curves converge to
    :func:`ecc_core.betti_curves`. Gradients go to the points that cause the births and deaths [1]_.

    Parameters
    ----------
    image : (..., spatial) tensor
        Images along the last `n_spatial` axes; all axes before them are batch axes. Booleans and
        integers are converted to floats. Infinite points enter first or last, without a gradient.
    thresholds : (n,) tensor or sequence of float
        Thresholds in any order.
    sharpness : float or scalar tensor
        Positive sharpness of the steps, in inverse units of the image values.
    min_persistence : float, default 0
        Only count classes whose values at birth and death differ by at least so much. The curves
        jump where a class begins to count.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.betti_curves`.
    superlevel : bool, default False
        Use the superlevel sets ``image >= t``, so that b >= d.
    mask : (..., spatial) or (spatial) tensor of bool, optional
        Points where the mask is False never enter.
    n_spatial : {2, 1, 3}
        Number of spatial axes.

    Returns
    -------
    (..., n_spatial, n) tensor
        The curves of components, holes (in volumes tunnels) and cavities. float64 for images of
        float64 or of integers with more than 16 bits, otherwise float32.

    Raises
    ------
    TypeError
        If `image` is not a tensor of real numbers, `mask` is not a tensor of booleans, or
        `min_persistence` is not a real number.
    ValueError
        For NaN where the mask keeps a point, a `sharpness` that is not positive, arguments of the
        wrong shape or on another device than the image, or an invalid `connectivity`,
        `min_persistence` or `n_spatial`.

    See Also
    --------
    ecc_core.nn.BettiCurveLayer : The same as a layer, with learned thresholds.
    soft_euler_curve : Their alternating sum, which needs no pairs and takes less time.

    Notes
    -----
    Pairs are found on the host, and on CUDA devices for large batches if CuPy is there. As with
    :func:`soft_euler_curve`, one of several points of equal value gets the gradient.

    References
    ----------
    .. [1] Gabrielsson, Nelson, Dwaraknath, Skraba, Guibas, Carlsson, "A topology layer for machine
       learning", AISTATS 2020, arXiv:1905.12200.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.functional import soft_betti_curves
    >>> ring = torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]], requires_grad=True)
    >>> curves = soft_betti_curves(ring, [0.5, 1.1], sharpness=40.0, connectivity=1)
    >>> curves.detach().round().abs().tolist()  # one component; a hole, then none
    [[1.0, 1.0], [1.0, 0.0]]
    >>> curves[1, 1].backward()
    >>> bool(ring.grad[1, 1] > 0)  # a higher centre fills the hole later
    True
    """
    check_no_export()
    image, dtype = arguments.images(image, n_spatial, "image")
    connectivity = check_connectivity(connectivity, n_spatial)
    superlevel = check_flag(superlevel, "superlevel")
    least = float(check_persistence(min_persistence))
    batch = image.shape[:-n_spatial]
    spatial = image.shape[-n_spatial:]
    levels = arguments.numbers_of(thresholds, "thresholds", image, dtype, "n")
    slope = arguments.positive_scalar(sharpness, "sharpness", image, dtype)
    if mask is not None:
        mask = arguments.check_mask(mask, image, spatial)
    count = math.prod(batch)
    images = image.reshape(count, *spatial)
    coefficients = betti_coefficients(images.detach(), mask, connectivity, superlevel, least)
    each = images.unsqueeze(1).expand(count, n_spatial, *spatial).flatten(0, 1)
    if mask is not None and mask.shape[0] != 1:
        mask = mask.unsqueeze(1).expand(count, n_spatial, *spatial).flatten(0, 1)
    curves: Tensor = weighted_soft_curve(
        each, coefficients.flatten(0, 1), levels, slope, mask, superlevel
    )[0]
    return curves.reshape(*batch, n_spatial, levels.numel())


def longest_lifetimes(
    image: Tensor,
    count: int,
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Tensor | None = None,
    n_spatial: int = 2,
) -> Tensor:
    """Births and deaths of the classes that last longest, differentiable in the image.

    Parameters
    ----------
    image : (..., spatial) tensor
        As for :func:`soft_betti_curves`.
    count : int
        Number of classes of each dimension.
    connectivity, superlevel, mask, n_spatial
        As for :func:`soft_betti_curves`.

    Returns
    -------
    (..., n_spatial, count, 2) tensor
        Values at birth and death of the components, holes (in volumes tunnels) and cavities that
        last longest, the longest first; zeros where there are fewer. A class that never dies, as
        the oldest component, dies at the value that enters last. The dtype is that of the curves.

    Raises
    ------
    TypeError
        If `image` is not a tensor of real numbers, `mask` is not a tensor of booleans, or `count`
        is not an int.
    ValueError
        For NaN where the mask keeps a point, a `count` less than 1, a mask of the wrong shape or on
        another device, or an invalid `connectivity` or `n_spatial`.

    See Also
    --------
    ecc_core.nn.LifetimeLayer : The same as a layer.
    ecc_core.persistence_pairs : All classes, with their points.

    Notes
    -----
    A value is that of a point of the image, which gets its gradient. Derivatives of any order are
    available; those of the second order are zero.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.functional import longest_lifetimes
    >>> image = torch.tensor([[0.0, 0, 0], [0, 3, 0.5], [0, 0, 0]])
    >>> longest_lifetimes(image, 2, connectivity=1).tolist()
    [[[0.0, 3.0], [0.0, 0.0]], [[0.5, 3.0], [0.0, 0.0]]]
    """
    check_no_export()
    image, dtype = arguments.images(image, n_spatial, "image")
    connectivity = check_connectivity(connectivity, n_spatial)
    superlevel = check_flag(superlevel, "superlevel")
    count = check_positive_int(count, "count")
    batch = image.shape[:-n_spatial]
    spatial = image.shape[-n_spatial:]
    if mask is not None:
        mask = arguments.check_mask(mask, image, spatial)
    images = image.reshape(math.prod(batch), *spatial)
    points = longest_classes(images.detach(), mask, count, connectivity, superlevel)
    values = pad(images.flatten(1).to(dtype), (0, 1))  # Classes that are missing point there.
    found = torch.gather(values, 1, points.flatten(1))
    return found.reshape(*batch, n_spatial, count, 2)
