"""Dask arrays in exactly the chunks that a test asks for."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._optional import import_optional

__all__ = ["in_chunks"]


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
    edges = [np.cumsum([0, *along]).tolist() for along in lengths]
    name = "in-chunks-" + tokenize(array, lengths)
    tasks = {
        (name, *index): array[
            tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, index, strict=True))
        ]
        for index in itertools.product(*(range(len(along)) for along in lengths))
    }
    return da.Array(tasks, name, lengths, meta=array[(slice(0),) * array.ndim])
