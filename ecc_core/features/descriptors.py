"""Descriptors of curves, and tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._optional import import_optional
from ecc_core.features._steps import Curve, Floats, as_steps, from_table
from ecc_core.results import CurveResult, TransformResult, agreed_superlevel, check_agreement
from ecc_core.results._base import axes_of

if TYPE_CHECKING:
    from pandas import DataFrame


class CurveDescriptors(NamedTuple):
    """Descriptors of a curve chi(t): scalars for a single curve, arrays for a batch.

    Examples
    --------
    >>> from ecc_core.features import curve_descriptors
    >>> found = curve_descriptors(([0.0, 1.0, 2.0], [1, 3, -2]))
    >>> float(found.maximum), float(found.maximum_at), int(found.zero_crossings)
    (3.0, 1.0, 1)
    """

    area: Any
    """Integral of chi from the first threshold to the last."""
    absolute_area: Any
    """Integral of abs(chi)."""
    maximum: Any
    maximum_at: Any
    """The threshold of the maximum. Among equal values, here and below, the first to enter."""
    minimum: Any
    minimum_at: Any
    zero_crossings: Any
    """The number of sign changes. Zeros take the sign of the value before them."""
    first_zero_crossing: Any
    """The threshold of the first sign change; NaN if there is none."""
    positive_peak: Any
    """The largest value before the curve first turns from positive to negative; NaN if none."""
    positive_peak_at: Any
    negative_peak: Any
    """The smallest value before the curve first turns from negative to positive; NaN if none."""
    negative_peak_at: Any


SCALED = {"area", "absolute_area", "maximum", "minimum", "positive_peak", "negative_peak"}


def curve_descriptors(
    curve: Curve, *, superlevel: bool | None = None, size: ArrayLike = 1.0
) -> CurveDescriptors:
    """Compute descriptors of a curve, or of each curve of a batch.

    Parameters
    ----------
    curve : result of curves, EulerTransform, RegionTransforms or (thresholds, values)
        Increasing thresholds of shape (n,) and values of shape batch + (n,), all finite. A
        transform is a batch of curves, one for each direction, whose thresholds are heights.
    superlevel : bool, optional
        Whether the curve is that of superlevel sets. A result of :func:`ecc_core.euler_curve`
        records it; a bare pair is taken for a sublevel curve by default. For superlevel sets,
        "first" means at the highest thresholds, because these sets grow as the threshold falls.
    size : float or array of the batch's shape, default 1.0
        Number of points, area or volume of the image, by which all values and areas are divided
        to make images of different sizes comparable (Euler characteristic per volume).

    Returns
    -------
    CurveDescriptors
        Floats for a single curve (`zero_crossings` is an int), otherwise arrays of the batch's
        shape. Areas are exact integrals of the step function; positions are thresholds.

    Raises
    ------
    TypeError
        If `curve` is not such a pair, or does not consist of real numbers.
    ValueError
        If shapes do not match, there are no thresholds, thresholds decrease, values are infinite
        or NaN, sizes are not positive, or `superlevel` contradicts the curve.

    Notes
    -----
    Curves of random textures have a few lobes of alternating sign (in 2-D, first components, then
    holes). `positive_peak` is the peak of the first positive lobe and `negative_peak` that of the
    first negative lobe; smaller oscillations within a lobe have no effect.

    Examples
    --------
    >>> from ecc_core.features import curve_descriptors
    >>> found = curve_descriptors(([0, 1, 2, 3, 4], [1, 5, 0, -3, 1]))
    >>> float(found.area), float(found.maximum), float(found.maximum_at)
    (3.0, 5.0, 1.0)
    >>> int(found.zero_crossings), float(found.first_zero_crossing), float(found.negative_peak_at)
    (2, 3.0, 3.0)
    """
    curve = from_table(curve, name="curve")
    superlevel = agreed_superlevel(curve, superlevel)
    levels, values = as_steps(curve, superlevel)
    sizes = _check_size(size, values.shape[:-1])
    widths = np.diff(levels)
    rows = values.reshape(-1, levels.size)
    thresholds = -levels if superlevel else levels
    highest = rows.argmax(axis=1)
    lowest = rows.argmin(axis=1)
    each = np.arange(len(rows))
    signs = np.sign(rows)
    places = np.where(signs != 0, np.arange(rows.shape[1]), -1)
    # Zeros take the sign of the latest value before them that is not zero.
    latest = np.maximum.accumulate(places, axis=1)
    carried = np.where(latest >= 0, np.take_along_axis(signs, latest, axis=1), 0)
    crossing = np.zeros(rows.shape, dtype=np.bool_)  # The places at which lobes begin.
    crossing[:, 1:] = carried[:, 1:] * carried[:, :-1] < 0
    lobe = np.cumsum(crossing, axis=1)
    first_sign = signs[each, (signs != 0).argmax(axis=1)]
    missing = ~crossing.any(axis=1)
    first_crossing = np.where(missing, np.nan, thresholds[crossing.argmax(axis=1)])
    positive, positive_at = _peak(rows, thresholds, lobe == (first_sign < 0)[:, None])
    negative, negative_at = _peak(-rows, thresholds, lobe == (first_sign > 0)[:, None])
    found = CurveDescriptors(
        area=rows[:, :-1] @ widths,
        absolute_area=np.abs(rows[:, :-1]) @ widths,
        maximum=rows[each, highest],
        maximum_at=thresholds[highest],
        minimum=rows[each, lowest],
        minimum_at=thresholds[lowest],
        zero_crossings=np.count_nonzero(crossing, axis=1),
        first_zero_crossing=first_crossing,
        positive_peak=positive,
        positive_peak_at=positive_at,
        negative_peak=-negative,
        negative_peak_at=negative_at,
    )
    scaled = {}
    for name, part in found._asdict().items():
        shaped = part.reshape(sizes.shape)
        scaled[name] = shaped / sizes if name in SCALED else shaped
    return CurveDescriptors(**{name: part[()] for name, part in scaled.items()})


def _check_size(size: ArrayLike, batch: tuple[int, ...]) -> Floats:
    sizes = np.asarray(size, dtype=np.float64)
    if sizes.shape not in ((), batch):
        raise ValueError(f"`size` must be a number or of shape {batch}, got shape {sizes.shape}")
    if not ((sizes > 0) & np.isfinite(sizes)).all():
        raise ValueError(f"`size` must be positive and finite, got {size!r}")
    return np.broadcast_to(sizes, batch)


def _peak(rows: Floats, thresholds: Floats, within: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the largest positive value within a lobe, and its threshold."""
    shown = np.where(within, rows, 0)
    place = shown.argmax(axis=1)
    height = shown[np.arange(len(rows)), place]
    found = height > 0
    return np.where(found, height, np.nan), np.where(found, thresholds[place], np.nan)


