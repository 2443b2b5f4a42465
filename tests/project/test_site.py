"""The documentation site builds without a warning, and every public name has its page."""

import importlib
import io
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from picture_helpers import small_grey
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = runpy.run_path(str(DOCS / "_ext" / "reference.py"))["page"](DOCS).split()
PAGES = {
    "index": "napari-ecc",
    "start": "pip install",
    "api/generated/ecc_core.euler_curve": 'id="ecc_core.euler_curve"',
    "gallery/index": "sphx-glr-thumbcontainer",
}
"""Pages of the site, and what only their own content has."""
PUBLIC = ("", "dask", "errors", "features", "io", "nn", "plotting", "testing")


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module):
    names = importlib.import_module(f"ecc_core.{module}".rstrip(".")).__all__
    prefix = f"{module}." if module else ""
    # Constants say in their module what they are.
    missing = [n for n in names if not n.isupper() and f"{prefix}{n}" not in REFERENCE]
    assert missing == []


def build(source: Path, target: Path, builder: str = "html", **settings: object) -> str:
    """Build a site in this process, which has imported the package already; the warnings."""
    warnings = io.StringIO()
    with patch_docutils(source), docutils_namespace():
        folders = [source, source, target, target / "trees"]
        options = {"confoverrides": settings, "status": None, "warning": warnings}
        Sphinx(*folders, builder, **options).build()
    return warnings.getvalue()


@pytest.mark.slow  # `make docs`, which a workflow runs for every change, finds the same faults.
@pytest.mark.filterwarnings("ignore")  # Sphinx and its extensions may warn.
@pytest.mark.parametrize("builder", ["dummy", "html"])
def test_site_builds(tmp_path, builder):
    """The gallery is not run, as its examples have tests of their own.

    The dummy builder reads all pages and resolves all links, but writes nothing.
    """
    # Sphinx writes pages beside the sources.
    for name in ("docs", "examples", "benchmarks"):
        unmade = shutil.ignore_patterns("generated", "gallery", "benchmark-figures")
        ignore = unmade if name == "docs" else None
        shutil.copytree(DOCS.parent / name, tmp_path / name, ignore=ignore)
    settings = {"sphinx_gallery_conf.plot_gallery": "0"}
    site = tmp_path / "site"
    with mock.patch.dict(os.environ), mock.patch.object(sys, "path", [*sys.path]):
        assert build(tmp_path / "docs", site, builder, **settings) == ""
    if builder == "html":
        pages = {page: (site / f"{page}.html").read_text(encoding="utf-8") for page in PAGES}
        assert [page for page, text in PAGES.items() if text not in pages[page]] == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("builder", ["dummy", "html"])
def test_a_broken_link_is_noticed(tmp_path, builder):
    (tmp_path / "conf.py").write_text('extensions = ["myst_parser"]\n')
    (tmp_path / "index.md").write_text("# Page\n\n[link](nowhere.md)\n")
    assert "nowhere" in build(tmp_path, tmp_path / "site", builder)


def test_logo(tmp_path):
    command = [sys.executable, DOCS.parent / "examples" / "logo.py", "--out", tmp_path]
    subprocess.run(command, check=True)
    drawn = (tmp_path / "logo.svg").read_text(encoding="utf-8")
    assert drawn == (DOCS / "_static" / "logo.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_pictures_of_the_concepts(tmp_path):
    script = DOCS.parent / "examples" / "concepts.py"
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True)
    names = sorted(picture.name for picture in tmp_path.iterdir())
    assert names == sorted(picture.name for picture in DOCS.glob("images/concept-*.png"))
    drawn_now = [small_grey(tmp_path / name) for name in names]
    assert min(picture.std() for picture in drawn_now) > 10
    committed = [small_grey(DOCS / "images" / name) for name in names]
    differences = [
        np.abs(drawn - other).mean() for drawn, other in zip(drawn_now, committed, strict=True)
    ]
    assert max(differences) < 5  # Versions of matplotlib differ.
