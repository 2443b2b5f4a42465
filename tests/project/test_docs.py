"""Every Python block of the README and of the documentation runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if BLOCK.search(page.read_text(encoding="utf-8"))
]


def run_blocks(page: Path) -> None:
    """Run the blocks of a page in order and in one namespace; an error points into the page."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line_breaks = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(line_breaks + block[1], page, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


def test_readme_has_an_example():
    assert ROOT / "README.md" in PAGES


def test_a_wrong_block_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nn = 1\n```\ntext\n```python\nassert n == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_blocks(page)
    assert caught.traceback[-1].lineno + 1 == 6
