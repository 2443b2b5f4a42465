"""What a user installs: the files in the wheel and the source archive, and the metadata."""

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("ecc_core", "napari_ecc")
EXTRAS = {"io", "torch", "dask", "napari", "cuda12", "cuda13", "all"}


class Distribution(NamedTuple):
    wheel_files: set[PurePosixPath]
    sdist_files: set[PurePosixPath]
    metadata: Message


@pytest.fixture(scope="module")
def distribution(tmp_path_factory):
    """Build both from the working tree, without touching it and without the network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    with tarfile.open(sdist) as archive:
        members = [PurePosixPath(name) for name in archive.getnames()]
    return Distribution(
        {PurePosixPath(name) for name in names},
        {PurePosixPath(*member.parts[1:]) for member in members},
        Parser().parsestr(text),
    )


def source_files() -> set[PurePosixPath]:
    """Everything in the packages that is not a cache."""
    return {
        PurePosixPath(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_the_packages_and_nothing_else(distribution):
    packages = {f for f in distribution.wheel_files if not f.parts[0].endswith(".dist-info")}
    assert packages == source_files()


@pytest.mark.parametrize("package", PACKAGES)
def test_wheel_is_typed(distribution, package):
    assert PurePosixPath(package, "py.typed") in distribution.wheel_files


def test_sdist_builds_on_its_own(distribution):
    """It holds the sources, the tests, and what the metadata refer to, but no caches."""
    files = distribution.sdist_files
    assert source_files() <= files
    for name in ("pyproject.toml", "README.md", "LICENSE", "tests/test_packaging.py"):
        assert PurePosixPath(name) in files
    assert not [f for f in files if {".venv", "__pycache__", "demo-output"} & set(f.parts)]


def test_metadata(distribution):
    metadata = distribution.metadata
    assert metadata["Name"] == "napari-ecc"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert set(metadata.get_all("Provides-Extra")) == EXTRAS


def test_base_dependencies_are_light(distribution):
    required = distribution.metadata.get_all("Requires-Dist")
    base = {r.partition(">")[0] for r in required if "extra ==" not in r}
    assert base == {"numpy", "numba"}
