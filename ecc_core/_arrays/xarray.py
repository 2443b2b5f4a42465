"""Images that are DataArrays of xarray, whose dimensions and coordinates are used.

A function is called with the array of the DataArray, which may be lazy, and its result gets the
units and the coordinates of its batch axes.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import given_on_host
from ecc_core._request.batch_axes import BatchAxis
from ecc_core._request.filtration import check_spacing
from ecc_core._request.spatial_axes import spatial_axes

ResultT = TypeVar("ResultT")
COMPANIONS = ("mask", "labels", "inlet", "outlet", "second")
"""Arguments that are arrays of the image's shape, or of its spatial shape."""
TIMES = ("t", "time", "times", "date", "datetime")
TIME_NAMES = ("time", "forecast_reference_time", "forecast_period")
"""Names of times in the CF conventions."""
GEOGRAPHIC = ("lat", "latitude", "lon", "longitude")
ANGLES = ("deg", "degree", "degrees", "radian", "radians", "rad", "°")
HOW_TO_GO_ON = (
    "pass `spacing`, the distance between points along each axis (spacing=1 for lengths in points)"
)


def is_labelled(image: Any) -> bool:
    """Whether an image is a DataArray."""
    if type(image) is np.ndarray:
        return False
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(image, xarray.DataArray)


def call_unlabelled(
    function: Callable[..., ResultT],
    image: Any,
    *arrays: Any,
    axis: Any = None,
    lengths: Literal["", "needed", "wanted", "heights"] = "",
    whole: bool = False,
    **options: Any,
) -> ResultT:
    """Call a function with the array of a DataArray, and add units and coordinates to its result.

    If `lengths` is given, the option `spacing` is taken from the coordinates. For "needed" and
    "heights" it is an error if they are not evenly spaced lengths; for "wanted" the result then has
    no spacing. With "heights", thresholds are lengths, too. A function of a `whole` image takes no
    `axis`.
    """
    spatial = _spatial_axes(image, axis)
    names = [image.dims[i] for i in spatial]
    arrays = tuple(_aligned(array, image, names) for array in arrays)
    for name in COMPANIONS:
        if name in options:
            options[name] = _aligned(options[name], image, names)
    unit = None
    problem = ""
    if lengths:
        try:
            options["spacing"], unit = _lengths_of(image, names, options.get("spacing"))
        except ValueError as error:
            if lengths != "wanted":
                raise
            problem = str(error)
    if whole:
        found = function(_single(image, names).data, *arrays, **options)
    else:
        by_default = axis is None and len(spatial) == image.ndim
        found = function(image.data, *arrays, axis=None if by_default else spatial, **options)
    facts = {
        "units": unit if lengths == "heights" else unit_of(image),
        "spacing_units": unit,
        "coordinates": tuple(_batch_axis(image, name) for name in image.dims if name not in names),
    }
    if problem:
        facts |= {"spacing": None, "spacing_units": _units_in_words(image, names)}
    return with_facts(found, **facts)


def with_facts(found: ResultT, **facts: Any) -> ResultT:
    """Return a result with facts added. Facts that it has no field for are ignored."""
    if not is_dataclass(found) or isinstance(found, type):
        return found
    known = {field.name for field in fields(found)}
    return replace(found, **{name: fact for name, fact in facts.items() if name in known})


def unit_of(array: Any) -> str | None:
    """Return the unit of the values of a DataArray, None without one and for other arrays."""
    unit = array.attrs.get("units") if is_labelled(array) else None
    return None if unit is None else str(unit)


def _spatial_axes(image: Any, axis: Any) -> tuple[int, ...]:
    """Return the spatial axes as numbers; by default all but times."""
    if axis is not None:
        asked = [axis] if isinstance(axis, str) or not np.iterable(axis) else list(axis)
        if any(isinstance(one, str) and one not in image.dims for one in asked):
            raise ValueError(f"`axis` must be dimensions of {image.dims}, got {axis!r}")
        numbers = [image.dims.index(one) if isinstance(one, str) else one for one in asked]
        return spatial_axes(image.shape, numbers)
    found = tuple(i for i, name in enumerate(image.dims) if not _is_time(image, name))
    if image.ndim > 1 and 1 <= len(found) <= 3:
        return found
    return spatial_axes(image.shape, None)


def _is_time(image: Any, name: Any) -> bool:
    """Whether a dimension is a time, by its name, its coordinate or the CF conventions."""
    if str(name).lower() in TIMES:
        return True
    coordinate = _coordinate(image, name)
    if coordinate is None:
        return False
    attributes = coordinate.attrs
    values = coordinate.to_numpy()
    calendar = values.dtype.kind == "O" and values.size and hasattr(values.flat[0], "calendar")
    return bool(
        values.dtype.kind in "Mm"
        or calendar
        or attributes.get("axis") == "T"
        or attributes.get("standard_name") in TIME_NAMES
        or " since " in str(attributes.get("units", ""))
    )


