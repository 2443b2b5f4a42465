"""Soft curves of small images of one shape: the launches of both passes, planned together.

Images are contiguous, and have no mask. Memory is allocated by torch.
"""

import math
from typing import NamedTuple

import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft, soft_plans
from ecc_core._backends.cuda.passes import NONE, Named, Pass, named


class Names(NamedTuple):
    """The names of addresses in the launches of a pass."""

    images: str
    thresholds: str
    sharpness: str
    coefficients: str
    curves: str
    slopes: str
    spreads: str
    windows: str
    numbers: str = NONE
    """Free numbers that increasing thresholds follow from."""
    step: str = NONE
    log_sharpness: str = NONE
    """The logarithm from which the forward pass computes the sharpness, which it writes."""


class Wanted(NamedTuple):
    """The names of addresses of gradients, or NONE for those that are not wanted."""

    images: str
    thresholds: str
    sharpness: str
    """The gradient of the sharpness, or of its logarithm if that is given."""
    numbers: str = NONE
    """If this is wanted, `thresholds` only names room for the gradients of thresholds."""


class CurveSteps:
    """The launches for images (..., *spatial) of one shape.

    Attributes
    ----------
    shape : tuple of int
        The shape of the curves: images and thresholds.
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

    @property
    def offsets(self) -> tuple[int, int, int, int]:
        """The bytes before windows, slopes, spreads and coefficients in what is kept."""
        windows, rows, _ = self.sizes
        return 0, 4 * windows, 4 * (windows + rows), 4 * (windows + 2 * rows)

    def forward(self, names: Names) -> list[Named]:
        """Return the launches that write the curves and what is kept."""
        places = {self._values_at: names.images, self._coefficients_at: names.coefficients}
        given, written = names.sharpness, NONE
        if names.log_sharpness != NONE:
            given, written = written, given
        read = f"{names.images} {names.coefficients} {self._points} 0 {names.thresholds} {given}"
        kept = f"{names.curves} {names.slopes} {names.spreads} {self.positions} {names.windows}"
        parameters = f"{names.numbers} {names.step} {names.log_sharpness} {written}"
        scan = named(self._scan, f"{read} {kept} {parameters}")
        return [Named(self._coefficients, places), scan]

    def backward(self, names: Names, upstream: str, wanted: Wanted) -> list[Named]:
        """Return the launches that write the gradients that are wanted, by those of the curves.

        `upstream` names their address and strides: those from an image to the next, from a level to
        the next, and between positions.
        """
        rows = f"{upstream} {self.positions} {names.slopes} {names.spreads}"
        parameters = f"{names.numbers} {names.step} {wanted.numbers} {names.log_sharpness}"
        totals = f"{rows} {wanted.thresholds} {wanted.sharpness} {parameters}"
        has_totals = (wanted.thresholds, wanted.sharpness) != (NONE, NONE)
        if wanted.images != NONE:
            read = f"{names.images} {names.coefficients} {self._points} 0 {names.windows}"
            images = f"{read} {names.sharpness} 0 {wanted.images}"
            return [named(self._gather[has_totals], f"{images}, {totals}")]
        return [named(self._totals, totals)] if has_totals else []


ADDRESSES = Names._fields[: Names._fields.index("numbers")]
NAMES = Names(*ADDRESSES)


class CurvePasses:
    """The passes of curves alone, of images (..., *spatial) of one shape.

    Attributes
    ----------
    steps : CurveSteps
    """

    def __init__(self, steps: CurveSteps) -> None:
        self.steps = steps
        self._forward = Pass(ADDRESSES, steps.forward(NAMES))
        self._backward: dict[tuple[bool, ...], Pass] = {}

    def forward(self, stream: int, given: tuple[int, int, int], to: tuple[int, int, int]) -> None:
        """Write the curves and what is kept.

        `given` are the addresses of images, thresholds and sharpness; `to` those of coefficients,
        curves and what is kept.
        """
        coefficients, curves, kept = to
        windows, slopes, spreads, _ = self.steps.offsets
        derivatives = kept + slopes, kept + spreads
        self._forward.launch((*given, coefficients, curves, *derivatives, kept + windows), stream)

    def backward(
        self,
        stream: int,
        given: tuple[int, int, int],
        kept: int,
        upstream: tuple[int, int, int],
        found: tuple[int, int, int],
    ) -> None:
        """Write gradients of images, thresholds and sharpness to their addresses, or 0.

        `upstream` are the address of the gradient of the curves, and its strides.
        """
        wanted = tuple(map(bool, found))
        launches = self._backward.get(wanted) or self._plan_backward(wanted)
        windows, slopes, spreads, coefficients = self.steps.offsets
        own = kept + coefficients, kept + slopes, kept + spreads, kept + windows
        launches.launch((*given, *own, *upstream, *found), stream)

    def _plan_backward(self, wanted: tuple[bool, ...]) -> Pass:
        names = "by_images", "by_thresholds", "by_sharpness"
        found = (name if is_wanted else NONE for name, is_wanted in zip(names, wanted, strict=True))
        upstream = "upstream of_image of_level 0"
        launches = self.steps.backward(NAMES, upstream, Wanted(*found))
        kept = "coefficients", "slopes", "spreads", "windows"
        given = *ADDRESSES[:3], *kept, "upstream", "of_image", "of_level", *names
        made = self._backward[wanted] = Pass(given, launches)
        return made


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
) -> CurvePasses | None:
    """Return the passes of images, at an address modulo 16; None if they are not small."""
    images = math.prod(shape[: len(shape) - n_spatial])
    spatial = tuple(shape[len(shape) - n_spatial :])
    options = connectivity, superlevel, levels, soft_plans.WITHOUT_POSITIONS, device
    with soft.planning(device):
        steps = CurveSteps(images, spatial, dtype, place, *options)
    return CurvePasses(steps) if steps.is_small else None
