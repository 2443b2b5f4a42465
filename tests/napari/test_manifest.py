"""How napari finds the plugin, and what it offers without a window."""

import doctest
import importlib
import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np
import pytest
from napari_helpers import DOCKS
from npe2 import PluginManifest
from processes import run_python

import ecc_core as ecc
from napari_ecc import _samples


@pytest.fixture(scope="module")
def manifest():
    (entry,) = entry_points(group="napari.manifest", name="napari-ecc")
    module, _, file = entry.value.partition(":")
    assert (module, file) == ("napari_ecc", "napari.yaml")
    return PluginManifest.from_distribution("napari-ecc")


def test_manifest_is_valid_and_commands_can_be_imported():
    command = [sys.executable, "-m", "npe2", "validate", "--imports", "napari_ecc"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_need_no_window_system():
    """Qt's system libraries are those of its windows. dask is loaded for data out of memory."""
    done = run_python(
        "import sys; from napari_ecc import actions; "
        "print([name for name in ('qtpy.QtGui', 'dask.array') if name in sys.modules])"
    )
    assert done.stdout == "[]\n", done.stderr


def test_docks_are_in_the_measure_menu(manifest):
    menus = manifest.contributions.menus
    (entry,) = menus["napari/layers/measure"]
    measure = {item.command for item in menus[entry.submenu]}
    assert measure == {widget.command for widget in manifest.contributions.widgets}
    titles = {widget.display_name for widget in manifest.contributions.widgets}
    assert titles == set(DOCKS)


def test_settings_start_as_the_model_does(manifest):
    from napari_ecc._model.explorer import ExplorerModel

    model = ExplorerModel()
    properties = manifest.contributions.configurations["explorer"].properties
    defaults = {name: p.default for name, p in properties.items()}
    assert defaults.pop("full_connectivity") is (model.connectivity is None)
    assert defaults == {name: getattr(model, name) for name in defaults}


@pytest.mark.parametrize(
    ("sample", "shape"),
    [("coins", (303, 384)), ("labelled_coins", (303, 384)), ("vessels", None), ("drops", None)],
)
def test_samples(manifest, sample, shape):
    (contribution,) = [s for s in manifest.contributions.sample_data if s.key == sample]
    assert contribution.command.startswith("napari-ecc.")
    make = getattr(_samples, sample)
    small = {"vessels": {"shape": (20, 30, 40)}, "drops": {"frames": 4, "side": 50}}
    (image, settings, kind), *others = make(**small.get(sample, {}))
    assert kind == "image"
    assert settings["name"] == sample.removeprefix("labelled_")
    assert [kind for _, _, kind in others] == ["labels"] * sample.startswith("labelled")
    assert all(15 < labels.max() < 30 for labels, *_ in others)
    assert image.dtype == np.uint8
    assert shape is None or image.shape == shape
    last = image[-1] if sample == "drops" else image
    assert np.ptp(ecc.euler_curve(last).values) > 3


@pytest.mark.parametrize(
    "name",
    [
        "_model.compare",
        "_model.levels",
        "_controller.docks",
        "actions.layers",
        "actions.layer_pairs",
    ],
)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"napari_ecc.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
