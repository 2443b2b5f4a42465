"""The oracles share no code with what they judge, and do not ship."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name.partition(".")[0] for name in found}


@pytest.mark.parametrize("name", ["euler", "transform"])
def test_only_numpy(name):
    others = imports_of(ROOT / f"tests/oracles/{name}.py") - sys.stdlib_module_names
    assert others <= {"numpy", "oracles"}


def test_the_package_does_not_import_them():
    files = [*ROOT.glob("ecc_core/**/*.py"), *ROOT.glob("napari_ecc/**/*.py")]
    assert len(files) > 100
    assert not [path for path in files if {"oracles", "tests"} & imports_of(path)]
