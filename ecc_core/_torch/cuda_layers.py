"""Layers of curves of small images on CUDA devices, as one function of autograd.

The kernels of a pass also compute thresholds, sharpness and vectors from the parameters of the
layer, and add heights to images or cut them into windows. So a training step has few launches of
kernels and few nodes of autograd.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.layer_steps import Kind, plan_layer
from ecc_core._backends.cuda.soft_heights import MOST_DIRECTIONS
from ecc_core._backends.soft import LayerOptions, LayerParameters
from ecc_core._torch import cuda_steps
from ecc_core._torch.cuda_steps import Step
from ecc_core._torch.layer_operators import layer_by_operators


def layer_curves(
    image: Tensor, parameters: LayerParameters, options: LayerOptions
) -> Tensor | None:
    """Return the curves of images (..., spatial), or None if there are no kernels for them.

    They are (..., n), or (..., k, n) along directions, and have gradients. Those of windows are
    (..., channel * n, *positions) for images (..., channel, spatial). The caller has excluded
    compiled graphs, `torch.func` and tensor subclasses.
    """
    levels, step, _, directions, _ = parameters
    given = image, *parameters
    if not cuda_steps.are_alike(given) or cuda_steps.is_learned(step):
        return None
    count = 0 if directions is None else directions.shape[0]
    kind = Kind(
        n_spatial=options.n_spatial,
        connectivity=options.connectivity,
        superlevel=options.superlevel,
        levels=levels.shape[0],
        is_increasing=step is not None,
        directions=count,
        spacing=options.spacing if count else (1.0,),
        cut=options.cut,
    )
    planned = _plan(kind, image.shape, image.data_ptr() % 16, image.get_device())
    return None if planned is None else cuda_steps.curves(given, planned)


@programs.plan
def _plan(kind: Kind, shape: tuple[int, ...], place: int, device: int) -> Step | None:
    """Return the plan of layers of this kind for images of a shape, or None without kernels."""
    if kind.directions > MOST_DIRECTIONS or 0 in (*shape, kind.levels):
        return None
    steps = plan_layer(kind, shape, place, device)
    if steps is None:
        return None
    return Step(steps, _shape(shape, kind), partial(_by_operators, kind))


def _shape(shape: tuple[int, ...], kind: Kind) -> tuple[int, ...]:
    """Return the shape of the curves of images of this shape."""
    batch = shape[: -kind.n_spatial]
    if kind.cut is not None:
        *lead, channels = batch
        return (*lead, channels * kind.levels, *kind.cut.positions)
    if kind.directions:
        return (*batch, kind.directions, kind.levels)
    return (*batch, kind.levels)


def _by_operators(kind: Kind, image: Tensor, *parameters: Tensor | None) -> Tensor:
    given = LayerParameters(*parameters)  # type: ignore[arg-type]
    options = LayerOptions(
        kind.n_spatial, kind.connectivity, kind.superlevel, kind.spacing, kind.cut
    )
    return layer_by_operators(image, given, options)
