"""What the studies under benchmarks/evidence claim holds in a small setting, too."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from skimage import io

FOLDER = Path(__file__).parents[2] / "benchmarks" / "evidence"


@pytest.fixture
def study(monkeypatch):
    """Import a module of the folder."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def rows(outcome, table):
    """Rows of a table by their first column."""
    return {next(iter(row.values())): row for row in outcome.tables[table]}


def test_gaussian_fields_follow_theory(study):
    gaussian_field = study("gaussian_field")
    outcome = gaussian_field.run(quick=True)
    for row in outcome.tables["Mean curve against theory"]:
        assert row["p, lattice"] > 0.01
        assert row["max abs z"] < 3.5
    # The test can tell: the other connectivity's theory is refused.
    for (ndim, _, connectivity), (curves, _, _) in outcome.arrays.items():
        setting = next(s for s in gaussian_field.QUICK if len(s[0]) == ndim)
        other = gaussian_field.expected_curves(setting, ndim if connectivity == 1 else 1)
        assert gaussian_field.p_value(curves, other["lattice"]) < 1e-6


def test_textures(study):
    found = rows(study("texture_classification").run(quick=True), "Patches of 64 x 64 pixels")
    bands = found["ECC, 3 bands"]
    assert bands["accuracy"]["mean"] > 0.95
    assert bands["accuracy"]["mean"] > found["HOG"]["accuracy"]["mean"] + 0.1
    assert bands["turned"] == bands["accuracy"]
    assert found["HOG"]["turned"]["mean"] < found["HOG"]["accuracy"]["mean"] - 0.1
    assert found["persistence images"]["time / ECC's"] > 5


def test_no_pixel_trains_and_tests(study):
    textures = study("textures")
    images, kinds, regions = textures.patches(64)
    for training in textures.splits(kinds, regions, 3, seed=0):
        places = np.stack([kinds, regions], axis=1)
        trained, tested = (set(map(tuple, places[part])) for part in (training, ~training))
        assert not trained & tested
        assert len(trained) == len(tested)
    assert len(images) == len(textures.textures()) * 64


def test_shapes(study):
    outcome = study("morphology").run(quick=True)
    lobes = rows(outcome, "Shapes of equal area with 3 to 7 lobes")
    accuracy = {name: row["accuracy"]["mean"] for name, row in lobes.items()}
    assert accuracy["ECT, turned"] > accuracy["region properties"] + 0.1
    digits = rows(outcome, "Handwritten digits, 10 classes")
    assert digits["ECT"]["accuracy"]["mean"] > 0.8
    assert float(digits["region properties"]["µs an object"]) > 4 * float(
        digits["ECT"]["µs an object"]
    )
    masks, _ = outcome.arrays["lobes"]
    assert np.ptp(masks.sum(axis=(1, 2))) <= 1


def test_persistent_homology(study):
    persistent_homology = study("persistent_homology")
    outcome = persistent_homology.run(quick=True)
    for row in outcome.tables["Separation: area under the ROC curve"]:
        assert row["ECC"]["mean"] > 0.85
        assert row["ECC"]["mean"] > row["persistence images"]["mean"] - 0.1
    for row in outcome.tables["Time"]:
        assert row["times faster"] >= 5


@pytest.mark.parametrize("shape", [(30, 40), (10, 12, 14)])
def test_curves_are_alternating_sums_of_betti_numbers(study, shape):
    persistent_homology = study("persistent_homology")
    image = np.random.default_rng(0).normal(size=shape)
    found = persistent_homology.describe(image)  # compares them
    assert {name: part.shape for name, part in found.items()} == {
        "ECC": (32,),
        "Betti curves": (32 * len(shape),),
        "persistence images": (144 * len(shape),),
    }


def test_noise_and_resolution(study):
    outcome = study("robustness").run(quick=True)
    noise = rows(outcome, "Noise and the curve")
    assert noise[0.0]["presmoothing 0"]["mean"] == 0
    assert noise[0.2]["presmoothing 0"]["mean"] > 20 * noise[0.2]["presmoothing 1"]["mean"]
    assert noise[0.8]["presmoothing 2"]["mean"] < noise[0.8]["presmoothing 1"]["mean"]
    classes = rows(outcome, "Noise and classification")
    assert classes[0.05]["ECC, 3 bands"]["mean"] > classes[0.05]["LBP"]["mean"] + 0.1
    off = [
        row["distance to full resolution"]["mean"]
        for row in outcome.tables["Resolution and the curve"]
    ]
    assert off == sorted(off)
    assert off[0] < 0.05


STUDIES = (
    *("gaussian_field", "morphology", "persistent_homology"),
    *("robustness", "texture_classification"),
)


@pytest.mark.parametrize("name", STUDIES)
def test_committed_results_are_those_of_the_script(study, name):
    """The Markdown holds the script's own text and the tables of the JSON file."""
    outcome = study("outcome")
    stem = outcome.RESULTS / name.replace("_", "-")
    found = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    text = stem.with_suffix(".md").read_text(encoding="utf-8")
    expected = outcome.Outcome(found["title"], study(name).TEXT, found["tables"], {})
    tables = outcome.markdown(expected, "").rpartition("\n``")[0]
    assert text.startswith(tables)
    pixels = io.imread(outcome.IMAGES / f"evidence-{stem.name}.png")[..., :3]
    assert np.mean(pixels.min(axis=-1) < 250) > 0.02  # drawn upon
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 100