def _coordinate(image: Any, name: Any) -> Any:
    """Return the coordinate of a dimension, None if there is none."""
    return dict(image.coords).get(name)  # `coords.get` makes up coordinates that are missing.


def _aligned(array: Any, image: Any, names: Sequence[Any]) -> Any:
    """Return a companion of the image as an array whose axes are in the order of the image's."""
    if not is_labelled(array):
        return array
    for dims in (image.dims, tuple(names)):
        if set(array.dims) == set(dims):
            return array.transpose(*dims).data
    return array.data


def _single(image: Any, names: Sequence[Any]) -> Any:
    """Return an image without its batch axes, which must have one element each."""
    for name in image.dims:
        if name not in names:
            if image.sizes[name] != 1:
                raise ValueError(
                    f"`image` must have spatial axes only, got {image.sizes[name]} of {name!r}: "
                    f"take one of them, as image.isel({name}=0) does"
                )
            image = image.isel({name: 0})
    return image


def _lengths_of(image: Any, names: Sequence[Any], spacing: Any) -> tuple[Any, str | None]:
    """Return the spacing and its unit, from the argument or from coordinates.

    If both are there, they must agree, unless coordinates are no evenly spaced lengths.
    """
    given = given_on_host(spacing)
    try:
        steps, unit = _steps_of_coordinates(image, names)
    except ValueError:
        if given is None:
            raise
        return given, None
    known = {name: step for name, step in steps.items() if step is not None}
    if given is None:
        if known and len(known) < len(steps):
            missing = next(name for name in steps if name not in known)
            raise ValueError(
                f"`spacing` must be given, because `image` has no coordinates along {missing!r}"
            )
        return [*known.values()] if known else None, unit
    asked_steps = check_spacing(given, len(names)).tolist()
    asked = dict(zip(names, asked_steps, strict=True))
    for name, step in known.items():
        own = asked[name]
        if not np.isclose(step, own):
            raise ValueError(
                "`spacing` must be that of the coordinates of `image` or left out, "
                f"got {own:g} along {name!r}, where they have {step:g}"
            )
    return given, unit


def _steps_of_coordinates(
    image: Any, names: Sequence[Any]
) -> tuple[dict[Any, float | None], str | None]:
    """Return the distance between neighbouring coordinates of each dimension, and their unit.

    A distance is None for a dimension without coordinates or with a single one. Coordinates must
    be evenly spaced lengths of one unit.
    """
    known = {name: _coordinate(image, name) for name in names}
    there = {name: one for name, one in known.items() if one is not None}
    for name, one in there.items():
        if _is_angle(name, one):
            raise ValueError(
                f"`image` must have coordinates that are lengths, got {unit_of(one) or 'angles'} "
                f"along {name!r}: {HOW_TO_GO_ON}"
            )
    units = {unit_of(one) for one in there.values()}
    if len(units) > 1:
        raise ValueError(
            "`image` must have spatial coordinates of one unit, "
            f"got {_units_in_words(image, names)}: {HOW_TO_GO_ON}"
        )
    steps = {name: _step(name, one) for name, one in known.items()}
    return steps, units.pop() if units else None


def _units_in_words(image: Any, names: Sequence[Any]) -> str:
    found = [_coordinate(image, name) for name in names]
    units = [unit_of(coordinate) for coordinate in found if coordinate is not None]
    words = sorted({str(unit) for unit in units if unit is not None})
    if None in units:
        words.append("no unit")
    return " and ".join(words)


def _is_angle(name: Any, coordinate: Any) -> bool:
    """Whether coordinates are angles, such as latitudes, rather than lengths."""
    unit = unit_of(coordinate)
    if unit is None:
        return str(name).lower() in GEOGRAPHIC
    return unit.lower().partition("_")[0] in ANGLES


def _step(name: Any, coordinate: Any) -> float | None:
    """Return the distance between neighbouring coordinates, None if there are fewer than two."""
    if coordinate is None or coordinate.size < 2:
        return None
    at = coordinate.to_numpy()
    if at.dtype.kind not in "iuf":
        raise ValueError(
            f"`image` must have numbers for coordinates along {name!r}, got {at.dtype}: "
            f"{HOW_TO_GO_ON}"
        )
    rounding = 4 * np.finfo(at.dtype).eps * np.abs(at).max() if at.dtype.kind == "f" else 0.0
    steps = np.diff(at.astype(np.float64))
    step = steps.mean()
    if not (np.isfinite(step) and step and np.allclose(steps, step, rtol=1e-6, atol=rounding)):
        raise ValueError(
            f"`image` must have evenly spaced coordinates along {name!r}: {HOW_TO_GO_ON}"
        )
    return abs(float(step))


def _batch_axis(image: Any, name: Any) -> BatchAxis:
    coordinate = _coordinate(image, name)
    if coordinate is None:
        return BatchAxis(str(name))
    values: NDArray[Any] = coordinate.to_numpy()
    return BatchAxis.of(str(name), values, unit_of(coordinate))
