"""Soft transforms on CUDA devices: plain tensors of float32 in few launches.

Levels and sharpness may be given by the parameters of a layer, so that a step of it is one node.
"""

from functools import partial
from typing import Any

from torch import Tensor

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.transform_steps import Form, plan_steps
from ecc_core._torch import cuda_steps
from ecc_core._torch.cuda_steps import Step
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.transform import Transformed, transform


def fused_transform(
    given: Transformed, step: Tensor | None = None, is_logarithm: bool = False
) -> Tensor | None:
    """Transforms (..., k, n) of weights (..., spatial), with gradients, in few launches, or None.

    None stands for what kernels do not take: empty or negated tensors, and others than float32 on
    one device. With a step, heights are free numbers of increasing levels; the sharpness may be a
    logarithm. Compiled graphs, `torch.func` and subclasses do not come here.
    """
    weights, directions, heights, sharpness = given[:4]
    tensors = (
        weights.contiguous(),
        directions.contiguous(),
        heights.contiguous(),
        sharpness.contiguous(),
        step,
    )
    if not cuda_steps.are_alike(tensors):
        return None
    form = step is not None, is_logarithm
    sizes = weights.shape, directions.shape[0], heights.shape[0]
    planned = _plan(*sizes, given[4:], form, weights.get_device())
    return None if planned is None else cuda_steps.curves(tensors, planned)


@programs.plan
def _plan(
    shape: tuple[int, ...],
    directions: int,
    levels: int,
    options: tuple[Any, ...],
    form: tuple[bool, bool],
    device: int,
) -> Step | None:
    """Return what is computed of weights with the options of `Transformed`; None if it is empty."""
    if 0 in (*shape, directions, levels):
        return None
    connectivity, extension, spacing = options
    own = Form(*form)
    steps = plan_steps(shape, connectivity, extension, directions, levels, spacing, own, device)
    found = *shape[: -len(spacing)], directions, levels
    return Step(steps, found, partial(_by_operators, options, own))


def _by_operators(
    options: tuple[Any, ...],
    form: Form,
    weights: Tensor,
    directions: Tensor,
    heights: Tensor,
    sharpness: Tensor,
    step: Tensor | None,
) -> Tensor:
    if step is not None:
        heights = increasing_in_torch(heights, step)
    if form.is_logarithm:
        sharpness = sharpness.exp().reshape(())
    return transform(Transformed(weights, directions, heights, sharpness, *options))
