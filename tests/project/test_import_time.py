"""`import ecc_core` loads NumPy and nothing heavier, and takes less time than NumPy itself."""

from processes import run_python

HEAVY = {"cupy", "dask", "imageio", "matplotlib", "napari", "numba", "pyarrow", "qtpy", "scipy"}
HEAVY |= {"pandas", "skimage", "sklearn", "tifffile", "torch", "tqdm"}
TIMES = """
import time
start = time.process_time()
import numpy
loaded = time.process_time()
import ecc_core
print(loaded - start, time.process_time() - loaded)
"""


def heavy_modules_after(statement: str) -> set[str]:
    names = run_python(f"{statement}\nimport sys\nprint(*sys.modules)").stdout.split()
    return HEAVY.intersection(names)


def test_import_loads_nothing_heavy():
    assert heavy_modules_after("import ecc_core") == set()
    # An import of numba would be noticed.
    assert "numba" in heavy_modules_after("import ecc_core, numba")


def test_first_curve_loads_little():
    """Nothing of other quantities."""
    code = "import ecc_core as ecc, sys\necc.euler_curve([[1.0, 2.0]])\nprint(*sys.modules)"
    loaded = set(run_python(code).stdout.split())
    assert "numba" in loaded
    others = {"ecc_core.components", "ecc_core.topology", "ecc_core.quantities._base"}
    assert others.isdisjoint(loaded)
    assert (HEAVY - {"numba", "scipy"}).isdisjoint(loaded)  # numba imports scipy.


def test_import_is_quick():
    """The least processor times of five runs are compared."""
    printed = [run_python(TIMES).stdout.split() for _ in range(5)]
    times = [map(float, numbers) for numbers in printed]
    numpy, more = map(min, zip(*times, strict=True))
    assert more < numpy


def test_submodules_are_there_when_they_are_used():
    code = "import ecc_core as ecc\nprint(ecc.plotting.__name__, hasattr(ecc, 'nothing'))"
    assert run_python(code).stdout.split() == ["ecc_core.plotting", "False"]
