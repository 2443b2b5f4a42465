"""What a user installs: the files in the wheel and the source archive, and the metadata."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("ecc_core", "napari_ecc")
EXTRAS = {
    *(
        "all",
        "anndata",
        "cuda12",
        "cuda13",
        "czi",
        "dask",
        "dicom",
        "features",
        "fits",
        "io",
        "mesh",
    ),
    *("lif", "monai", "mrc", "n5", "napari", "nd2", "netcdf", "nifti", "nrrd", "parquet", "torch"),
    *("torchmetrics", "xarray"),
}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The wheel and the source archive of the working tree, built without the network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def source_files() -> set[str]:
    """Everything in the packages that is not a cache."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_the_packages_the_guide_and_nothing_else(archives):
    with zipfile.ZipFile(archives[0]) as archive:
        packages = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packages == source_files() | {"napari_ecc/guide.md"}
    assert {f"{package}/py.typed" for package in PACKAGES} <= packages


def test_sdist_holds_the_sources_and_no_caches(archives):
    with tarfile.open(archives[1]) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert source_files() <= files
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/project/test_packaging.py"} <= files
    assert not [f for f in files if {".venv", "__pycache__", "demo-output"} & set(f.split("/"))]


def test_extras_and_light_base_dependencies(archives):
    (wheel,) = importlib.metadata.distributions(path=[str(archives[0])])
    assert set(wheel.metadata.get_all("Provides-Extra")) == EXTRAS
    base = [line for line in wheel.requires if "extra ==" not in line]
    assert {line.partition(">")[0] for line in base} == {"numpy", "numba"}


def test_metadata_is_what_the_package_index_takes(archives):
    command = [sys.executable, "-m", "twine", "check", "--strict", *archives]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


@pytest.fixture
def installed(archives, tmp_path):
    """An interpreter that has the package and its base dependencies, and nothing else."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    build = ["--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [*pip, *build, archives[1]]  # It builds a wheel first.
    # The backend comes from this environment, the package goes to the other one.
    shown = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, env=shown)
    assert done.returncode == 0, done.stderr
    base = tmp_path / "base"
    base.mkdir()
    for name in ("numpy", "numba", "llvmlite"):  # numba needs the others.
        needed = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in needed.files} - {"..", "__pycache__"}:
            (base / top).symlink_to(needed.locate_file(top))
    return python, base


def test_it_works_where_nothing_else_is_installed(installed, tmp_path):
    python, base = installed
    code = """
import importlib.util, json
import ecc_core as ecc
print(json.dumps({
    "file": ecc.__file__,
    "number": ecc.euler_number([[False, True], [True, False]], connectivity=1),
    "others": [m for m in ("torch", "scipy", "dask", "napari") if importlib.util.find_spec(m)],
}))
"""
    environment = {**os.environ, "PYTHONPATH": str(base), "NUMBA_CACHE_DIR": str(tmp_path)}
    run = partial(subprocess.run, capture_output=True, text=True, env=environment, cwd=tmp_path)
    done = run([python, "-c", code])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert python.parents[1] in Path(result["file"]).parents
    assert result["number"] == 2
    assert result["others"] == []
    done = run([python.parent / "ecc", "--version"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ecc ")
