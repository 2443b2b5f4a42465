"""Helpers of all actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from napari_ecc._controller.layers import Part, problem_with
from napari_ecc._workers import Step

__all__ = ["checked", "result"]


def checked(layer: Any, part: Part | None) -> Part:
    """Return the selected part of a layer, which must have a curve."""
    problem = problem_with(layer)
    if problem:
        raise ValueError(problem)
    if part is None:
        leading: Part = (0,) * max(0, layer.ndim - 3)
        return (*leading, *(slice(None),) * min(3, layer.ndim))
    if len(part) != layer.ndim:
        raise ValueError(f"`part` must have {layer.ndim} entries, one for each axis, got {part}")
    return tuple(part)


def result(job: Iterator[Step]) -> Any:
    """Return the value of a job's last step."""
    for step in job:
        last = step
    return last.value
