"""Soft transforms of plain float32 tensors on CUDA devices, in few launches of kernels.

The kernels can compute levels and sharpness from the parameters of a layer, so that its forward
pass is one node of autograd.
"""

from functools import partial
from typing import Any

from torch import Tensor

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.transform_steps import Form, plan_steps
from ecc_core._backends.soft import Transformed
from ecc_core._torch import cuda_steps
from ecc_core._torch.cuda_steps import Step
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.transform import transform


def fused_transform(
    given: Transformed, step: Tensor | None = None, is_logarithm: bool = False
) -> Tensor | None:
    """Return the transforms (..., k, n) of weights (..., spatial), or None without kernels.

    There are none for empty or negated tensors, for other dtypes than float32, for several devices,
    and for a step with a gradient. With a step, `heights` are the free numbers from which
    increasing levels are computed. With `is_logarithm`, the sharpness is given by its logarithm.
    The transforms have gradients. The caller has excluded compiled graphs, `torch.func` and tensor
    subclasses.
    """
    weights, directions, heights, sharpness = given[:4]
    tensors = (
        weights.contiguous(),
        directions.contiguous(),
        heights.contiguous(),
        sharpness.contiguous(),
        step,
    )
    if not cuda_steps.are_alike(tensors) or cuda_steps.is_learned(step):
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
    """Return the plan for weights of a shape and the options of `Transformed`; None if empty."""
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
