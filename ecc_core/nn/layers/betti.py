"""The layers of soft Betti curves, and of the classes that last longest."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ecc_core._request.filtration import check_connectivity, check_flag
from ecc_core._request.persistence import check_persistence
from ecc_core._request.resources import check_positive_int
from ecc_core.nn import _arguments, _exact, functional
from ecc_core.nn._classes import exact_betti_curves
from ecc_core.nn.layers._base import Hard, Range
from ecc_core.nn.layers._calibrated import CalibratedLayer, Normalize


class BettiCurveLayer(CalibratedLayer):
    """Soft Betti curves of images or feature maps, with learnable thresholds.

    For every image and channel of a batch, the layer returns the numbers of components, holes (in
    volumes tunnels) and cavities of the sublevel sets ``image <= t``. Unlike the Euler
    characteristic, they tell a hole from a missing component. Gradients go to the points that cause
    the births and deaths.

    Parameters
    ----------
    thresholds : int or (n,) array, default 32
        Initial thresholds, as for :class:`EulerCurveLayer`.
    range : (low, high), optional
        Range of the image values; only if `thresholds` is an int. By default it is estimated from
        the first batch, see :meth:`calibrate`.
    sharpness : float, optional
        Initial sharpness l of the steps ``sigmoid(l * (t - x))``. Default: 4 divided by the mean
        spacing of the thresholds.
    min_persistence : float, default 0
        Only count classes whose values at birth and death differ by at least so much, which leaves
        out noise.
    superlevel : bool, default False
        Use the superlevel sets ``image >= t`` instead.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.betti_curves`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    normalize : {None, "side", "batch"}
        As for :class:`EulerCurveLayer`; "batch" normalizes at each threshold and dimension.
    hard : {None, "forward"}
        "forward" returns exact curves with the gradients of the soft ones.
    learn_thresholds : bool, default True
    learn_sharpness : bool, default False
        Whether they are learned. Thresholds remain increasing, and the sharpness positive.
    device, dtype
        Device and dtype of the parameters, as for any layer of torch.

    Attributes
    ----------
    thresholds : (n,) tensor
    sharpness : scalar tensor

    Raises
    ------
    TypeError
        If `thresholds`, `sharpness` or `min_persistence` are not real numbers.
    ValueError
        As for :class:`EulerCurveLayer`, and if `min_persistence` is negative.
    RuntimeError
        If a layer that has not been calibrated is called in a compiled or distributed model.

    See Also
    --------
    ecc_core.nn.functional.soft_betti_curves : Definition of the curves, and the errors of a call.
    EulerCurveLayer : Their alternating sum, which takes less time.

    Notes
    -----
    The layer is called with ``image`` of shape (..., spatial) and optionally a boolean ``mask`` of
    the same shape or the spatial shape alone. It returns a tensor of shape (..., n_spatial, n), of
    which the curve of components comes first.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import BettiCurveLayer
    >>> layer = BettiCurveLayer(5, range=(0, 1))
    >>> layer
    BettiCurveLayer(thresholds=5, n_spatial=2, connectivity=2, learned=[thresholds])
    >>> layer(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 2, 5])
    """

    described: ClassVar = {
        "thresholds": None,
        "min_persistence": 0,
        "superlevel": False,
        "normalize": None,
    }

    def __init__(
        self,
        thresholds: int | ArrayLike = 32,
        *,
        range: Range | None = None,
        sharpness: float | None = None,
        min_persistence: float = 0,
        superlevel: bool = False,
        connectivity: int | None = None,
        n_spatial: int = 2,
        normalize: Normalize | None = None,
        hard: Hard | None = None,
        learn_thresholds: bool = True,
        learn_sharpness: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            connectivity=connectivity,
            n_spatial=n_spatial,
            hard=hard,
            device=device,
            dtype=dtype,
        )
        self.min_persistence = check_persistence(min_persistence)
        self._add_curves(
            thresholds,
            range,
            sharpness,
            superlevel=superlevel,
            normalize=normalize,
            learn_thresholds=learn_thresholds,
            learn_sharpness=learn_sharpness,
        )
        self._add_statistics(self.n_spatial)

    def forward(self, image: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute curves (..., n_spatial, n) of images (..., spatial).

        Parameters
        ----------
        image : (..., spatial) tensor
        mask : bool tensor, optional
            True at the points that belong to the image. It has the shape of the image, or its
            spatial shape.

        Returns
        -------
        (..., n_spatial, n) tensor
        """
        self._calibrate_if_needed(image)
        curves = functional.soft_betti_curves(
            image,
            self.thresholds,
            sharpness=self.sharpness,
            min_persistence=self.min_persistence,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            mask=mask,
            n_spatial=self.n_spatial,
        )
        if self.hard is not None:
            curves = _exact.straight_through(
                exact_betti_curves,
                curves,
                _exact.flatten(image, self.n_spatial),
                self.thresholds,
                None if mask is None else _exact.flatten(mask, self.n_spatial),
                self.connectivity,
                self.superlevel,
                float(self.min_persistence),
            )
        return self._normalized(curves, math.prod(image.shape[image.dim() - self.n_spatial :]))


class LifetimeLayer(nn.Module):
    """Births and deaths of the components, holes and cavities that last longest.

    A vector of fixed length for the persistence diagram of each image, on which other layers build
    what they need. Gradients go to the points that cause the births and deaths.

    Parameters
    ----------
    count : int
        Number of classes of each dimension.
    superlevel : bool, default False
        Use the superlevel sets ``image >= t`` rather than ``image <= t``.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.persistence_pairs`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.

    Raises
    ------
    TypeError
        If `count` is not an int.
    ValueError
        If `count` is less than 1, or `connectivity` or `n_spatial` is invalid.

    See Also
    --------
    ecc_core.nn.functional.longest_lifetimes : Definition, and the errors of a call.
    BettiCurveLayer : Counts all classes at each threshold.

    Notes
    -----
    The layer is called with ``image`` of shape (..., spatial) and optionally a boolean ``mask`` of
    the same shape or the spatial shape alone. It returns a tensor of shape
    (..., n_spatial, count, 2).

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import LifetimeLayer
    >>> layer = LifetimeLayer(4)
    >>> layer
    LifetimeLayer(count=4, superlevel=False, n_spatial=2, connectivity=2)
    >>> births, deaths = layer(torch.rand(8, 1, 32, 32)).unbind(-1)
    >>> births.shape, bool((births <= deaths).all())
    (torch.Size([8, 1, 2, 4]), True)
    """

    def __init__(
        self,
        count: int,
        *,
        superlevel: bool = False,
        connectivity: int | None = None,
        n_spatial: int = 2,
    ) -> None:
        super().__init__()
        self.count = check_positive_int(count, "count")
        self.superlevel = check_flag(superlevel, "superlevel")
        self.n_spatial = _arguments.check_n_spatial(n_spatial)
        self.connectivity = check_connectivity(connectivity, self.n_spatial)

    def forward(self, image: Tensor, mask: Tensor | None = None) -> Tensor:
        """Find births and deaths (..., n_spatial, count, 2) of images (..., spatial).

        Parameters
        ----------
        image : (..., spatial) tensor
        mask : bool tensor, optional
            True at the points that belong to the image. It has the shape of the image, or its
            spatial shape.

        Returns
        -------
        (..., n_spatial, count, 2) tensor
        """
        return functional.longest_lifetimes(
            image,
            self.count,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            mask=mask,
            n_spatial=self.n_spatial,
        )

    def extra_repr(self) -> str:
        """Describe the settings."""
        names = "count", "superlevel", "n_spatial", "connectivity"
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
