"""The layer of soft Euler characteristic curves."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ecc_core._backends import has_kernels
from ecc_core._torch.routes import bypasses_torch
from ecc_core._torch.transform import add_heights
from ecc_core.nn import _arguments, _exact
from ecc_core.nn.layers._base import Hard, Range
from ecc_core.nn.layers._calibrated import CalibratedLayer, Normalize

FEW_POINTS = 1 << 20
"""Points, over all directions, up to which one call for all directions is worth its memory."""


class EulerCurveLayer(CalibratedLayer):
    """Soft Euler characteristic curves of images or feature maps, with learnable parameters.

    For every image and channel of a batch, the layer returns the Euler characteristics of the
    sublevel sets ``image <= t``. The thresholds t are learned with the rest of the network.

    Parameters
    ----------
    thresholds : int or (n,) array, default 32
        Initial thresholds: an increasing array, or the number of thresholds to space evenly over
        `range`, both ends included.
    range : (low, high), optional
        Range of the image values; only if `thresholds` is an int. By default it is estimated from
        the first batch, see :meth:`calibrate`.
    sharpness : float, optional
        Initial sharpness l of the steps ``sigmoid(l * (t - x))``. Default: 4 divided by the mean
        spacing of the thresholds, which makes a step as wide as that spacing.
    directions : int or (k, n_spatial) array, optional
        Compute k directional curves instead of one, each of ``image + scale * <u, x>`` for a unit
        vector u and point coordinates x relative to the centre of the image. An int gives that many
        evenly spread directions.
    direction_scale : float, optional
        Initial scale of every direction, positive; only with `directions`. By default the added
        term varies over the image as much as the values of the first batch do.
    superlevel : bool, default False
        Use the superlevel sets ``image >= t`` instead.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.euler_curve`.
    spacing : float or (n_spatial,) array, default 1
        Distance between neighbouring points along each axis; only relevant with `directions`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    normalize : {None, "side", "batch"}
        "side" divides curves by the side of an image, in points (the geometric mean of its sides).
        "batch" normalizes the values at each threshold and direction to mean 0 and variance 1 over
        the images and channels of a batch, with running statistics in evaluation mode as in
        :class:`torch.nn.BatchNorm1d`.
    hard : {None, "forward"}
        "forward" returns exact curves with the gradients of the soft ones (a straight-through
        estimator).
    learn_thresholds, learn_directions : bool, default True
        Whether they are learned. Thresholds remain increasing, and directions unit vectors.
    learn_sharpness, learn_direction_scale : bool, default False
        Whether they are learned. Both remain positive, and each direction has its own scale.
    device, dtype
        Device and dtype of the parameters, as for any layer of torch.

    Attributes
    ----------
    thresholds : (n,) tensor
    sharpness : scalar tensor
    directions : (k, n_spatial) tensor
        Only if the layer has directions.
    direction_scale : (k,) tensor
        Only if the layer has directions.

    Raises
    ------
    TypeError
        If `thresholds`, `directions` or `sharpness` are not real numbers.
    ValueError
        If the thresholds are not increasing, or are to be learned and not finite or not distinct;
        if `sharpness` or `direction_scale` is not positive, or `sharpness` is missing and the
        thresholds have no spacing; if another argument has an invalid value or shape.
    RuntimeError
        If a layer that has not been calibrated is called in a compiled or distributed model.

    See Also
    --------
    ecc_core.nn.functional.soft_euler_curve : Definition of the curve, and the errors of a call.

    Notes
    -----
    The layer is called with ``image`` of shape (..., spatial) and optionally a boolean ``mask`` of
    the same shape or the spatial shape alone. It returns a tensor of shape (..., n), or (..., k, n)
    with directions; an image of shape (batch, channel, row, column) has one curve per channel.

    The optimizer works on unconstrained parameters: the first threshold and the gaps that follow
    it, mapped by a softplus and in units of their initial mean spacing; vectors that are normalized
    to directions; and the logarithms of the sharpness and of the scales. The same learning rate
    therefore suits images of any range. Weight decay would pull these parameters towards arbitrary
    values; :func:`ecc_core.nn.parameter_groups` exempts them from it. Since Euler characteristics
    grow with the size of an image, networks train more easily with `normalize`.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import EulerCurveLayer
    >>> layer = EulerCurveLayer(5, range=(0, 1))
    >>> layer
    EulerCurveLayer(thresholds=5, n_spatial=2, connectivity=2, learned=[thresholds])
    >>> layer(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 5])
    >>> layer.thresholds.tolist(), layer.sharpness.item()
    ([0.0, 0.25, 0.5, 0.75, 1.0], 16.0)

    Without a range, the thresholds are set by :meth:`calibrate` or by the first batch:

    >>> layer = EulerCurveLayer(5, normalize="batch")
    >>> layer.calibrate(torch.linspace(-3, 3, 10_000).reshape(100, 100), quantiles=(0, 1))
    >>> layer.thresholds.tolist()
    [-3.0, -1.5, 0.0, 1.5, 3.0]
    """

    described: ClassVar = {
        "thresholds": None,
        "directions": None,
        "superlevel": False,
        "normalize": None,
    }

    def __init__(
        self,
        thresholds: int | ArrayLike = 32,
        *,
        range: Range | None = None,
        sharpness: float | None = None,
        directions: int | ArrayLike | None = None,
        direction_scale: float | None = None,
        superlevel: bool = False,
        connectivity: int | None = None,
        spacing: float | ArrayLike | None = None,
        n_spatial: int = 2,
        normalize: Normalize | None = None,
        hard: Hard | None = None,
        learn_thresholds: bool = True,
        learn_sharpness: bool = False,
        learn_directions: bool = True,
        learn_direction_scale: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            connectivity=connectivity,
            spacing=spacing,
            n_spatial=n_spatial,
            hard=hard,
            device=device,
            dtype=dtype,
        )
        self._add_curves(
            thresholds,
            range,
            sharpness,
            superlevel=superlevel,
            normalize=normalize,
            learn_thresholds=learn_thresholds,
            learn_sharpness=learn_sharpness,
        )
        self.directed = directions is not None
        self._estimates_scale = self.directed and direction_scale is None
        count = 1
        if directions is not None:
            count = self._add_directions(directions, learn_directions)
            if count == 0:
                raise ValueError("`directions` must be None or at least one, got 0")
            start = 1.0 if direction_scale is None else direction_scale
            scale = _arguments.log_of(start, "direction_scale")
            self._add_state("log_direction_scale", [scale] * count, learn_direction_scale)
        self._add_statistics(count)

    @property
    def direction_scale(self) -> Tensor:
        """Positive scales of the directions, of shape (k,)."""
        return self.log_direction_scale.exp()

    def forward(self, image: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute curves (..., n), or (..., k, n), of images (..., spatial).

        Parameters
        ----------
        image : (..., spatial) tensor
        mask : bool tensor, optional
            True at the points that belong to the image. It has the shape of the image, or its
            spatial shape.

        Returns
        -------
        (..., n) or (..., k, n) tensor
            The latter with directions.
        """
        self._calibrate_if_needed(image)
        fused = None
        if not self.directed or self._adds_directions(image):
            fused = self._fused(image, mask)
        if fused is not None:
            curves = fused
        elif not self.directed:
            curves = self._curve(image, mask)
        elif self._adds_directions(image):
            curves = self._curve(*self._directed(image, mask))
        else:
            pairs = zip(self.directions, self.direction_scale, strict=True)
            curves = torch.stack([self._curve(image, mask, *pair) for pair in pairs], dim=-2)
        return self._normalized(curves, math.prod(image.shape[image.dim() - self.n_spatial :]))

    def _adds_directions(self, image: Any) -> bool:
        """Whether to add the directions to the images and compute all curves in one call."""
        return (
            self.hard is None
            and isinstance(image, Tensor)
            and image.is_floating_point()
            and image.dim() >= self.n_spatial
            and not torch.compiler.is_compiling()  # A graph should not depend on the size.
            and image.numel() * len(self.free_directions) <= FEW_POINTS
        )

    def _directed(self, image: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Images (..., k, spatial), one for each direction, and their masks."""
        axis = image.dim() - self.n_spatial
        image = self._with_heights(image)
        if isinstance(mask, Tensor) and mask.dim() > self.n_spatial:
            mask = mask.unsqueeze(axis).expand(image.shape)
        return image, mask

    def _with_heights(self, image: Tensor) -> Tensor:
        """Images (..., k, spatial), to which the heights along each direction are added."""
        dtype = torch.float64 if image.dtype == torch.float64 else torch.float32
        image = image.to(dtype)
        log_scales = self.log_direction_scale.to(dtype)
        free = self.free_directions.to(dtype)
        if image.is_cuda and bypasses_torch((image, free, log_scales)) and has_kernels("cuda"):
            from ecc_core._torch import cuda

            if cuda.can_add_heights(image, free, log_scales):
                return cuda.with_heights(image, free, log_scales, tuple(self.spacing))
        scales = self.direction_scale.to(dtype)
        return add_heights(image, self.directions.to(dtype), scales, self.spacing)

    def _curve(
        self,
        image: Tensor,
        mask: Tensor | None,
        direction: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> Tensor:
        soft = self._soft(image, mask, direction=direction, direction_scale=scale)
        if self.hard is None:
            return soft
        return _exact.straight_through(
            _exact.exact_curve,
            soft,
            _exact.flatten(image, self.n_spatial),
            self.thresholds,
            None if mask is None else _exact.flatten(mask, self.n_spatial),
            direction,
            scale,
            self.spacing,
            self.connectivity,
            self.superlevel,
        )
