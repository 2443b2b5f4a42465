"""What the modules for other libraries say where these are not installed."""

import importlib
import sys

import pytest


@pytest.mark.parametrize("name", ["monai", "torchmetrics"])
def test_the_extra_is_named(monkeypatch, name):
    pytest.importorskip("torch", reason="torch is not installed")
    for module in [f"ecc_core.nn.{name}", *sys.modules]:
        if module.partition(".")[0] == name or module == f"ecc_core.nn.{name}":
            monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, name, None)  # This makes its import fail.
    message = rf'ecc_core\.nn\.{name} needs {name}: pip install "\.\[{name}\]"'
    with pytest.raises(ImportError, match=message):
        importlib.import_module(f"ecc_core.nn.{name}")
