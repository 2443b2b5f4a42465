"""Images that are DataArrays of xarray: their coordinates are the spacing, and units are kept."""

import sys
from typing import Any

import numpy as np

from ecc_core._arrays import given_on_host
from ecc_core._request.filtration import check_spacing
from ecc_core._request.image import spatial_axes


def value_units(image: Any) -> str | None:
    """Return the unit of the values of an image, if it is a DataArray that knows it."""
    return _unit_of(image) if _is_labelled(image) else None


def length_units(image: Any, axis: Any = None) -> str | None:
    """Return the unit of the coordinates along the spatial axes, if there is one."""
    units = {_unit_of(one) for one in _coordinates(image, axis).values() if one is not None}
    if len(units) > 1:
        raise ValueError(
            "`image` must have spatial coordinates of one unit, "
            f"got {' and '.join(sorted(map(str, units)))}"
        )
    return units.pop() if units else None


def spacing_of(image: Any, spacing: Any, axis: Any = None) -> Any:
    """Return the distance between points along the spatial axes: that given, or of coordinates.

    Coordinates must be evenly spaced and as given. If nothing is given, all axes must have some.
    """
    given = given_on_host(spacing)
    steps = {name: _step(name, one) for name, one in _coordinates(image, axis).items()}
    known = {name: step for name, step in steps.items() if step is not None}
    if not known:
        return given
    if given is None:
        if missing := [name for name in steps if name not in known]:
            raise ValueError(
                f"`spacing` must be given, because `image` has no coordinates along {missing[0]!r}"
            )
        return [*known.values()]
    asked = dict(zip(steps, check_spacing(given, len(steps)).tolist(), strict=True))
    for name, step in known.items():
        if not np.isclose(step, asked[name]):
            raise ValueError(
                f"`spacing` must be that of the coordinates of `image` or left out, "
                f"got {asked[name]:g} along {name!r}, where they have {step:g}"
            )
    return given


def _is_labelled(image: Any) -> bool:
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(image, xarray.DataArray)


def _coordinates(image: Any, axis: Any) -> dict[Any, Any]:
    """Return the coordinate of each spatial axis, None for those without."""
    if not _is_labelled(image):
        return {}
    names = [image.dims[i] for i in spatial_axes(image.shape, axis)]
    known = dict(image.coords)  # its own `get` makes coordinates up
    return {name: known.get(name) for name in names}


def _unit_of(array: Any) -> str | None:
    unit = array.attrs.get("units")
    return None if unit is None else str(unit)


def _step(name: Any, coordinate: Any) -> float | None:
    """Return the distance between neighbouring coordinates, None if there are no neighbours."""
    if coordinate is None or coordinate.size < 2:
        return None
    at = coordinate.to_numpy()
    if at.dtype.kind not in "iuf":
        raise ValueError(
            f"`image` must have numbers for coordinates along {name!r}, got {at.dtype}"
        )
    rounding = 4 * np.finfo(at.dtype).eps * np.abs(at).max() if at.dtype.kind == "f" else 0.0
    steps = np.diff(at.astype(np.float64))
    step = steps.mean()
    if not (np.isfinite(step) and step and np.allclose(steps, step, rtol=1e-6, atol=rounding)):
        raise ValueError(f"`image` must have evenly spaced coordinates along {name!r}")
    return abs(float(step))
