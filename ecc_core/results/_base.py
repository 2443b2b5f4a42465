"""The base classes of results, with their conversions to text, figures, tables and arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, overload

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import all_on_host, is_lazy, on_host
from ecc_core._optional import import_optional
from ecc_core._request.batch_axes import BatchAxis
from ecc_core._request.dtypes import name_of

if TYPE_CHECKING:
    from pandas import DataFrame
    from typing_extensions import TypeVar
    from xarray import DataArray

    ArrayT = TypeVar("ArrayT", bound=Any, default=NDArray[Any])
else:
    from typing import TypeVar

    ArrayT = TypeVar("ArrayT")  # A default needs Python 3.13.
OneT = TypeVar("OneT")

MOST_DRAWN = 20  # Curves in a preview.
MOST_SHOWN = 6  # Numbers of an array in text.
UNITS_OF = {
    "threshold": "units",
    "height": "units",
    "threshold_first": "units_first",
    "threshold_second": "units_second",
}
"""The fact that has the unit of each coordinate."""


class Result(Sequence[ArrayT]):
    """Base class of results, which unpack, compare, print and convert.

    A subclass is a frozen dataclass. Its first fields, `_fields`, are arrays, usually with
    ``values`` last; the other fields are facts about them.
    """

    _fields: ClassVar[tuple[str, ...]]
    """Names of the arrays, in the order in which a result unpacks, as in a named tuple."""
    _quantity: ClassVar[str] = "euler_number"
    """The name of the column that the values have in tables."""
    boundary: str | tuple[str, ...] = "closed"
    """The boundary of the image. It is a fact of results that support others than "closed"."""
    coordinates: tuple[BatchAxis, ...] = ()
    """The batch axes of an image that is a DataArray. They are a fact of results of batches."""
    values: ArrayT

    def _axes(self) -> dict[str, Any]:
        """Return the name and the coordinates of each of the last axes of `values`."""
        raise NotImplementedError

    @property
    def _functionals(self) -> tuple[str, ...]:
        """The names along the last axis but one of the values, ("euler",) if there is no axis."""
        return ("euler",)

    def _meaning(self, functional: str | None = None) -> dict[str, Any]:
        """Return the facts in which results must agree to be compared, without unknown ones."""
        return {}

    def _more_columns(self) -> dict[str, Any]:
        """Return columns by name that follow that of the values in the table."""
        return {}

    def _preview(self) -> Self:
        """Return the part of a large result that fits in a small figure."""
        return self

    def plot(self, *args: Any, **style: Any) -> Any:
        """Plot the values with matplotlib, with the options that each result documents.

        Returns
        -------
        matplotlib.axes.Axes or matplotlib.figure.Figure
        """
        raise NotImplementedError

    @property
    def facts(self) -> dict[str, Any]:
        """How the values were computed: the fields that are not arrays, by name."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names if name not in self._fields}

    def __iter__(self) -> Iterator[ArrayT]:
        return iter([getattr(self, name) for name in self._fields])

    def __len__(self) -> int:
        return len(self._fields)

    @overload
    def __getitem__(self, index: int) -> ArrayT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ArrayT, ...]: ...
    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

    def _asdict(self) -> dict[str, Any]:
        """Return the arrays by name, as a named tuple does."""
        return dict(zip(self._fields, self, strict=True))

    def _with_arrays(self, *arrays: Any) -> Self:
        """Return a result of these arrays with the same facts.

        This takes a tenth of the time of the constructor, which would check the facts once more. It
        serves planned calls, some of which take 20 microseconds.
        """
        found = object.__new__(type(self))
        parts = found.__dict__  # Attributes cannot be set, because results are frozen.
        parts.update(self.__dict__)
        parts.update(zip(self._fields, arrays, strict=True))
        return found

    def _replace(self, **changes: Any) -> Self:
        """Return a result with some fields changed, as a named tuple does."""
        return replace(self, **changes)  # type: ignore[type-var]

    def __eq__(self, other: object) -> bool:
        """Whether type, facts, arrays and dtypes are equal. Byte order is ignored.

        Dask arrays are computed.
        """
        if type(other) is not type(self):
            return NotImplemented
        known = self._with_known_facts().facts == other._with_known_facts().facts
        return known and all(map(_same, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        arrays = {name: summary(getattr(self, name)) for name in self._fields}
        told = {**arrays, **self._known_facts()}
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in told.items())})"

    def _known_facts(self) -> dict[str, str]:
        """Return the facts that differ from their defaults, in words."""
        defaults = {field.name: field.default for field in fields(self)}  # type: ignore[arg-type]
        lazy = self._lazy_facts()
        known = {name: value for name, value in self.facts.items() if name not in lazy}
        shown = {k: v for k, v in known.items() if k != "ndim" and v != defaults[k]}
        if set(shown.get("spacing", ())) == {1.0}:
            del shown["spacing"]
        if "coordinates" in shown:
            shown["coordinates"] = tuple(axis.name for axis in self.coordinates)
        told = {name: repr(value) for name, value in shown.items()}
        return told | {name: summary(array) for name, array in lazy.items()}

    def _lazy_facts(self) -> dict[str, Any]:
        """Return the facts that are dask arrays, such as the sizes of windows of dask arrays."""
        return {name: value for name, value in self.facts.items() if is_lazy(value)}

    def _with_known_facts(self) -> Self:
        """Return the result with its lazy facts computed."""
        lazy = self._lazy_facts()
        if not lazy:
            return self
        values = all_on_host(list(lazy.values()))
        computed = dict(zip(lazy, values, strict=True))
        return replace(self, **computed)  # type: ignore[type-var]

    def _repr_html_(self) -> str:
        """Return a caption, and a small figure if arrays are in host memory."""
        import html  # Only notebooks need it, and `base64` below.

        words = [html.escape(f"{name}={value}") for name, value in self._known_facts().items()]
        caption = f"<code>{type(self).__name__}</code> {', '.join(words)}"
        sizes = []
        for name in self._fields:
            size = html.escape(summary(getattr(self, name)))
            sizes.append(f"{name} {size}")
        on_host = all(isinstance(part, np.ndarray) for part in self)
        picture = self._picture() if on_host else ""
        return f"<div>{picture}<div>{caption}<br><small>{'<br>'.join(sizes)}</small></div></div>"

    def _picture(self) -> str:
        try:
            drawn: Any = self._preview().plot()
        except (ImportError, ValueError):  # Matplotlib is missing, or nothing can be drawn.
            return ""
        import base64

        file = BytesIO()
        getattr(drawn, "figure", drawn).savefig(file, format="png", dpi=144)
        data = base64.b64encode(file.getvalue()).decode()
        return f'<img width="336" alt="{type(self).__name__}" src="data:image/png;base64,{data}">'

    def to_numpy(self) -> Self:
        """Return the result with NumPy arrays, copied from a device or computed by dask."""
        arrays = {name: array for name, array in self._asdict().items() if array is not None}
        arrays |= self._lazy_facts()
        copies = all_on_host(list(arrays.values()))
        host = dict(zip(arrays, copies, strict=True))
        return replace(self, **host)  # type: ignore[type-var]

    def to_pandas(self) -> DataFrame:
        """Return a table with one row for each value; the facts are in its ``attrs``.

        Returns
        -------
        pandas.DataFrame
            One column for each axis of the values, such as ``label`` and ``threshold``, and
            ``euler_number``. Batch axes are called ``batch_0`` and so on, or as the dimensions of
            the image if this was a DataArray; a direction has an index and the components
            ``direction_0`` to ``direction_2``. Arrays on a device are copied to the host, and dask
            arrays are computed.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = import_optional("pandas", extra="features", purpose="to_pandas")
        host = self.to_numpy()
        table: DataFrame = pandas.DataFrame(columns(host))
        table.attrs.update(host.facts)
        return table

    def to_xarray(self) -> DataArray:
        """Return a labelled array, with the facts in its ``attrs``.

        Returns
        -------
        xarray.DataArray
            Batch axes have the dimensions and the coordinates of the image if this was a DataArray.
            Dask and CuPy arrays stay what they are; torch tensors are copied to the host. A result
            is computed if only this tells its length, such as the number of regions in dask arrays,
            and so are facts, such as the number of points that a mask keeps.

        Raises
        ------
        ImportError
            If xarray is not installed.
        """
        xarray = import_optional("xarray", extra="xarray", purpose="to_xarray")
        if any(map(_has_unknown_length, self)):
            return self.to_numpy().to_xarray()
        values: Any = self.values
        if not is_lazy(values) and not hasattr(values, "__array_function__"):
            values = on_host(values)  # Xarray does not support arrays of this library.
        axes = axes_of(self)
        known = self._with_known_facts().facts
        facts = {name: value for name, value in known.items() if value is not None}
        facts.pop("coordinates", None)
        coords: dict[str, Any] = {}
        for axis in self.coordinates:
            if axis.name in axes and axis.dtype is not None:
                attributes = {} if axis.units is None else {"units": axis.units}
                coords[axis.name] = axis.name, axes[axis.name], attributes
        for name in self._axes():
            array = axes[name]
            coords |= {column: (name, part) for column, part in _parts(name, array).items()}
            fact = UNITS_OF.get(name)
            if fact in facts:
                coords[name] = name, array, {"units": facts.pop(fact)}
        found: DataArray = xarray.DataArray(
            values, coords, [*axes], name=self._quantity, attrs=facts
        )
        return found


class RegionResult(Result[ArrayT], Generic[OneT, ArrayT]):
    """Results of the regions of a label image, along the first axis of the values."""

    labels: ArrayT
    _one: ClassVar[Any]
    """The type of the result of one region."""
    _most_drawn: ClassVar[int] = MOST_DRAWN

    def _axes(self) -> dict[str, Any]:
        return {"label": self.labels, **super()._axes()}

    def _preview(self) -> Self:
        return replace(  # type: ignore[type-var]
            self, **{name: getattr(self, name)[: self._most_drawn] for name in ("labels", "values")}
        )

    def select(self, label: int) -> OneT:
        """Return the result of one label.

        Parameters
        ----------
        label : int

        Returns
        -------
        EulerCurve, BettiCurves, MinkowskiCurves or EulerTransform
            A lazy result is computed if only this tells the number of regions.

        Raises
        ------
        KeyError
            If there is no such label.
        """
        if any(map(_has_unknown_length, self)):
            # Its labels and values are computed together, so that images are read once.
            return self.to_numpy().select(label)
        (rows,) = np.nonzero(on_host(self.labels) == label)
        if not rows.size:
            raise KeyError(f"there is no label {label!r}")
        parts = {**self._asdict(), **self.facts, "values": self.values[int(rows[0])]}
        found: OneT = self._one(**known_by(self._one, parts))
        return found


def known_by(kind: Any, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts, by name, that are fields of a type of results."""
    return {field.name: parts[field.name] for field in fields(kind) if field.name in parts}


