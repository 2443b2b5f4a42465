"""Conversions of results to text, figures, tables and labelled arrays."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import is_lazy, on_host
from ecc_core._optional import import_optional

if TYPE_CHECKING:
    from ecc_core.results._base import Result

MOST_SHOWN = 6  # numbers of an array
UNITS_OF = {
    "threshold": "units",
    "height": "units",
    "threshold_first": "units_first",
    "threshold_second": "units_second",
}
"""The fact that is the unit of a coordinate."""


def summary(array: Any) -> str:
    """Describe an array in one line: numbers if 1-D and on the host, else dtype and shape."""
    if isinstance(array, np.ndarray) and array.ndim == 1:
        return np.array2string(
            array,
            threshold=MOST_SHOWN,
            edgeitems=2,
            separator=", ",
            max_line_width=1000,
            formatter={"float_kind": "{:.6g}".format, "int_kind": str},
        )
    if isinstance(array, np.ndarray):
        return f"<{array.dtype} {array.shape}>"
    if array is None:
        return "None"
    kind = type(array)
    library = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    dtype = str(getattr(array, "dtype", "?")).rpartition(".")[2]
    place = f" on {array.device}" if hasattr(array, "device") else ""
    return f"<{library} {dtype} {tuple(getattr(array, 'shape', ()))}{place}>"


def html(result: Result[Any], facts: Mapping[str, str]) -> str:
    """Return HTML with a small figure and a caption. Arrays outside host memory are not drawn."""
    import html as escaping  # here and below: libraries that only notebooks need

    words = [escaping.escape(f"{name}={value}") for name, value in facts.items()]
    caption = f"<code>{type(result).__name__}</code> {', '.join(words)}"
    sizes = [f"{name} {escaping.escape(summary(getattr(result, name)))}" for name in result._fields]
    picture = _picture(result) if all(isinstance(part, np.ndarray) for part in result) else ""
    return f"<div>{picture}<div>{caption}<br><small>{'<br>'.join(sizes)}</small></div></div>"


def _picture(result: Result[Any]) -> str:
    try:
        drawn: Any = result._preview().plot()
    except (ImportError, ValueError):  # no matplotlib, or nothing that can be drawn
        return ""
    import base64

    file = BytesIO()
    getattr(drawn, "figure", drawn).savefig(file, format="png", dpi=144)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img width="336" alt="{type(result).__name__}" src="data:image/png;base64,{data}">'


def axes_of(result: Result[Any]) -> dict[str, NDArray[Any]]:
    """Return the name and the coordinates of each axis of the values, those of a batch first."""
    known = {name: on_host(array) for name, array in result._axes().items()}
    batch = np.shape(result.values)[: -len(known)]
    return {f"batch_{i}": np.arange(n) for i, n in enumerate(batch)} | known


def columns(result: Result[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of a table with one row for each value, in C order."""
    values = on_host(result.values)
    found: dict[str, NDArray[Any]] = {}
    for place, (name, array) in enumerate(axes_of(result).items()):
        shape = [1] * values.ndim
        shape[place] = len(array)
        for column, part in _parts(name, array).items():
            found[column] = np.broadcast_to(part.reshape(shape), values.shape).ravel()
    return {**found, result._quantity: values.ravel(), **result._more_columns()}


def _parts(name: str, array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of a coordinate; for vectors, their index and components."""
    if array.ndim == 1:
        return {name: array}
    components = {f"{name}_{i}": component for i, component in enumerate(array.T)}
    return {name: np.arange(len(array)), **components}


def to_xarray(result: Result[Any]) -> Any:
    xarray = import_optional("xarray", extra="xarray", purpose="to_xarray")
    values = result.values
    if not is_lazy(values) and not hasattr(values, "__array_function__"):
        values = on_host(values)  # of a library that xarray does not hold
    axes = axes_of(result)
    facts = {name: value for name, value in result.facts.items() if value is not None}
    coords: dict[str, Any] = {}
    for name in result._axes():
        array = axes[name]
        coords |= {column: (name, part) for column, part in _parts(name, array).items()}
        fact = UNITS_OF.get(name)
        if fact in facts:
            coords[name] = name, array, {"units": facts.pop(fact)}
    return xarray.DataArray(values, coords, [*axes], name=result._quantity, attrs=facts)
