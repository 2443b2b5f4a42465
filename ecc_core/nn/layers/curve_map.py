"""The layer of soft Euler characteristic curves of sliding windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.image_cuts import Cut
from ecc_core._request.resources import check_positive_int
from ecc_core._request.thresholds import as_count
from ecc_core._torch.windows import windows
from ecc_core.nn import _arguments
from ecc_core.nn.layers._base import Range
from ecc_core.nn.layers._calibrated import CalibratedLayer, Normalize


class EulerCurveMap(CalibratedLayer):
    """Soft Euler characteristic curves of sliding windows, as a feature map.

    For every image and channel of a batch, the layer returns the Euler characteristics of the
    sublevel sets ``window <= t`` for the windows around regularly spaced points. Each window is an
    image of its own. The thresholds t are learned with the rest of the network.

    Parameters
    ----------
    thresholds : int or (n,) array, default 8
        Initial thresholds, as for :class:`EulerCurveLayer`.
    range, sharpness
        As for :class:`EulerCurveLayer`.
    window : int or sequence of int, default 16
        Side length of the square (cubic) windows. Several lengths give curves at several scales, of
        windows with the same centres; lengths that differ by an odd number are centred to half a
        point.
    stride : int, optional
        Distance between neighbouring windows, by default half of the smallest window.
    padding : int or "same", default "same"
        Number of points that are added on each side of the image, which never enter. "same" adds as
        many as are needed for ``ceil(side / stride)`` windows along each axis. With several scales
        it refers to the largest window.
    superlevel, connectivity, n_spatial
        As for :class:`EulerCurveLayer`.
    normalize : {None, "side", "batch"}
        "side" divides curves by the side of a window. "batch" normalizes the values
        at each threshold and scale to mean 0 and variance 1 over the windows, images and channels
        of a batch, with running statistics in evaluation mode.
    learn_thresholds : bool, default True
        Whether they are learned. They remain increasing.
    learn_sharpness : bool, default False
        Whether it is learned. It remains positive.
    device, dtype
        Device and dtype of the parameters, as for any layer of torch.

    Attributes
    ----------
    thresholds : (n,) tensor
    sharpness : scalar tensor
    window : tuple of int
    stride : int
    padding : int or None
        None for "same".

    Raises
    ------
    TypeError
        If `thresholds` or `sharpness` are not real numbers, or `window`, `stride` or `padding` are
        not ints.
    ValueError
        If `window` or `stride` is less than 1 or `padding` less than 0, or as for
        :class:`EulerCurveLayer`. In a call, if no window fits into the padded image.
    RuntimeError
        If a layer that has not been calibrated is called in a compiled or distributed model.

    See Also
    --------
    EulerCurveLayer : The curve of each image as a whole.
    ecc_core.dask.local_curves : Exact curves of the neighbourhood of every point.

    Notes
    -----
    The layer is called with ``image`` of shape (..., channel, spatial) and optionally a boolean
    ``mask`` of the same shape or the spatial shape alone. It returns a tensor of shape
    (..., channel * scales * n, positions): the features of the first channel come first, and among
    these the curve of the first scale.

    Where neighbouring points have equal values the curve is not differentiable, and any one of them
    may get the gradient.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import EulerCurveMap
    >>> layer = EulerCurveMap(8, window=16, range=(0, 1))
    >>> layer(torch.rand(2, 3, 64, 48)).shape
    torch.Size([2, 24, 8, 6])
    >>> several = EulerCurveMap(8, window=(8, 16), range=(0, 1), normalize="side")
    >>> several(torch.rand(2, 3, 64, 48)).shape
    torch.Size([2, 48, 16, 12])
    """

    described: ClassVar = {
        "thresholds": None,
        "window": None,
        "stride": None,
        "padding": -1,
        "superlevel": False,
        "normalize": None,
    }

    def __init__(
        self,
        thresholds: int | ArrayLike = 8,
        *,
        range: Range | None = None,
        sharpness: float | None = None,
        window: int | Sequence[int] = 16,
        stride: int | None = None,
        padding: int | Literal["same"] = "same",
        superlevel: bool = False,
        connectivity: int | None = None,
        n_spatial: int = 2,
        normalize: Normalize | None = None,
        learn_thresholds: bool = True,
        learn_sharpness: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            connectivity=connectivity,
            n_spatial=n_spatial,
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
        sides = window if isinstance(window, list | tuple) else [window]
        self.window = tuple(check_positive_int(side, "window") for side in sides)
        if not self.window:
            raise ValueError("`window` must be at least one int, got none")
        stride = max(min(self.window) // 2, 1) if stride is None else stride
        self.stride = check_positive_int(stride, "stride")
        if isinstance(padding, str) and padding != "same":
            raise TypeError(f'`padding` must be an int or "same", got {padding!r}')
        self.padding = None if padding == "same" else as_count(padding, "padding")
        self._add_statistics(len(self.window))

    def forward(self, image: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute maps (..., channel * scales * n, positions) of images (..., channel, spatial).

        Parameters
        ----------
        image : (..., channel, spatial) tensor
        mask : bool tensor, optional
            True at the points that belong to the image. It has the shape of the image, or its
            spatial shape.

        Returns
        -------
        (..., channel * scales * n, positions) tensor

        Raises
        ------
        ValueError
            If the image has no axis of channels, or is smaller than a window without padding.
        """
        self._calibrate_if_needed(image)
        image = _arguments.check_tensor(image, "image")
        first = image.dim() - self.n_spatial
        if first < 1:
            raise ValueError(
                f"`image` must have at least {self.n_spatial + 1} axes (a channel and `n_spatial`)"
                f", got {tuple(image.shape)}"
            )
        spatial = image.shape[first:]
        image = _arguments.widened(image)
        if mask is not None:
            mask = _arguments.check_mask(mask, image, spatial).reshape(mask.shape)
            mask = mask.expand(image.shape)
        before, positions = self._placed(spatial)
        if len(self.window) == 1 and self.normalize != "batch":
            side = self.window[0]
            cut = Cut(tuple(before), tuple(positions), side, self.stride, self._never)
            fused = self._fused(image, mask, cut)
            if fused is not None:
                return fused / side if self.normalize == "side" else fused
        maps = [self._map(image, mask, side, before, positions) for side in self.window]
        # The shape is (..., channel, *positions, scales, n). A single scale needs no copy.
        features = maps[0].unsqueeze(-2) if len(maps) == 1 else torch.stack(maps, -2)
        shape = features.shape
        if self.normalize == "batch":
            features = self._normalized(features.flatten(-2), 1).reshape(shape)
        features = features.flatten(-2).movedim(-1, first)
        return features.flatten(first - 1, first)

    @property
    def _never(self) -> float:
        """The value of points that never enter."""
        return -math.inf if self.superlevel else math.inf

    def _placed(self, spatial: torch.Size) -> tuple[list[int], list[int]]:
        """Points to add before each axis, and the number of windows along it."""
        largest = max(self.window)
        if self.padding is None:
            if 0 in spatial:
                raise ValueError(
                    f"`image` must have points along each spatial axis, got {tuple(spatial)}"
                )
            counts = [ceil_div(length, self.stride) for length in spatial]
            spans = [(count - 1) * self.stride + largest for count in counts]
            excess = zip(spans, spatial, strict=True)
            return [(span - length) // 2 for span, length in excess], counts
        counts = [(length + 2 * self.padding - largest) // self.stride + 1 for length in spatial]
        if min(counts) < 1:
            raise ValueError(
                f"`image` must have at least {largest - 2 * self.padding} points along each "
                f"spatial axis for a window of {largest}, got {tuple(spatial)}"
            )
        return [self.padding] * self.n_spatial, counts

    def _map(
        self,
        image: Tensor,
        mask: Tensor | None,
        side: int,
        before: list[int],
        positions: list[int],
    ) -> Tensor:
        """Curves (..., *positions, n) of the windows of one scale."""
        inner = (max(self.window) - side) // 2
        spatial = image.shape[image.dim() - self.n_spatial :]
        starts = [n - inner for n in before]
        ends = [
            (count - 1) * self.stride + side - start - length
            for count, start, length in zip(positions, starts, spatial, strict=True)
        ]
        cut = partial(windows, before=starts, after=ends, side=side, stride=self.stride)
        image = cut(image, value=self._never)
        if mask is not None:
            mask = cut(mask, value=False)
        found = self._soft(image, mask)
        return found / side if self.normalize == "side" else found

    def extra_repr(self) -> str:
        """Describe sizes and settings."""
        return super().extra_repr().replace("padding=None", "padding='same'")