def summary(array: Any) -> str:
    """Describe an array in one line: by its numbers if 1-D and on the host, else by its shape."""
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
    dtype = name_of(getattr(array, "dtype", "?"))
    place = f" on {array.device}" if hasattr(array, "device") else ""
    return f"<{library} {dtype} {tuple(getattr(array, 'shape', ()))}{place}>"


def axes_of(result: Result[Any]) -> dict[str, NDArray[Any]]:
    """Return the name and the coordinates of each axis of the values, those of a batch first."""
    known = {name: on_host(array) for name, array in result._axes().items()}
    batch = np.shape(result.values)[: -len(known)]
    named = result.coordinates if len(result.coordinates) == len(batch) else ()
    axes = {}
    for i, n in enumerate(batch):
        name = f"batch_{i}"
        values = None
        if named and named[i].name not in (*known, result._quantity):
            name = named[i].name
            values = named[i].values
        axes[name] = np.arange(n) if values is None or len(values) != n else values
    return axes | known


def columns(result: Result[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of a table with one row for each value, in C order."""
    result = result.to_numpy()
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


def _has_unknown_length(array: Any) -> bool:
    """Whether an array is a dask array whose length is only known after computing it."""
    return is_lazy(array) and math.isnan(math.prod(array.shape))


def _same(a: Any, b: Any) -> bool:
    """Return whether two arrays of a library have the same dtype, shape, device and elements."""
    if a is b:
        return True
    if not (isinstance(a, type(b)) or isinstance(b, type(a))):
        return False
    if is_lazy(a):  # Lengths may be unknown before.
        a, b = all_on_host([a, b])
    kinds = [(_native(x.dtype), tuple(x.shape), getattr(x, "device", None)) for x in (a, b)]
    return kinds[0] == kinds[1] and bool((a == b).all())


def _native(dtype: Any) -> Any:
    """Return a dtype in native byte order. Byte order does not matter, and pickles drop it."""
    return dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype
