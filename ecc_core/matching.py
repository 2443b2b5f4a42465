"""Which components, holes, tunnels and cavities two images have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request, check_eager, indices_of
from ecc_core._arrays.xarray import call_unlabelled, is_labelled, unit_of
from ecc_core._request.levels import last_value
from ecc_core._request.masks import as_booleans, split_masked
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import all_axes
from ecc_core._types import Axes
from ecc_core.errors import nan_message
from ecc_core.results import BettiMatching, PersistencePairs, curve_facts

__all__ = ["BettiMatching", "betti_matching"]

Array = NDArray[Any]


def betti_matching(
    prediction: ArrayLike,
    target: ArrayLike,
    *,
    connectivity: int | None = None,
    superlevel: bool | None = None,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
    workers: int | None = None,
) -> Any:
    """Match the components, holes, tunnels and cavities of two images that are at the same place.

    The difference of two Betti numbers is 0 if the prediction has a gap here and a bridge there.
    Betti matching [1]_ [2]_ compares both images with their union. A class of the prediction and
    one of the target match if both become the same class of the union. What is left is false, or
    missing.

    Parameters
    ----------
    prediction : array of 1 to 3 spatial axes
        A mask of booleans, or probabilities or other values, of a dtype as for
        :func:`ecc_core.betti_curves`, in host memory; never written to.
    target : array of the same shape
        A mask, or values that can be compared with those of the prediction.
    connectivity : {None, 1, d}
        For d spatial axes, 1: sets are 4- or 6-connected; d (default): 8- or 26-connected.
    superlevel : bool, optional
        Whether sets ``image >= t`` are compared, rather than ``image <= t``. By default they are
        if the target is a mask: objects are where it is True.
    mask : bool array, optional
        False where a point never enters, in either image. Of the images' shape, or of their spatial
        shape.
    nan : {"raise", "omit"}
        "omit": a point that is NaN in either image never enters.
    axis : int or tuple of int, optional
        The spatial axes; default all. The rest are batch axes.
    workers : int, optional
        Threads, which take one image after another; default as many as there are cores.

    Returns
    -------
    BettiMatching
        The classes of both images with their points, and those that match; ``error`` counts the
        others by dimension. With batch axes a list of them, one for each pair of images in C order.

    Raises
    ------
    TypeError
        For other dtypes than those above, two dtypes that no dtype holds exactly, such as int64
        and float64, and integers where the target is a mask.
    ValueError
        For NaN, images without points or of different shapes, a mask as target in which no point is
        True, probabilities that are not between 0 and 1 where the target is a mask, and arguments
        that do not fit the images' shape.
    BackendError
        If the images are on a device.

    See Also
    --------
    persistence_pairs : The classes of one image.
    ecc_core.nn.BettiMatchingLoss : A loss that moves them.

    Notes
    -----
    The classes of an image whose sets are contained in those of the union have an image in the
    homology of the union. Its intervals begin with those of the image and end with those of the
    union, and so match classes of both (Bauer and Lesnick, 2015). An interval that would end before
    it begins is empty and matches nothing. The code of the authors of [2]_ keeps such intervals, so
    it finds more matches between images that have little in common; where the target is a mask, and
    on all others whose intervals are not empty, the numbers are the same. The oldest component of
    either image never dies, and both match; their code leaves it out.

    Points of equal value enter in the order in which they enter the other image, then in C order,
    so that components and holes of two masks match where they overlap. The cells that enter with
    one point do so by dimension, then by their lowest corner, then by axis.

    Two masks are compared as sets: background fills holes, but joins no components. Other values, 0
    and 1 among them, are functions, whose last set is the whole image. All components meet in it,
    and the oldest components of both images always match.

    Tunnels need a few hundred bytes of memory for each voxel.

    References
    ----------
    .. [1] Stucki, Paetzold, Shit, Menze, Bauer, "Topologically faithful image segmentation via
       induced matching of persistence barcodes", ICML 2023, arXiv:2211.15272.
    .. [2] Stucki, Bürgin, Paetzold, Bauer, "Efficient Betti matching enables topology-aware 3D
       segmentation via persistent homology", 2024, arXiv:2407.04683.

    Examples
    --------
    Two rings. The prediction has a gap in the first one, and a bridge in the second one:

    >>> import numpy as np, ecc_core as ecc
    >>> target = np.zeros((7, 15), bool)
    >>> target[1:6, 1:6] = target[1:6, 9:14] = True
    >>> target[2:5, 2:5] = target[2:5, 10:13] = False
    >>> prediction = target.copy()
    >>> prediction[3, 5], prediction[3, 10:13] = False, True
    >>> ecc.betti_numbers(prediction), ecc.betti_numbers(target)
    ((2, 2), (2, 2))
    >>> found = ecc.betti_matching(prediction, target)
    >>> found.error  # components, holes
    array([0, 2])
    >>> found.unmatched_target.death_points.tolist()  # where the missing hole is filled
    [[4, 4]]
    """
    options = ImageOptions(
        connectivity=connectivity,
        mask=mask,
        nan=nan,
        axis=axis,
        workers=workers,
    )
    if is_labelled(prediction):
        found = call_unlabelled(
            betti_matching, prediction, target, superlevel=superlevel, **options.given()
        )
        return _with_units(found, unit_of(prediction))
    return match_images(prediction, target, superlevel, options)


def match_images(
    prediction: Any,
    target: Any,
    superlevel: bool | None,
    options: ImageOptions,
    *,
    empty: bool = False,
) -> Any:
    """Match two images, as :func:`betti_matching` does; masks may be `empty` as targets, too."""
    check_eager(prediction, "prediction")
    check_eager(target, "target")
    target, options = _with_masked(target, options)
    origin = origin_of(prediction, "prediction")
    of_target = origin.image(target, "target")
    if superlevel is None:
        superlevel = origin.dtype(of_target, "target").kind == "b"
    options = options._replace(superlevel=superlevel)
    if options.axis is None:
        options = options._replace(axis=all_axes(prediction))
    request = Request.of(prediction, options=options, name="prediction")
    if tuple(of_target.shape) != request.geometry.shape:
        raise ValueError(
            f"`target` must have the shape of `prediction`, {request.geometry.shape}, got "
            f"{tuple(of_target.shape)}"
        )
    match = request.origin.betti_numbers().betti_matching
    stacked = request.geometry.stack(of_target)
    predictions, targets, sets = _comparable(request.images, stacked)
    shown = _shown_points(predictions, targets, request)
    _check_values(predictions, targets, shown, options.nan)
    if targets.dtype.kind == "b" and not empty:
        _check_objects(targets, shown)
    found = match(
        *_in_one_dtype(predictions, targets),
        request.filtration,
        mask=shown,
        workers=request.workers,
        sets=sets,
    )
    results = [
        _result(matched, pair, request)
        for matched, *pair in zip(found, predictions, targets, strict=True)
    ]
    return results if request.geometry.batch else results[0]


def _with_masked(target: Any, options: ImageOptions) -> tuple[Any, ImageOptions]:
    """Return the data of a target, and options whose mask excludes its masked points, too."""
    target, mask = split_masked(target, options.mask)
    return target, options._replace(mask=mask)


def _comparable(predictions: Array, targets: Array) -> tuple[Array, Array, bool]:
    """Return both images, and whether both are masks; refuse dtypes that cannot be compared."""
    kinds = predictions.dtype.kind, targets.dtype.kind
    if kinds[1] == "b" and kinds[0] in "iu":
        raise TypeError(
            "`prediction` must be booleans or probabilities where `target` is a mask, got "
            f"{predictions.dtype}"
        )
    both = np.result_type(predictions.dtype, targets.dtype)
    for given in (predictions.dtype, targets.dtype):
        exact = given.kind == both.kind or given.itemsize < both.itemsize or given.kind == "b"
        if not exact:
            raise TypeError(
                "`prediction` and `target` must have dtypes that one dtype holds exactly, got "
                f"{predictions.dtype} and {targets.dtype}"
            )
    if predictions.size == 0:
        raise ValueError(f"`prediction` must have points, got shape {predictions.shape[1:]}")
    if kinds[1] == "b":
        targets = as_booleans(targets)
    if kinds[0] == "b":
        predictions = as_booleans(predictions)
    return predictions, targets, kinds == ("b", "b")


def _in_one_dtype(predictions: Array, targets: Array) -> tuple[Array, Array]:
    """Return both images in the native dtype that holds the values of both."""
    dtype = np.result_type(predictions.dtype, targets.dtype).newbyteorder("=")
    return predictions.astype(dtype, copy=False), targets.astype(dtype, copy=False)


def _shown_points(predictions: Array, targets: Array, request: Request) -> Array | None:
    """Return a mask of the points that ever enter, or None if all do."""
    shown: Array | None = request.mask
    if request.filtration.nan == "omit":
        for given in (predictions, targets):
            if given.dtype.kind == "f" and np.isnan(given).any():
                known = ~np.isnan(given)
                shown = known if shown is None else shown & known
    return shown


def _check_values(predictions: Array, targets: Array, shown: Array | None, nan: str) -> None:
    """Refuse NaN, and if the target is a mask, predictions that are not from 0 to 1."""
    for name, given in (("prediction", predictions), ("target", targets)):
        missing = np.isnan(given) if given.dtype.kind == "f" and nan == "raise" else None
        if missing is not None and (missing if shown is None else missing & shown).any():
            raise ValueError(nan_message(name))
    if targets.dtype.kind != "b" or predictions.dtype.kind == "b":
        return
    values = predictions if shown is None else predictions[shown]
    low = values.min(initial=0)
    high = values.max(initial=1)
    if low < 0 or high > 1:
        raise ValueError(
            "`prediction` must be between 0 and 1 where `target` is a mask, got "
            f"{low if low < 0 else high:g}"
        )


def _check_objects(targets: Array, shown: Array | None) -> None:
    """Refuse masks without a point that is True."""
    inside = targets if shown is None else targets & shown
    if not inside.any(axis=tuple(range(1, inside.ndim))).all():
        raise ValueError("`target` must have points that are True, got an empty mask")


def _result(matched: Sequence[Any], images: Sequence[Array], request: Request) -> BettiMatching:
    """Return the result for two images, whose classes of each dimension are matched."""
    first = np.zeros(2, np.int64)
    matches = []
    for prediction, target, numbers in matched:
        matches.append(numbers + first)
        first = first + np.array([prediction.births.size, target.births.size])
    predicted, known, _ = zip(*matched, strict=True)
    return BettiMatching(
        _pairs(predicted, images[0], request),
        _pairs(known, images[1], request),
        request.origin.wrap(np.concatenate(matches)),
    )


def _pairs(classes: Sequence[Any], image: Array, request: Request) -> PersistencePairs[Any]:
    """Return the pairs of an image, given the classes of each dimension."""
    births = np.concatenate([own.births for own in classes])
    deaths = np.concatenate([own.deaths for own in classes])
    from ecc_core._backends.cpu.gathering import values_at

    flat = image.reshape(-1)
    dtype = image.dtype.newbyteorder("=")
    born = values_at(flat, births)
    died = values_at(flat, deaths)
    died[deaths < 0] = last_value(dtype, request.filtration.superlevel)
    wrap = request.origin.wrap
    return PersistencePairs(
        wrap(born),
        wrap(died),
        wrap(indices_of(births, image.shape)),
        wrap(indices_of(deaths, image.shape)),
        dimension=None,
        counts=tuple(own.births.size for own in classes),
        **curve_facts(request.filtration),
    )


def _with_units(found: Any, unit: str | None) -> Any:
    """Return results with the unit of the values."""
    if isinstance(found, list):
        return [_with_units(one, unit) for one in found]
    prediction = replace(found.prediction, units=unit)
    target = replace(found.target, units=unit)
    return BettiMatching(prediction, target, found.matches)
