"""The page of the design that lists what is kept between calls names every cache."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design" / "caches.md").read_text(encoding="utf-8")
CACHE = re.compile(
    r"^(@(functools\.)?(lru_)?cache\b|\w+ = lru_cache\(|_\w+: dict\b.* = \{\})", re.MULTILINE
)


def caches():
    """The modules that keep something, as the page writes them."""
    for path in sorted((ROOT / "ecc_core").rglob("*.py")):
        if CACHE.search(path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT / "ecc_core").as_posix()


def test_every_cache_is_on_the_page():
    found = list(caches())
    assert len(found) > 20
    missing = [name for name in found if f"`{name}`" not in PAGE]
    assert missing == []


def test_every_module_on_the_page_exists():
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", PAGE)
    folders = [ROOT / "ecc_core", ROOT]
    assert [name for name in named if not any((top / name).is_file() for top in folders)] == []


def test_kernels_of_devices_are_kept_in_one_place():
    """Others decorate functions by what `programs` has."""
    modules = (ROOT / "ecc_core" / "_backends" / "cuda").glob("*.py")
    others = [path.name for path in modules if "lru_cache" in path.read_text(encoding="utf-8")]
    assert others == ["programs.py"]
