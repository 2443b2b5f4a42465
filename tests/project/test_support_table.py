"""The table of array libraries in the README is that of the quantities, and is true."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from plain import Box

import ecc_core as ecc
from ecc_core.errors import BackendError
from ecc_core.quantities import CURVES, QUANTITIES

ROOT = Path(__file__).parents[2]
FUNCTIONS = {one.name: one for quantity in QUANTITIES for one in quantity.functions}
OF_BOXES = {one.of_regions for one in CURVES.values() if one.joins.how != "glue"}
ON_DEVICES = {name: one for name, one in FUNCTIONS.items() if one.plain or name not in OF_BOXES}
"""Those of regions that are boxes see what a `Box` holds, an array in host memory."""
IMAGE = np.arange(6).reshape(2, 3)


def test_the_readme_has_the_present_table():
    """`python tools/support_table.py` writes it."""
    spec = importlib.util.spec_from_file_location("table", ROOT / "tools" / "support_table.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.table() in page
    assert tool.updated(page) == page


@pytest.mark.parametrize("function", ON_DEVICES.values(), ids=ON_DEVICES)
def test_devices_without_kernels(function):
    """The plain backend computes those that say so; others are an error."""
    arguments = {"persistent_regions": [1], "euler_surface": [Box(IMAGE)]}.get(function.name, [])
    if function.name.startswith("region_") or function.name == "betti_matching":
        arguments = [Box(IMAGE)]
    call = getattr(ecc, function.name)
    if function.plain:
        call(Box(IMAGE), *arguments)
        return
    with pytest.raises(BackendError, match="not available on plain:0: copy the arrays to the host"):
        call(Box(IMAGE), *arguments)


def test_curves_name_public_functions():
    names = {name for one in CURVES.values() for name in (one.of_image, one.of_regions)} - {""}
    assert names <= FUNCTIONS.keys()
    assert all(hasattr(ecc, name) for name in names)
