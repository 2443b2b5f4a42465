"""The scores of a segmentation, which compare its objects and topology with a target."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.lazy import Array
from ecc_core._optional import import_optional
from ecc_core.curves import euler_curve
from ecc_core.matching import betti_matching
from ecc_core.results import BettiMatching
from ecc_core.topology import betti_numbers

Mask = NDArray[np.bool_]

WHITE = (1, 255)
"""The values that masks of integers may have inside objects."""
LEVELS = 64
"""The number of thresholds at which the Euler characteristic of probabilities is compared."""
PERCENTILE = 95


class Scores(NamedTuple):
    """The scores of an image or of one of its classes."""

    columns: dict[str, float]
    matching: BettiMatching
    prediction: Mask


def masks_of(
    prediction: Array, target: Array, threshold: float
) -> dict[int | None, tuple[Mask, Mask]]:
    """Return the masks of a prediction and its target, for each class if there are classes.

    Raises ValueError if either is neither a mask nor classes nor, for a prediction, probabilities.
    """
    true = _classes(target, "target")
    if prediction.dtype.kind == "f":
        if true is not None:
            raise ValueError(
                "`prediction` must hold class indices where the target does, got probabilities"
            )
        low = prediction.min()
        high = prediction.max()
        if not (low >= 0 and high <= 1):
            if np.isnan(low):
                got = "NaN"
            else:
                outside = low if low < 0 else high
                got = f"{outside:g}"
            raise ValueError(f"`prediction` must be probabilities between 0 and 1, got {got}")
        return {None: (prediction >= threshold, target != 0)}
    own = _classes(prediction, "prediction")
    if true is None and own is None:
        return {None: (prediction != 0, target != 0)}
    if true is None:
        true = {int(target.max())}
    if not own:
        own = {int(prediction.max())}
    numbers = sorted(true)
    others = sorted(own - {*numbers, 0})
    if others:
        raise ValueError(
            f"`prediction` must have classes of the target, {_listed(numbers)}, got {others[0]}"
        )
    return {number: (prediction == number, target == number) for number in numbers}


def _classes(image: Array, name: str) -> set[int] | None:
    """Return the classes of a label image, None for a mask."""
    if image.dtype.kind == "b":
        return None
    if image.dtype.kind == "f":
        if np.isnan(image).any():
            raise ValueError(f"`{name}` must not contain NaN")
        whole = np.round(image)
        if (whole != image).any():
            raise ValueError(f"`{name}` must be a mask or class indices, got fractions")
        image = whole.astype(np.int64)
    values = {int(value) for value in np.unique(image)} - {0}
    if min(values, default=0) < 0:
        raise ValueError(f"`{name}` must not be negative, got {min(values)}")
    return None if len(values) <= 1 and values <= {*WHITE} else values


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def scores_of(
    prediction: Mask,
    target: Mask,
    probabilities: Array | None,
    connectivity: int | None,
    spacing: NDArray[np.float64],
) -> Scores:
    """Return the scores of two masks.

    `probabilities` are those of which the prediction is a threshold, or None.
    """
    if not target.any():
        raise ValueError("`target` must have points inside, got an empty mask")
    matching = betti_matching(prediction, target, connectivity=connectivity)
    columns = {"dice": dice(prediction, target), "cldice": centreline_dice(prediction, target)}
    columns |= _distances(prediction, target, spacing)
    numbers = [betti_numbers(mask, connectivity) for mask in (prediction, target)]
    for k, (own, true) in enumerate(zip(*numbers, strict=True)):
        columns[f"betti_error_b{k}"] = abs(own - true)
    for k, count in enumerate(matching.error):
        columns[f"matched_error_b{k}"] = int(count)
    for name, pairs in (
        ("false", matching.unmatched_prediction),
        ("missing", matching.unmatched_target),
    ):
        columns |= {f"{name}_b{k}": count for k, count in enumerate(pairs.counts or ())}
    image = prediction.astype(np.float32) if probabilities is None else probabilities
    columns["euler_distance"] = euler_distance(image, target, connectivity)
    return Scores(columns, matching, prediction)


def dice(prediction: Mask, target: Mask) -> float:
    """Return the Dice coefficient: twice the number of common points over the sum of both."""
    return float(2 * (prediction & target).sum() / (prediction.sum() + target.sum()))


def centreline_dice(prediction: Mask, target: Mask) -> float:
    """Return the clDice of Shit et al. (2021): how much of each skeleton lies in the other mask.

    It is 0 if the prediction is empty, and NaN in one dimension, where there are no skeletons.
    """
    if prediction.ndim == 1:
        return float("nan")
    skeletons = [skeleton_of(mask) for mask in (prediction, target)]
    if not skeletons[0].any():
        return 0.0
    precision = (skeletons[0] & target).sum() / skeletons[0].sum()
    recall = (skeletons[1] & prediction).sum() / skeletons[1].sum()
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def skeleton_of(mask: Mask) -> Mask:
    """Return the skeleton of scikit-image, with the ridges of objects that it erases.

    In volumes it erases some objects completely, such as cubes with sides of 6 points and rods of 4
    by 4 (issue 3757 of scikit-image). The ridge of an object has the points that are at least as
    deep as all their neighbours.
    """
    morphology = import_optional("skimage.morphology", extra="features", purpose="clDice")
    skeleton: Mask = morphology.skeletonize(mask) > 0
    if mask.ndim < 3:
        return skeleton
    ndimage = import_optional("scipy.ndimage", extra="features", purpose="clDice")
    objects, count = ndimage.label(mask, np.ones((3, 3, 3)))
    has_skeleton = np.zeros(count + 1, bool)
    has_skeleton[0] = True  # The background, which needs no skeleton.
    has_skeleton[objects[skeleton]] = True
    erased = ~has_skeleton[objects]
    if not erased.any():
        return skeleton
    # Points beyond the image belong to the background.
    depth = ndimage.distance_transform_edt(np.pad(mask, 1))
    ridge = (depth == ndimage.maximum_filter(depth, 3))[1:-1, 1:-1, 1:-1]
    whole: Mask = skeleton | (erased & ridge)
    return whole


def _distances(prediction: Mask, target: Mask, spacing: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean and the 95th percentile of the distances of surfaces, inf if one is empty.

    The surface of a mask consists of its points that have a neighbour outside.
    """
    ndimage = import_optional("scipy.ndimage", extra="features", purpose="surface distances")
    if not prediction.any():
        return {"surface_distance": np.inf, "hausdorff_95": np.inf}
    surfaces = [mask & ~ndimage.binary_erosion(mask) for mask in (prediction, target)]
    found = []
    for own, other in (surfaces, surfaces[::-1]):
        found.append(ndimage.distance_transform_edt(~other, sampling=spacing)[own])
    furthest = [np.percentile(distances, PERCENTILE) for distances in found]
    return {
        "surface_distance": float(np.concatenate(found).mean()),
        "hausdorff_95": float(max(furthest)),
    }


def euler_distance(image: Array, target: Mask, connectivity: int | None) -> float:
    """Return the mean difference of Euler characteristics at thresholds between 0 and 1."""
    at = (np.arange(LEVELS) + 0.5) / LEVELS
    curves: Any = [
        euler_curve(one, at, connectivity=connectivity, superlevel=True).values
        for one in (image, target.astype(np.float32))
    ]
    return float(np.abs(curves[0] - curves[1]).mean())
