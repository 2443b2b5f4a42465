"""Every Python block of the README and of the documentation runs."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if BLOCK.search(page.read_text(encoding="utf-8"))
]
INSTALLING = [ROOT / "README.md", ROOT / "docs" / "start.md"]
"""Pages that say what to install, and have to run with that alone."""


def run_blocks(page: Path) -> None:
    """Run the blocks of a page in order and in one namespace; an error points into the page."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line_breaks = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(line_breaks + block[1], page, "exec"), names)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if p not in INSTALLING], ids=name_of)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


def installed_by(requirements: list[str]) -> set[str]:
    """The distributions that `pip install` of these brings, of those that are installed here."""
    found: set[str] = set()
    known: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        name = str(canonicalize_name(wanted.name))
        for extra in {"", *wanted.extras}:
            if (name, extra) in known:
                continue
            known.add((name, extra))
            try:
                needed = distribution(name).requires or []
            except PackageNotFoundError:
                continue
            found.add(name)
            some = map(Requirement, needed)
            waiting += [r for r in some if not r.marker or r.marker.evaluate({"extra": extra})]
    return found


def run_with_only(requirements: list[str], page: Path, folder: Path) -> str:
    """Run a page where only some distributions can be imported; the last line of its errors."""
    present = installed_by(requirements)
    blocked = set()
    for module, owners in packages_distributions().items():
        if present.isdisjoint(map(canonicalize_name, owners)):
            blocked.add(module)
    blocked.discard("ecc_core")
    # This module itself imports pytest and packaging, which no page needs.
    code = f"""
import sys
sys.path[:0] = {[str(ROOT), str(Path(__file__).parent)]}
from test_docs import Path, run_blocks
sys.modules.update(dict.fromkeys({blocked}))  # which stops their import
run_blocks(Path(sys.argv[1]))
"""
    command = [sys.executable, "-c", code, page]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


INSTALL = re.compile(r'^    pip install "\.(\[.+?\])?"(.*?)(?:#.*)?$', re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [INSTALLING[0], pytest.param(INSTALLING[1], marks=pytest.mark.slow)],
    ids=name_of,
)
def test_page_needs_only_what_it_installs(page, tmp_path):
    assert page in PAGES
    extras, others = INSTALL.search(page.read_text(encoding="utf-8")).groups()
    assert run_with_only([f"napari-ecc{extras or ''}", *others.split()], page, tmp_path) == ""


def test_what_is_not_installed_is_noticed(tmp_path):
    page = ROOT / "docs" / "start.md"
    assert "import of skimage halted" in run_with_only(["napari-ecc[io]"], page, tmp_path)


def test_references_of_the_paper_are_complete():
    paper, entries = (
        (ROOT / "paper" / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib")
    )
    cited = set(re.findall(r"@(\w+\d{4}|gudhi)", paper))
    assert cited == set(re.findall(r"^@\w+{(\w+),$", entries, re.MULTILINE))
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    numbers = re.findall(r"arXiv:([\d.]+\d)]", page)
    assert [number for number in numbers if number not in entries] == []
