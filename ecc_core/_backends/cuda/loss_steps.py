"""A loss of curves of small images or windows: all launches of one shape, planned together.

The gradient of the loss by the images is computed along with it, so that the backward pass has
little to do. Floats are float32 and contiguous. Memory is allocated by torch.
"""

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import curve_steps, programs, soft, soft_plans, soft_windows
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.curve_steps import CurveSteps
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._backends.cuda.passes import Pass, named
from ecc_core._backends.image_cuts import Cut

COMPARED = Struct("soft_loss.cu", "Compared")
NORM = Struct("soft_loss.cu", "Norm")
THREADS = 256
ALIGNED = 4  # Floats: the images that kernels read begin at a multiple of 16 bytes.
MOST_ERRORS = 1 << 20  # The most levels of all curves of one loss, which one block adds up.
CURVES_COMPARED = 2  # Each image has two curves: its own and that of the target.


class Kind(NamedTuple):
    """A loss: the sum over curves of a norm of the differences, times a factor."""

    n_spatial: int
    connectivity: int
    levels: int
    sharpness: float
    window: int | None
    """The side of windows that tile the images."""
    order: float
    """The order of the norm over the levels."""
    factor: float
    is_reduced: bool
    """Whether there is one loss of all images; otherwise each has its own."""


GIVEN = "images", "targets", "mask", "levels"
WORK = "all_windows", "sharpness", "curves", "own_slopes"
"""The memory of a pass: windows of images, then those of targets, and slopes of the loss."""
KEPT = "windows", "slopes", "spreads", "coefficients"
"""The memory that curves write for the backward pass."""


class LossSteps:
    """The launches for images (..., *spatial) of one shape.

    Attributes
    ----------
    work : int
        Floats of memory that the launches need.
    losses : int
        The number of losses: one of all images, or one of each image.
    is_small : bool
        Whether there are launches for images of this size; otherwise nothing else is planned.
    """

    def __init__(
        self, kind: Kind, shape: tuple[int, ...], target: torch.dtype, device: int
    ) -> None:
        images = math.prod(shape[: -kind.n_spatial])
        grid = shape[-kind.n_spatial :]
        windows, window = _windows_of(kind, images, grid)
        points = self._points = math.prod(window)
        size = windows * points
        self.losses = 1 if kind.is_reduced else images
        rows = windows // self.losses
        floats = torch.float32
        options = kind.connectivity, True, kind.levels, soft_plans.WITHOUT_POSITIONS, device
        curve = self._curve = CurveSteps(CURVES_COMPARED * windows, window, floats, 0, *options)
        gather = windows, points, floats, True, kind.levels, floats, False, device
        self._gather, has_table = soft_plans.gather(*gather)
        self.is_small = curve.is_small and not has_table and rows * kind.levels <= MOST_ERRORS
        if not self.is_small:  # Sizes may be too large for the numbers of other launches.
            return

        cut, of_images = _cut(kind, images, grid)
        self._compare = _plan_compared(kind, cut, of_images, size, target)
        norm = NORM(order=kind.order, factor=kind.factor, levels=kind.levels, rows=rows)
        self._errors = _plan_errors(norm, self.losses)
        self._leave = None
        if kind.window is not None:
            plan = of_images, cut, floats, images * math.prod(grid), device
            self._leave = soft_windows.plan("window_gradients", *plan)
        self._levels = kind.levels
        curves = windows * kind.levels
        sizes = CURVES_COMPARED * size, 1, CURVES_COMPARED * curves, curves, curve.kept, size
        aligned = [ALIGNED * ceil_div(part, ALIGNED) for part in sizes]
        *places, self.work = accumulate(aligned, initial=0)
        *work, kept, self._by_windows = (4 * place for place in places)
        self._offsets = *work, *(kept + offset for offset in curve.offsets)
        self._passes = {has_gradient: self._plan(has_gradient) for has_gradient in (False, True)}

    def forward(
        self, stream: int, given: tuple[int, ...], losses: int, by_images: int, work: int
    ) -> None:
        """Write the losses, and their gradients by the images to an address other than 0.

        The addresses `given` are those of images, targets, the mask or 0, and levels.
        """
        own = [work + offset for offset in self._offsets]
        by_windows = by_images if self._leave is None else work + self._by_windows
        self._passes[by_images != 0].launch((*given, *own, losses, by_windows, by_images), stream)

    def _plan(self, has_gradient: bool) -> Pass:
        launches = [named(self._compare, "images targets mask, , all_windows, sharpness")]
        names = curve_steps.NAMES._replace(images="all_windows", thresholds="levels")
        launches += self._curve.forward(names)
        launches.append(named(self._errors, ", curves, losses, own_slopes"))
        if has_gradient:
            rows = f"own_slopes {self._levels} 1 0 {soft_plans.WITHOUT_POSITIONS}"
            images = f"all_windows coefficients {self._points} 0 windows sharpness 0 by_windows"
            launches.append(named(self._gather, f"{images}, {rows}"))
        if has_gradient and self._leave is not None:
            launches.append(named(self._leave, ", by_windows, by_images"))
        return Pass((*GIVEN, *WORK, *KEPT, "losses", "by_windows", "by_images"), launches)


def _windows_of(kind: Kind, images: int, grid: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return the number of windows of all images, and the sides of one."""
    if kind.window is None:
        return images, grid
    return images * math.prod(_positions(kind.window, grid)), (kind.window,) * kind.n_spatial


def _positions(window: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(ceil_div(side, window) for side in grid)


def _cut(kind: Kind, images: int, grid: tuple[int, ...]) -> tuple[Cut, tuple[int, ...]]:
    """Return the windows, and the shape of the images that they are cut from.

    A whole image is a window along a single axis, on which all of its points lie.
    """
    if kind.window is None:
        points = math.prod(grid)
        whole = Cut(before=(0,), positions=(1,), side=points, stride=points, fill=0)
        return whole, (images, points)
    tiles = Cut(
        before=(0,) * len(grid),
        positions=_positions(kind.window, grid),
        side=kind.window,
        stride=kind.window,
        fill=0,
    )
    return tiles, (images, *grid)


def _plan_compared(
    kind: Kind, cut: Cut, shape: tuple[int, ...], size: int, target: torch.dtype
) -> Call:
    """Return the launch that takes the addresses of images, targets and mask, then of results."""
    grid = soft_windows.grid_of(shape, cut)
    struct = COMPARED(sharpness=kind.sharpness)
    macros = {"TARGET": ELEMENTS[element_of(target)], "AXES": len(cut.positions)}
    blocks = ceil_div(CURVES_COMPARED * size, THREADS)
    given = struct, grid, 0, 0, np.int64(size)
    return plan_call("soft_loss", "soft_compared", macros, (blocks,), THREADS, given)


def _plan_errors(norm: object, losses: int) -> Call:
    """Return the launch that takes the addresses of curves, losses and gradients of the curves."""
    macros = {"TARGET": ELEMENTS[element_of(torch.float32)], "AXES": 1}
    given = norm, 0, 0, 0
    return plan_call("soft_loss", "soft_errors", macros, (losses,), THREADS, given)


@programs.plan
def plan_loss(
    kind: Kind, shape: tuple[int, ...], target: torch.dtype, device: int
) -> LossSteps | None:
    """Return the launches for images, and targets of a dtype; None if they are not small."""
    with soft.planning(device):
        steps = LossSteps(kind, tuple(shape), target, device)
    return steps if steps.is_small else None
