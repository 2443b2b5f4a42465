"""The layer of soft transforms of meshes, graphs and point sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ecc_core.nn import _arguments
from ecc_core.nn._simplicial import layer_transform, soft_simplicial_transform
from ecc_core.nn.layers._base import EulerLayer, Range


class SimplicialTransformLayer(EulerLayer):
    """Soft Euler characteristic transforms of meshes, graphs and point sets.

    For each direction u, the layer returns the Euler characteristics of the simplices all of whose
    points have a height ``scale * <u, x> <= t``, for thresholds t. Shapes of a batch may differ in
    size.

    Parameters
    ----------
    directions : int or (k, n_spatial) array, default 16
        Initial directions, or the number of directions to spread evenly.
    thresholds : int or (m,) array, default 32
        Initial heights: an increasing array, or the number of heights to space evenly over `range`,
        both ends included.
    range : (low, high), optional
        Range of the heights; required if `thresholds` is an int and not allowed otherwise.
    sharpness : float, optional
        Initial sharpness l of the steps ``sigmoid(l * (t - height))``. Default: 4 divided by the
        mean spacing of the heights, which makes a step as wide as that spacing.
    scale : float, default 1
        Initial factor of the heights, which is positive.
    n_spatial : {3, 2, 1}
        Number of coordinates of the points.
    learn_thresholds, learn_directions : bool, default True
        Whether they are learned. Thresholds remain increasing, and directions unit vectors.
    learn_sharpness, learn_scale : bool, default False
        Whether they are learned. They remain positive.
    device, dtype
        Device and dtype of the parameters, as for any layer of torch.

    Attributes
    ----------
    directions : (k, n_spatial) tensor
    thresholds : (m,) tensor
    sharpness, scale : scalar tensor

    Raises
    ------
    TypeError, ValueError
        As for :class:`EulerCurveLayer`, and if `scale` is not positive.

    See Also
    --------
    ecc_core.nn.functional.soft_simplicial_transform : Definition, arguments and errors of a call.

    Notes
    -----
    The layer is called with points, simplices and, optionally, ``weights=``, ``batch=`` and
    ``shapes=``. It returns a tensor of shape (k, m), or (shapes, k, m) with a batch.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import SimplicialTransformLayer
    >>> layer = SimplicialTransformLayer(directions=8, thresholds=24, range=(-1, 1), n_spatial=2)
    >>> layer
    SimplicialTransformLayer(directions=8, thresholds=24, n_spatial=2,
                             learned=[thresholds, directions])
    >>> edges = torch.tensor([[0, 1], [1, 2], [3, 4]])
    >>> batch = torch.tensor([0, 0, 0, 1, 1])  # two graphs, of three and two points
    >>> layer(torch.randn(5, 2), [edges], batch=batch).shape
    torch.Size([2, 8, 24])
    """

    described: ClassVar = {"directions": None, "thresholds": None}

    log_scale: Tensor

    def __init__(
        self,
        directions: int | ArrayLike = 16,
        thresholds: int | ArrayLike = 32,
        *,
        range: Range | None = None,
        sharpness: float | None = None,
        scale: float = 1.0,
        n_spatial: int = 3,
        learn_thresholds: bool = True,
        learn_sharpness: bool = False,
        learn_directions: bool = True,
        learn_scale: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(n_spatial=n_spatial, device=device, dtype=dtype)
        del self.connectivity, self.spacing  # Only grids have them.
        gap = self._add_levels("thresholds", thresholds, range, learn_thresholds)
        self._add_sharpness(sharpness, gap, learn_sharpness)
        # FSDP cannot divide a parameter without axes.
        self._add_state("log_scale", [_arguments.log_of(scale, "scale")], learn_scale)
        self._add_directions(directions, learn_directions)

    @property
    def thresholds(self) -> Tensor:
        """Increasing heights, of shape (m,)."""
        return self._levels("thresholds")

    @property
    def scale(self) -> Tensor:
        """Factor of the heights, a positive scalar."""
        return self.log_scale.exp().reshape(())

    def forward(
        self,
        points: Tensor,
        simplices: Tensor | Sequence[Tensor],
        *,
        weights: Tensor | None = None,
        batch: Tensor | None = None,
        shapes: int | None = None,
    ) -> Tensor:
        """Compute transforms (k, m), or (shapes, k, m) with a `batch`, of points (n, n_spatial).

        Parameters
        ----------
        points : (n, n_spatial) tensor
        simplices, weights, batch, shapes
            As for :func:`ecc_core.nn.functional.soft_simplicial_transform`.

        Returns
        -------
        (k, m) tensor, or (shapes, k, m) tensor with a `batch`
        """
        _check_axes(points, self.n_spatial)
        by_kernels = self._by_kernels(points, simplices, weights, batch, shapes)
        if by_kernels is not None:
            return by_kernels
        return soft_simplicial_transform(
            points,
            simplices,
            self.free_directions,  # The function normalizes them.
            self.thresholds,
            sharpness=self.sharpness,
            scale=self.scale,
            weights=weights,
            batch=batch,
            shapes=shapes,
        )

    def _by_kernels(
        self,
        points: Any,
        simplices: Tensor | Sequence[Tensor],
        weights: Tensor | None,
        batch: Tensor | None,
        shapes: int | None,
    ) -> Tensor | None:
        """Transforms in a few launches on a CUDA device, in one function of autograd, else None."""
        if weights is not None:
            return None
        levels, step = self._given_levels("thresholds")
        scale, sharpness = self._state("log_scale"), self._state("log_sharpness")
        numbers = self._state("free_directions"), scale, levels, step, sharpness
        return layer_transform(points, simplices, numbers, batch, shapes)


def _check_axes(points: Any, n_spatial: int) -> None:
    """Raise an error for points of another dimension; what is no tensor is refused later."""
    if isinstance(points, Tensor) and points.shape[-1:] != (n_spatial,):
        wanted = f"(n, {n_spatial}) for n_spatial={n_spatial}"
        raise ValueError(f"`points` must have shape {wanted}, got {tuple(points.shape)}")
