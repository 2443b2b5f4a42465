"""The documentation site builds without a warning, and every public name has its page."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "api" / "index.md").read_text(encoding="utf-8").split()
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


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the site without running the gallery, whose examples have tests of their own."""
    options = ["-W", "--keep-going", "-q", "-D", "sphinx_gallery_conf.plot_gallery=0"]
    command = [sys.executable, "-m", "sphinx", *options, "-d", target / "trees", source, target]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_site_builds(tmp_path):
    # Sphinx writes pages beside the sources.
    for folder in ("docs", "examples", "benchmarks/results"):
        unmade = shutil.ignore_patterns("generated", "gallery") if folder == "docs" else None
        shutil.copytree(DOCS.parent / folder, tmp_path / folder, ignore=unmade)
    built = build(tmp_path / "docs", tmp_path / "site")
    assert built.returncode == 0, built.stderr
    for page, text in PAGES.items():
        assert text in (tmp_path / "site" / f"{page}.html").read_text(encoding="utf-8"), page


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "conf.py").write_text('extensions = ["myst_parser"]\n')
    (tmp_path / "index.md").write_text("# Page\n\n[link](nowhere.md)\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert "nowhere" in built.stderr


def test_pictures_of_the_concepts(tmp_path):
    script = DOCS.parent / "examples" / "concepts.py"
    command = [sys.executable, script, "--out", tmp_path]
    drawn = subprocess.run(command, capture_output=True, text=True, check=False)
    assert drawn.returncode == 0, drawn.stderr
    names = sorted(picture.name for picture in tmp_path.iterdir())
    assert names == sorted(picture.name for picture in DOCS.glob("images/concept-*.png"))
    for name in names:  # drawn anew, up to the version of matplotlib
        drawn_now, committed = (
            np.asarray(Image.open(folder / name).convert("L").resize((64, 64)), float)
            for folder in (tmp_path, DOCS / "images")
        )
        assert drawn_now.std() > 10
        assert np.abs(drawn_now - committed).mean() < 5
