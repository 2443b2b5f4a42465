"""`import ecc_core` loads NumPy and nothing heavier, and takes next to no time."""

import subprocess
import sys

import pytest

HEAVY = {"cupy", "dask", "imageio", "matplotlib", "napari", "numba", "pyarrow", "qtpy", "scipy"}
HEAVY |= {"pandas", "skimage", "sklearn", "tifffile", "torch", "tqdm"}
SECONDS = 0.15
REPEATS = 5


def run_fresh(code: str) -> str:
    """Return what the code prints in an interpreter of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def heavy_modules_after(statement: str) -> set[str]:
    names = run_fresh(f"{statement}\nimport sys\nprint(*sys.modules)").split()
    return HEAVY.intersection(names)


def seconds_beyond_numpy(statement: str) -> float:
    """Least processor time of several that the statement takes once NumPy is loaded."""
    code = f"""
import numpy, time
start = time.process_time()
{statement}
print(time.process_time() - start)
"""
    return min(float(run_fresh(code)) for _ in range(REPEATS))


def test_import_loads_nothing_heavy():
    assert heavy_modules_after("import ecc_core") == set()


@pytest.mark.parametrize("module", ["numba", "scipy", "matplotlib"])
def test_a_heavy_import_is_noticed(module):
    assert module in heavy_modules_after(f"import ecc_core, {module}")


def test_import_is_quick():
    assert seconds_beyond_numpy("import ecc_core") < SECONDS


def test_submodules_are_there_when_they_are_used():
    code = "import ecc_core as ecc\nprint(ecc.plotting.__name__, hasattr(ecc, 'nothing'))"
    assert run_fresh(code).split() == ["ecc_core.plotting", "False"]
