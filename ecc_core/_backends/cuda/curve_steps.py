"""Soft curves of small images of one shape: the launches of both passes, planned together.

Images are contiguous, and have no mask. Memory is allocated by torch.
"""

import math
from typing import NamedTuple

import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft, soft_plans


class Given(NamedTuple):
    """Addresses of images, thresholds and sharpness."""

    images: int
    thresholds: int
    sharpness: int


class Wanted(NamedTuple):
    """Addresses of the gradients of what is given, or 0 for those that are not wanted."""

    images: int
    thresholds: int
    sharpness: int


class CurveSteps:
    """The launches for images (..., *spatial) of one shape.

    Attributes
    ----------
    shape : tuple of int
        Of the curves: images and thresholds.
    positions : int
        The number of images that are windows of the same image. Curves are (images / positions, n,
        positions).
    spatial : tuple of int
    sizes : tuple of int
        Floats that the forward pass keeps: windows, each of two derivatives, and coefficients,
        which are bytes and may be elsewhere.
    """

    def __init__(
        self,
        images: int,
        spatial: tuple[int, ...],
        dtype: torch.dtype,
        place: int,
        connectivity: int,
        superlevel: bool,
        levels: int,
        positions: int,
        device: int,
    ) -> None:
        points = self._points = math.prod(spatial)
        self.shape = images, levels
        self.spatial = spatial
        self.positions = positions
        self.sizes = soft_plans.window_words(levels), images * levels, ceil_div(images * points, 4)
        key = (images, *spatial), dtype, place, False, connectivity, superlevel, device
        self._coefficients, *places = soft_plans.coefficients(*key)
        self._values_at, _, self._coefficients_at = places
        scan = soft_plans.scan(images, points, dtype, superlevel, levels, device)
        kind = points, dtype, superlevel, levels, dtype
        gather, has_table = soft_plans.gather(images, *kind, False, device)
        with_totals, _ = soft_plans.gather(images, *kind, True, device)
        self.is_small = scan.small and not has_table
        self._scan = scan.call
        self._gather = {False: gather, True: with_totals}
        self._totals = soft_plans.tabulation(0, 0, images, levels, True, superlevel, device)

    @property
    def kept(self) -> int:
        """The floats that the forward pass keeps, coefficients included."""
        windows, rows, words = self.sizes
        return windows + 2 * rows + words

    def kept_places(self, kept: int) -> tuple[int, int, int, int]:
        """Return the addresses of windows, slopes, spreads and coefficients in what is kept."""
        windows, rows, _ = self.sizes
        slopes = kept + 4 * windows
        spreads = slopes + 4 * rows
        return kept, slopes, spreads, spreads + 4 * rows

    def forward(self, stream: int, given: Given, curves: int, kept: int, elsewhere: int) -> None:
        """Write the curves and what is kept; coefficients `elsewhere` if that is not 0."""
        windows, slopes, spreads, coefficients = self.kept_places(kept)
        to = elsewhere or coefficients
        words = (self._values_at, given.images), (self._coefficients_at, to)
        self._coefficients.launch(words, stream)
        read = given.images, to, self._points, 0, given.thresholds, given.sharpness
        written = curves, slopes, spreads, self.positions, windows
        soft.launch(self._scan, stream, (*read, *written))

    def backward(
        self,
        stream: int,
        given: Given,
        kept: int,
        upstream: tuple[int, int, int, int],
        wanted: Wanted,
    ) -> None:
        """Write the gradients that are wanted, by those of the curves: an address and strides.

        The strides are those from an image to the next, from a level to the next, and between
        positions.
        """
        windows, slopes, spreads, coefficients = self.kept_places(kept)
        rows = *upstream, self.positions, slopes, spreads
        totals = (*rows, wanted.thresholds, wanted.sharpness)
        has_totals = bool(wanted.thresholds or wanted.sharpness)
        if wanted.images:
            read = given.images, coefficients, self._points, 0, windows, given.sharpness, 0
            call = self._gather[has_totals]
            soft.launch(call, stream, (*read, wanted.images), totals)
        elif has_totals:
            soft.launch(self._totals, stream, totals)


@programs.plan
def plan_curves(
    shape: tuple[int, ...],
    n_spatial: int,
    dtype: torch.dtype,
    place: int,
    connectivity: int,
    superlevel: bool,
    levels: int,
    device: int,
) -> CurveSteps | None:
    """Return the launches for images, at an address modulo 16; None if they are not small."""
    images = math.prod(shape[: len(shape) - n_spatial])
    spatial = tuple(shape[len(shape) - n_spatial :])
    options = connectivity, superlevel, levels, soft_plans.WITHOUT_POSITIONS, device
    steps = CurveSteps(images, spatial, dtype, place, *options)
    return steps if steps.is_small else None
