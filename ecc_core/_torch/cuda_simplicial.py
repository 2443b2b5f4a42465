"""Soft transforms of simplicial complexes on CUDA devices, as one function of autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.cuda import is_current_stream_capturing

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.shape_steps import Kind, Shapes, ShapeSteps, plan_shapes
from ecc_core._torch import cuda_steps
from ecc_core._torch.addresses import address_of, addresses_of
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.operators import gradients_in_torch
from ecc_core._torch.routes import is_plain
from ecc_core._torch.simplicial import soft_simplices

FLOATS = torch.float32, torch.float64


class Numbers(NamedTuple):
    """The arguments of a transform besides the shapes: directions, levels and sharpness."""

    directions: Tensor
    """(k, d), of any length."""
    scale: Tensor
    levels: Tensor
    """(n,), or with a step the free numbers from which increasing levels are computed."""
    step: Tensor | None
    sharpness: Tensor


class Complexes(NamedTuple):
    """A batch of shapes."""

    batch: Tensor
    """The number of the shape of each point, int64."""
    shapes: int
    """The number of shapes."""
    simplices: Sequence[Tensor]
    """The points of the simplices of each dimension, (simplices, points of each), int64."""

    def at(self, points: Tensor) -> Shapes:
        """Return the addresses and sizes of these tensors and of the points."""
        rows = tuple([part.data_ptr() for part in self.simplices])
        counts = tuple([part.shape[0] for part in self.simplices])
        own = points.data_ptr(), self.batch.data_ptr()
        return Shapes(*own, rows, counts, points.shape[0], self.shapes)


def fused_shapes(
    points: Tensor, complexes: Complexes, numbers: Numbers, is_logarithm: bool
) -> Tensor | None:
    """Return the transforms (shapes, k, n) of points (m, d), or None if there are no kernels.

    There are none for dtypes that differ, for a step with a gradient, for points that are not in
    the order of their shapes, and for arguments with an error; the call waits for the device, which
    checks them. With `is_logarithm`, scale and sharpness are given by their logarithms. The
    transforms have gradients. The caller has excluded compiled graphs, `torch.func` and tensor
    subclasses.
    """
    if cuda_steps.is_learned(numbers.step):
        return None
    if is_current_stream_capturing() or not _are_alike(points, complexes, numbers):
        return None
    kind = Kind(
        axes=points.shape[1],
        directions=numbers.directions.shape[0],
        levels=numbers.levels.shape[0],
        sizes=tuple(rows.shape[1] for rows in complexes.simplices),
        is_increasing=numbers.step is not None,
        is_logarithm=is_logarithm,
    )
    if not complexes.shapes or not points.shape[0]:
        return None
    steps = plan_shapes(kind, points.dtype, points.get_device())
    if steps is None:
        return None
    call = _Call(steps, complexes)
    found: Tensor = _Shapes.apply(points, *numbers, call)  # type: ignore[no-untyped-call]
    with soft.launching(points) as (_, stream):
        (flags,) = call.reply.wait(1, stream)
    call.reply.release()
    return None if flags else found


def _are_alike(points: Tensor, complexes: Complexes, numbers: Numbers) -> bool:
    """Whether these are contiguous on one device, and the floats of one dtype and not negated."""
    place = points.get_device()
    dtype = points.dtype
    if dtype not in FLOATS:
        return False
    for tensor in (points, *numbers):
        if tensor is None:
            continue
        if tensor.dtype is not dtype or tensor.get_device() != place:
            return False
        if tensor.is_neg() or not tensor.is_contiguous():
            return False
    return all(rows.is_contiguous() for rows in (complexes.batch, *complexes.simplices))


BEFORE_SIMPLICES = len(("points", *Numbers._fields, "kept", "batch"))
"""The number of tensors that are saved for the backward pass before the simplices."""


class _Call:
    """The plan and the complexes of a call, and the reply of the device to its checks.

    Autograd sees it as one argument that has no gradient.
    """

    reply: Any

    def __init__(self, steps: ShapeSteps, complexes: Complexes) -> None:
        self.steps = steps
        self.complexes = complexes


class _Shapes(torch.autograd.Function):
    """The function of `fused_shapes`, by kernels."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, *given: Any) -> Tensor:
        *tensors, call = given
        steps: ShapeSteps = call.steps
        shapes = call.complexes.at(points)
        kind = steps.kind
        chunks = steps.chunks(shapes)
        with soft.launching(points) as (_, stream):
            curves: Tensor = points.new_empty((shapes.shapes, kind.directions, kind.levels))
            kept = points.new_empty(steps.kept(shapes.length))
            sums = None
            if chunks > 1:
                sums = points.new_empty(chunks * curves.numel(), dtype=torch.float64)
            written = kept.data_ptr(), address_of(sums), curves.data_ptr()
            call.reply = steps.forward(stream, shapes, addresses_of(tensors), *written)
        batch, number, simplices = call.complexes
        ctx.save_for_backward(points, *tensors, kept, batch, *simplices)
        ctx.shapes = number
        ctx.steps = steps
        return curves

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        points, *numbers, kept, batch = saved[:BEFORE_SIMPLICES]
        simplices = saved[BEFORE_SIMPLICES:]
        tensors = points, *numbers
        needed = ctx.needs_input_grad[: len(tensors)]
        steps: ShapeSteps = ctx.steps
        complexes = Complexes(batch, ctx.shapes, simplices)
        if not is_plain(gradient):
            with torch.enable_grad():
                values = _by_operators(points, Numbers(*numbers), complexes, steps.kind)
            return *gradients_in_torch(values, tensors, needed, gradient), None
        upstream = gradient.contiguous()
        by_points, by_directions, by_scale, by_levels, _, by_sharpness = (
            torch.empty_like(tensor) if is_needed else None
            for tensor, is_needed in zip(tensors, needed, strict=True)
        )
        found = by_points, by_directions, by_scale, by_levels, by_sharpness
        with soft.launching(kept) as (_, stream):
            work = kept.new_empty(steps.work, dtype=torch.float64)
            read = complexes.at(points), addresses_of(numbers), kept.data_ptr()
            written = upstream.data_ptr(), work.data_ptr(), addresses_of(found)
            steps.backward(stream, *read, *written)
        return by_points, by_directions, by_scale, by_levels, None, by_sharpness, None


def _by_operators(points: Tensor, numbers: Numbers, complexes: Complexes, kind: Kind) -> Tensor:
    """Return the transforms by operators of torch, whose gradients can be batched and recorded."""
    directions, scale, levels, step, sharpness = numbers
    if step is not None:
        levels = increasing_in_torch(levels, step)
    if kind.is_logarithm:
        scale = scale.exp().reshape(())
        sharpness = sharpness.exp().reshape(())
    batch, shapes, simplices = complexes
    given = points, None, directions, scale, levels, sharpness
    found: Tensor = soft_simplices(*given, batch, shapes, list(simplices))
    return found
