"""The layer of soft Euler characteristic transforms."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ecc_core._backends.soft import Transformed
from ecc_core._torch.transform import fused_transform
from ecc_core.nn import _exact, functional
from ecc_core.nn.layers._base import EulerLayer, Hard, Range


class EulerTransformLayer(EulerLayer):
    """Soft Euler characteristic transforms of masks or weights, with learnable parameters.

    For each direction u, the layer returns the Euler characteristics of the parts ``<u, x> <= t``
    of an object, for heights t. The object consists of the points that are not zero, whose values
    are the weights of its cells.

    Parameters
    ----------
    directions : int or (k, n_spatial) array, default 16
        Initial directions, or the number of directions to spread evenly.
    heights : int or (n,) array, default 32
        Initial heights, in units of `spacing` and relative to the centre of the image: an
        increasing array, or the number of heights to space evenly over `range`, both ends included.
    range : (low, high), optional
        Range of the heights; required if `heights` is an int and not allowed otherwise. Half the
        diagonal of the image in both directions covers all heights.
    sharpness : float, optional
        Initial sharpness l of the steps ``sigmoid(l * (t - height))``. Default: 4 divided by the
        mean spacing of the heights, which makes a step as wide as that spacing.
    extension : {"max", "min"}
        How weights of points extend to cells, see
        :func:`ecc_core.nn.functional.soft_euler_transform`. Use "min" for probabilities; for masks
        both give the same result.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.euler_transform`.
    spacing : float or (n_spatial,) array, default 1
        Distance between neighbouring points along each axis.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    hard : {None, "forward"}
        "forward" returns exact transforms with the gradients of the soft ones (a straight-through
        estimator). It requires `extension` "max".
    learn_heights, learn_directions : bool, default True
        Whether they are learned. Heights remain increasing, and directions unit vectors.
    learn_sharpness : bool, default False
        Whether it is learned. It remains positive.
    device, dtype
        Device and dtype of the parameters, as for any layer of torch.

    Attributes
    ----------
    directions : (k, n_spatial) tensor
    heights : (n,) tensor
    sharpness : scalar tensor

    Raises
    ------
    TypeError, ValueError
        As for :class:`EulerCurveLayer`, and if `extension` is invalid.

    See Also
    --------
    ecc_core.nn.functional.soft_euler_transform : Definition of the transform, and the errors of a
        call.

    Notes
    -----
    The layer is called with weights of shape (..., spatial) and returns a tensor of shape
    (..., k, n). The optimizer works on unconstrained parameters, as for :class:`EulerCurveLayer`.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import EulerTransformLayer
    >>> layer = EulerTransformLayer(directions=8, heights=24, range=(-23, 23))
    >>> layer
    EulerTransformLayer(directions=8, heights=24, n_spatial=2, connectivity=2,
                        learned=[heights, directions])
    >>> layer((torch.rand(4, 1, 32, 32) > 0.5).float()).shape
    torch.Size([4, 1, 8, 24])
    """

    free_heights: Tensor
    heights_step: Tensor
    described: ClassVar = {"directions": None, "heights": None, "extension": "max"}

    def __init__(
        self,
        directions: int | ArrayLike = 16,
        heights: int | ArrayLike = 32,
        *,
        range: Range | None = None,
        sharpness: float | None = None,
        extension: Literal["max", "min"] = "max",
        connectivity: int | None = None,
        spacing: float | ArrayLike | None = None,
        n_spatial: int = 2,
        hard: Hard | None = None,
        learn_heights: bool = True,
        learn_sharpness: bool = False,
        learn_directions: bool = True,
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
        if extension not in ("max", "min"):
            raise ValueError(f'`extension` must be "max" or "min", got {extension!r}')
        if hard is not None and extension != "max":
            raise ValueError(f'`extension` must be "max" for hard={hard!r}, got {extension!r}')
        self.extension: Literal["max", "min"] = extension
        gap = self._add_levels("heights", heights, range, learn_heights)
        self._add_sharpness(sharpness, gap, learn_sharpness)
        self._add_directions(directions, learn_directions)

    @property
    def heights(self) -> Tensor:
        """Increasing heights, of shape (n,)."""
        return self._levels("heights")

    def forward(self, weights: Tensor) -> Tensor:
        """Compute transforms (..., k, n) of weights (..., spatial).

        Parameters
        ----------
        weights : (..., spatial) tensor

        Returns
        -------
        (..., k, n) tensor
        """
        if self.hard is None:
            fused = self._fused(weights)
            if fused is not None:
                return fused
        heights = self.heights
        soft = functional.soft_euler_transform(
            weights,
            self.free_directions,  # The function normalizes them.
            heights,
            sharpness=self.sharpness,
            connectivity=self.connectivity,
            spacing=self.spacing,
            n_spatial=self.n_spatial,
            extension=self.extension,
        )
        if self.hard is None:
            return soft
        return _exact.straight_through(
            _exact.exact_transform,
            soft,
            _exact.flatten(weights, self.n_spatial),
            self.directions,
            heights,
            self.spacing,
            self.connectivity,
        )

    def _fused(self, weights: Any) -> Tensor | None:
        """Transforms in one function of autograd from the parameters on, else None."""
        if not isinstance(weights, Tensor) or weights.dim() < self.n_spatial:
            return None
        levels, step = self._given_levels("heights")
        given = Transformed(
            weights=weights,
            directions=self._state("free_directions"),  # The kernels normalize them.
            heights=levels,
            sharpness=self._state("log_sharpness"),
            connectivity=self.connectivity,
            extension=self.extension,
            spacing=tuple(self.spacing),
        )
        return fused_transform(given, step, is_logarithm=True)
