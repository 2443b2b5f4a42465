"""Tools for testing code that computes Euler characteristic curves.

- :func:`known_shapes`: binary shapes with their Euler numbers
- :func:`assert_arrays_equal`, :func:`assert_curves_equal`, :func:`assert_regions_equal`: exact
  comparison of results, with dtype, shape, array library and device
- :func:`in_chunks`: dask arrays of any chunks, including empty ones
- :mod:`ecc_core.testing.strategies`: hypothesis strategies, which must be imported by itself
  because only this module needs hypothesis
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._optional import import_optional
from ecc_core._partition import Partition

__all__ = [
    "KnownShape",
    "assert_arrays_equal",
    "assert_curves_equal",
    "assert_regions_equal",
    "in_chunks",
    "known_shapes",
    "to_numpy",
]

Image = NDArray[np.bool_]


class KnownShape(NamedTuple):
    """A binary image and its Euler numbers.

    Examples
    --------
    >>> import ecc_core as ecc
    >>> from ecc_core.testing import known_shapes
    >>> shape = known_shapes()[0]
    >>> bool(ecc.euler_number(shape.image, connectivity=1) == shape.euler_1)
    True
    """

    name: str
    image: Image
    euler_1: int
    """Euler number with ``connectivity=1`` (points are vertices)."""
    euler_d: int
    """Euler number with ``connectivity=image.ndim`` (points are closed cubes)."""


def _radius(*halves: int) -> NDArray[np.int64]:
    """Return the squared distance to the centre of a box of 2 * half + 1 points a side."""
    extents = tuple(slice(-half, half + 1) for half in halves)
    squares = [along**2 for along in np.ogrid[extents]]
    return np.asarray(sum(squares))


def _checkerboard(*shape: int) -> Image:
    return np.asarray(np.indices(shape).sum(axis=0) % 2 == 0)


def _torus(plane: tuple[int, int], centre: tuple[int, int, int]) -> Image:
    """Return a solid torus of radii 8 and 2 around `centre`, its circle in `plane`, in 31**3."""
    grid = [g - c for g, c in zip(np.ogrid[:31, :31, :31], centre, strict=True)]
    (normal,) = {0, 1, 2} - set(plane)
    ring = np.sqrt(grid[plane[0]] ** 2 + grid[plane[1]] ** 2) - 8
    return np.asarray(ring**2 + grid[normal] ** 2 <= 4)


def _plate(*shape: int, holes: int) -> Image:
    """Return a plate with holes of one point in a row, two apart."""
    plate = np.ones(shape, dtype=bool)
    plate[..., shape[-2] // 2, 2 : 2 + 2 * holes : 2] = False
    return plate


def known_shapes() -> list[KnownShape]:
    """Return shapes in 1-D, 2-D and 3-D with the Euler numbers known for them.

    The number is components minus holes in 2-D, components minus tunnels plus cavities in 3-D.
    The checkerboards, the diamond and the touching pairs tell the connectivities apart.

    Returns
    -------
    list of KnownShape

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.testing import known_shapes
    >>> {s.name: (s.euler_1, s.euler_d) for s in known_shapes() if s.name == "annulus"}
    {'annulus': (0, 0)}
    """
    disk = _radius(10, 10)
    ball = _radius(9, 9, 9)
    centre = _radius(15, 15, 15)
    corner_2d, edge_3d, corner_3d = (np.zeros(s, bool) for s in ((2, 2), (1, 2, 2), (2, 2, 2)))
    for pair in (corner_2d, edge_3d, corner_3d):
        pair.flat[0] = pair.flat[-1] = True
    ring = _torus((1, 2), (15, 15, 11))
    # The second circle passes through the middle of the first.
    link = _torus((0, 2), (15, 15, 19))
    frame = np.sum([(i == 0) | (i == 8) for i in np.indices((9, 9, 9))], axis=0) >= 2
    return [
        KnownShape("nothing 1-D", np.zeros(5, bool), 0, 0),
        KnownShape("three runs", np.array([1, 1, 0, 1, 0, 0, 1, 1], bool), 3, 3),
        KnownShape("nothing 2-D", np.zeros((4, 5), bool), 0, 0),
        KnownShape("point", np.ones((1, 1), bool), 1, 1),
        KnownShape("full rectangle", np.ones((5, 66), bool), 1, 1),
        KnownShape("disk", disk <= 81, 1, 1),
        KnownShape("annulus", (disk <= 81) & (disk >= 25), 0, 0),
        KnownShape("disk in annulus", (disk <= 9) | ((disk <= 81) & (disk >= 36)), 1, 1),
        KnownShape("plate with 7 holes", _plate(5, 17, holes=7), -6, -6),
        KnownShape("two squares at a corner", corner_2d, 2, 1),
        KnownShape("diamond", np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool), 4, 0),
        # There are 13 points. As closed squares they enclose the 4 inner ones of the other colour.
        KnownShape("checkerboard 5 x 5", _checkerboard(5, 5), 13, -3),
        KnownShape("checkerboard 8 x 8", _checkerboard(8, 8), 32, 1 - 18),
        KnownShape("nothing 3-D", np.zeros((3, 4, 5), bool), 0, 0),
        KnownShape("voxel", np.ones((1, 1, 1), bool), 1, 1),
        KnownShape("full box", np.ones((4, 5, 66), bool), 1, 1),
        KnownShape("ball", ball <= 64, 1, 1),
        KnownShape("hollow ball", (ball <= 64) & (ball >= 25), 2, 2),
        KnownShape("ball in hollow ball", (ball <= 9) | ((ball <= 81) & (ball >= 36)), 3, 3),
        KnownShape("torus", ring, 0, 0),
        KnownShape("two linked tori", ring | link, 0, 0),
        KnownShape("torus around a ball", _torus((0, 1), (15, 15, 15)) | (centre <= 9), 1, 1),
        KnownShape("cube frame", frame, 8 - 12, 8 - 12),
        KnownShape("slab with 7 tunnels", _plate(3, 5, 17, holes=7), -6, -6),
        KnownShape("two voxels at an edge", edge_3d, 2, 1),
        KnownShape("two voxels at a corner", corner_3d, 2, 1),
        # Closed cubes meet by twos in 6 edges, by threes 4 times, and all in a corner:
        # 4 - 6 + 4 - 1.
        KnownShape("checkerboard 2 x 2 x 2", _checkerboard(2, 2, 2), 4, 1),
    ]


def in_chunks(array: NDArray[Any], chunks: Sequence[Sequence[int]]) -> Any:
    """Return a dask array of exactly these chunks, those of length zero included.

    `dask.array.from_array` leaves them out.

    Parameters
    ----------
    array : numpy.ndarray
        The values.
    chunks : sequence of sequences of int
        For each axis the lengths of the chunks.

    Returns
    -------
    dask.array.Array

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.testing import in_chunks
    >>> in_chunks(np.arange(3), [(1, 0, 2)]).chunks
    ((1, 0, 2),)
    """
    da = import_optional("dask.array", extra="dask", purpose="in_chunks")
    tokenize = import_optional("dask.base", extra="dask", purpose="in_chunks").tokenize
    lengths = tuple(tuple(along) for along in chunks)
    blocks = Partition.of_blocks(lengths)
    name = "in-chunks-" + tokenize(array, lengths)
    tasks = {(name, *index): array[blocks.box(index)] for index in blocks.indices()}
    return da.Array(tasks, name, lengths, meta=array[(slice(0),) * array.ndim])


def to_numpy(array: Any) -> NDArray[Any]:
    """Return a NumPy, CuPy or torch array as a NumPy array, copied from its device if need be.

    Parameters
    ----------
    array : array
        An array of any of these libraries.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import torch
    >>> from ecc_core.testing import to_numpy
    >>> to_numpy(torch.arange(3))
    array([0, 1, 2])
    """
    if hasattr(array, "get"):  # This is an array of CuPy.
        return np.asarray(array.get())
    if hasattr(array, "detach"):  # This is a tensor of torch.
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def _device(array: Any) -> Any:
    return getattr(array, "device", "cpu")  # NumPy arrays have no device before NumPy 2.


def assert_arrays_equal(actual: Any, desired: ArrayLike, *, like: Any = None) -> None:
    """Raise AssertionError unless two arrays agree in dtype, shape and every value.

    Parameters
    ----------
    actual : array
        What was computed.
    desired : array_like
        What it must be, a NumPy array or a list. NaN equals NaN; the byte order is no part of
        the dtype.
    like : array, optional
        `actual` must be of this array's library and on its device. A NumPy array by default.

    Raises
    ------
    AssertionError
        If they differ.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.testing import assert_arrays_equal
    >>> assert_arrays_equal(np.array([1, 2]), np.array([1, 2]))
    >>> assert_arrays_equal(np.array([1.0, 2.0]), np.array([1, 2]))
    Traceback (most recent call last):
    ...
    AssertionError: dtype is float64, must be int64
    """
    like = np.empty(0) if like is None else like
    kind = np.ndarray if isinstance(like, np.ndarray) else type(like)
    if not isinstance(actual, kind):
        raise AssertionError(f"array is a {type(actual)}, must be a {kind}")
    if _device(actual) != _device(like):
        raise AssertionError(f"device is {_device(actual)}, must be {_device(like)}")
    found = to_numpy(actual)
    desired = np.asarray(desired)
    if found.dtype.newbyteorder("=") != desired.dtype.newbyteorder("="):
        raise AssertionError(f"dtype is {found.dtype}, must be {desired.dtype}")
    if found.shape != desired.shape:
        raise AssertionError(f"shape is {found.shape}, must be {desired.shape}")
    np.testing.assert_array_equal(found, desired)


def _assert_fields(actual: Any, like: Any, **desired: ArrayLike | None) -> None:
    """Raise AssertionError unless a result has exactly these arrays. None stands for any array."""
    fields = getattr(type(actual), "_fields", None)
    if fields != tuple(desired):
        raise AssertionError(f"result has the fields {fields}, must have {tuple(desired)}")
    for name, array in desired.items():
        found = getattr(actual, name)
        assert_arrays_equal(found, to_numpy(found) if array is None else array, like=like)


def assert_curves_equal(
    actual: Any, values: ArrayLike, *, thresholds: ArrayLike | None = None, like: Any = None
) -> None:
    """Raise AssertionError unless an ``EulerCurve`` is exactly this one.

    Parameters
    ----------
    actual : EulerCurve
        The computed result. Its values must be int64.
    values : array_like of int, shape batch + (n,)
        The expected Euler characteristics.
    thresholds : array_like, shape (n,), optional
        Thresholds it must have, dtype included. Only their number is checked by default.
    like : array, optional
        Both arrays must be of this array's library and on its device. NumPy by default.

    Raises
    ------
    AssertionError
        If it differs.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from ecc_core.testing import assert_curves_equal
    >>> class EulerCurve(NamedTuple):
    ...     thresholds: np.ndarray
    ...     values: np.ndarray
    >>> assert_curves_equal(EulerCurve(np.array([0.0, 0.5]), np.array([1, 2])), [1, 2])
    """
    desired = np.asarray(values, dtype=np.int64)
    _assert_fields(actual, like, thresholds=thresholds, values=desired)
    if tuple(actual.thresholds.shape) != desired.shape[-1:]:
        raise AssertionError(
            f"thresholds have shape {actual.thresholds.shape}, must have {desired.shape[-1:]}"
        )


def assert_regions_equal(
    actual: Any,
    labels: ArrayLike,
    values: ArrayLike,
    *,
    thresholds: ArrayLike | None = None,
    like: Any = None,
) -> None:
    """Raise AssertionError unless a ``RegionCurves`` is exactly this one.

    Parameters
    ----------
    actual : RegionCurves
        The computed result. Its values must be int64.
    labels : array_like, shape (n_labels,)
        The expected labels, with their dtype.
    values : array_like of int, shape (n_labels, n)
        The expected Euler characteristics.
    thresholds : array_like, shape (n,), optional
        The expected thresholds, with their dtype. Not checked by default.
    like : array, optional
        All arrays must be of this array's library and on its device. NumPy by default.

    Raises
    ------
    AssertionError
        If it differs.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.testing import assert_regions_equal
    >>> labels = np.array([[1, 1, 0], [1, 1, 3]], np.uint8)
    >>> found = ecc.region_curves(np.zeros((2, 3)), labels, [-1.0, 0.0])
    >>> assert_regions_equal(found, np.array([1, 3], np.uint8), [[0, 1], [0, 1]])
    """
    desired = np.asarray(values, dtype=np.int64)
    _assert_fields(actual, like, labels=labels, thresholds=thresholds, values=desired)
