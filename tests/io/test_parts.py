"""Parts of a job are read as they were kept, or not at all."""

import io

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ecc_core._io.parts import Parts, _digest

STAMP = "0123456789abcdef"
TABLE = np.arange(6, dtype=np.int32).reshape(2, 3)
KEPT = {
    "table": TABLE,
    "transposed": TABLE.T,
    "every second": np.arange(9.0)[::2],
    "number": np.array(7),
    "empty": np.empty((0, 3)),
    "booleans": TABLE > 2,
    "other byte order": TABLE.astype(">i4"),
}


@pytest.mark.parametrize("case", KEPT)
def test_arrays_come_back(case, tmp_path):
    parts = Parts(tmp_path / "parts")
    parts.keep(3, STAMP, KEPT[case])
    found = parts.load(3, STAMP)
    assert found.dtype == KEPT[case].dtype
    assert_array_equal(found, KEPT[case], strict=True)


@pytest.mark.parametrize("order", ["C", "F"])
def test_files_of_earlier_versions(order, tmp_path):
    """They hold what `np.save` writes; arrays in Fortran order are computed again."""
    stream = io.BytesIO()
    np.save(stream, np.asarray(TABLE, order=order))
    content = stream.getvalue()
    parts = Parts(tmp_path)
    parts._path(0, STAMP).write_bytes(content + _digest(content))
    found = parts.load(0, STAMP)
    if order == "F":
        assert found is None
    else:
        assert_array_equal(found, TABLE)


@pytest.mark.parametrize("length", [0, 5, 16, 100, 151])
def test_files_that_were_cut_are_not_read(length, tmp_path):
    parts = Parts(tmp_path)
    parts.keep(0, STAMP, TABLE)
    path = parts._path(0, STAMP)
    content = path.read_bytes()
    assert len(content) > length
    path.write_bytes(content[:length])
    assert parts.load(0, STAMP) is None