def descriptor_table(
    curves: Curve | Mapping[Any, Curve], *, superlevel: bool | None = None, size: ArrayLike = 1.0
) -> DataFrame:
    """Compute a table of descriptors with one row per curve. Requires pandas.

    Parameters
    ----------
    curves : result, (thresholds, values), table, or mapping of names to single curves or transforms
        Betti and Minkowski curves and transforms are batches of curves. Rows are indexed by the
        names; the labels of regions, the dimensions of Betti numbers, the names of functionals and
        the numbers of directions, as in :meth:`ecc_core.results.Result.to_pandas`; or the position
        in the batch.
    superlevel, size
        As for :func:`curve_descriptors`; for a mapping, one size per curve or one for all.

    Returns
    -------
    pandas.DataFrame
        The columns are the fields of :class:`CurveDescriptors`.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError, ValueError
        As for :func:`curve_descriptors`, if a mapping is empty or contains batches, and if its
        curves differ as for :func:`curve_distance`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.features import descriptor_table
    >>> labels = np.array([[3, 3, 3, 0, 8], [3, 3, 3, 0, 8], [3, 3, 3, 0, 8]])
    >>> image = np.where(labels == 3, [[0, 0, 0, 0, 0], [0, 9, 0, 0, 0], [0, 0, 0, 0, 0]], 5)
    >>> table = descriptor_table(ecc.region_curves(image, labels, np.arange(10)))
    >>> table.loc[8, ["maximum", "maximum_at", "zero_crossings"]].to_dict()
    {'maximum': 1.0, 'maximum_at': 5.0, 'zero_crossings': 0.0}
    """
    pandas = import_optional("pandas", extra="features", purpose="descriptor_table")
    if isinstance(curves, Mapping):
        return _named_table(curves, superlevel, size, pandas)
    batch = from_table(curves)
    found = curve_descriptors(batch, superlevel=superlevel, size=size)
    columns = {name: np.ravel(part) for name, part in found._asdict().items()}
    index = None
    if isinstance(batch, CurveResult | TransformResult) and len(batch._axes()) > 1:
        axes = {}
        for name, at in axes_of(batch).items():
            axes[name] = at if at.ndim == 1 else np.arange(len(at))
        # The last axis is that of thresholds or heights, over which a descriptor is computed.
        axes.popitem()
        names = [*axes]
        if len(axes) > 1:
            index = pandas.MultiIndex.from_product(axes.values(), names=names)
        else:
            index = pandas.Index(axes[names[0]], name=names[0])
    return pandas.DataFrame(columns, index=index)


def _named_table(
    curves: Mapping[Any, Curve], superlevel: bool | None, size: ArrayLike, pandas: Any
) -> DataFrame:
    if not curves:
        raise ValueError("`curves` must hold at least one curve, got none")
    sizes = _check_size(size, (len(curves),))
    order = check_agreement(superlevel, **{f"curves[{name!r}]": c for name, c in curves.items()})
    if any(isinstance(curve, TransformResult) for curve in curves.values()):
        tables = [
            descriptor_table(curve, superlevel=superlevel, size=one_size)
            for curve, one_size in zip(curves.values(), sizes, strict=True)
        ]
        return pandas.concat(tables, keys=list(curves))
    rows = []
    for (name, curve), one_size in zip(curves.items(), sizes, strict=True):
        values = as_steps(curve, order, f"curves[{name!r}]").values
        if values.ndim != 1:
            raise ValueError(
                f"`curves[{name!r}]` must be a single curve, got values of shape {values.shape}"
            )
        rows.append(curve_descriptors(curve, superlevel=superlevel, size=one_size))
    return pandas.DataFrame(rows, index=list(curves))
