"""Checks that two images of the same shape lie in the same place."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import MOST_DISPLACEMENT, Affine
from ecc_core._io.units import UNITS, Distances, converted

MOST_SCALING = 0.005
"""The largest relative difference of two spacings that are taken as equal if no place is known."""


def check_place(
    name: str, region: Affine | None, image: Affine | None, shape: Mapping[str, int]
) -> None:
    """Raise ValueError if a region image lies elsewhere than the image of the same shape.

    Places that are not known are not compared. Axes other than Z, Y and X are ignored.
    """
    if region is None or image is None:
        return
    lengths = {axis: shape[axis] for axis in "ZYX" if axis in shape}
    if {region.unit, image.unit} <= UNITS.keys():
        factor = UNITS[region.unit][0] / UNITS[image.unit][0]
        steps = {axis: factor * step for axis, step in region.steps.items()}
        region = replace(region, steps=steps, origin=factor * region.origin)
    how = _displacement(image, region, lengths)
    if how:
        raise ValueError(f"{name} must lie where the image does, but its header says it is {how}")


def check_scale(name: str, region: Distances, image: Distances, shape: Mapping[str, int]) -> None:
    """Raise ValueError if the spacing of a region image differs from that of the image.

    Spacings that are not known, or whose units have no known ratio, are not compared.
    """
    theirs, their_unit = region
    ours, unit = image
    if their_unit != unit and not {their_unit, unit} <= UNITS.keys():
        return
    words = []
    for axis in ours.keys() & theirs.keys() & shape.keys():
        ratio = converted(theirs[axis], their_unit, unit) / ours[axis]
        off = abs(ratio - 1)
        if off > MOST_SCALING and off * (shape[axis] - 1) > MOST_DISPLACEMENT:
            words.append(f"scaled by {ratio:.4g} along {axis}")
    if words:
        how = " and ".join(sorted(words, reverse=True))
        raise ValueError(f"{name} must lie where the image does, but its header says it is {how}")


def _displacement(image: Affine, other: Affine, shape: Mapping[str, int]) -> str:
    """Return how another image of the same shape is displaced, "" if it is not or is unknown."""
    axes = list(shape)
    if image.space != other.space or not {*axes} <= image.steps.keys() & other.steps.keys():
        return ""
    ours = image.matrix(axes)
    theirs = other.matrix(axes)
    lengths = np.linalg.norm(ours, axis=0)
    their_lengths = np.linalg.norm(theirs, axis=0)
    if min(np.linalg.matrix_rank(steps) for steps in (ours, theirs)) < len(axes):
        return ""
    most = np.array([n - 1 for n in shape.values()])
    ends = itertools.product((0, 1), repeat=len(axes))
    corners = np.array(list(ends)) * most
    moved = corners @ (theirs - ours).T + other.origin - image.origin
    furthest = np.linalg.norm(moved, axis=1).max() / lengths.min()
    if furthest <= MOST_DISPLACEMENT:
        return ""
    words = _turned(ours / lengths, theirs / their_lengths, axes, most)
    for axis, ratio, n in zip(axes, their_lengths / lengths, most, strict=True):
        if abs(ratio - 1) * n > MOST_DISPLACEMENT:
            words.append(f"scaled by {ratio:.4g} along {axis}")
    if not words:
        shifts = np.linalg.pinv(ours) @ (other.origin - image.origin)
        words = [
            f"shifted by {shift:.4g} along {axis}"
            for axis, shift in zip(axes, shifts, strict=True)
            if abs(shift) > MOST_DISPLACEMENT / 2
        ]
    return " and ".join(words) or f"displaced by {furthest:.2g} points"


def _turned(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], axes: Sequence[str], most: Any
) -> list[str]:
    """Return how unit vectors along axes are mirrored, exchanged or rotated."""
    cosines = np.linalg.pinv(ours) @ theirs
    whole = np.rint(cosines)
    # The displacement of the last point along each axis, in points, if axes are only exchanged.
    off = np.linalg.norm(theirs - ours @ whole, axis=0) * most
    if off.max() <= MOST_DISPLACEMENT and (abs(whole).sum(axis=0) == 1).all():
        if (abs(whole) != np.eye(len(axes))).any():
            along = [axes[i] for i in abs(whole).argmax(axis=0)]
            return [f"its axes {', '.join(axes)} lie along {', '.join(along)}"]
        turned = [axis for axis, sign in zip(axes, whole.diagonal(), strict=True) if sign < 0]
        return [f"mirrored along {', '.join(turned)}"] if turned else []
    same_axis = np.sum(ours * theirs, axis=0)
    angles = np.degrees(np.arccos(np.clip(same_axis, -1, 1)))
    return [f"rotated by {angles.max():.3g} degrees"]
