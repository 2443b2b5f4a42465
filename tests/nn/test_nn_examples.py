"""The examples of learning, in small: what each of them claims is so."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import ecc_core as ecc

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return lambda name: runpy.run_path(str(EXAMPLES / f"learn_{name}.py"))


@pytest.fixture
def check_output(capsys, tmp_path):
    """Whether what is printed holds some numbers, and the figure can be drawn."""

    def check(names, results, *numbers):
        names["report"](results)
        printed = capsys.readouterr().out
        for number in numbers:
            assert number in printed
        names["draw"](results).savefig(tmp_path / "figure.png")

    return check


@pytest.mark.slow
def test_textures(example, check_output):
    """From two patches of each texture the layer learns more than networks without it."""
    names = example("textures")
    sizes = [names["parameters"](name) for name in names["NETWORKS"]]
    assert sizes[0] == min(sizes) > 0.9 * max(sizes)
    results = names["compare"](seeds=2, counts=(2,), epochs=120)
    accuracy = {name: np.mean(by_count[2]) for name, by_count in results.items()}
    best = accuracy.pop("Euler curves")
    assert best > 0.93
    assert max(accuracy.values()) < best - 0.02
    check_output(names, results, f"{best:.3f}")


def test_direction(example, check_output):
    """Only a layer that learns its direction tells the classes apart; it finds the hidden one."""
    names = example("direction")
    pairs = names["twins"](20, np.random.default_rng(0)).numpy()
    curves = ecc.euler_curve(pairs, 64, axis=(2, 3)).values
    np.testing.assert_array_equal(curves[:, 0], curves[:, 1])
    results = names["compare"](seeds=2, epochs=25, count=75)
    accuracy = {name: np.mean([run.accuracy for run in runs]) for name, runs in results.items()}
    assert accuracy["no direction"] == 0.5
    assert accuracy["direction fixed"] < 0.7
    assert accuracy["direction learned"] > 0.85
    even = np.linspace(names["LOW"], names["HIGH"], names["THRESHOLDS"])
    learned = results["direction learned"]
    assert [run.angles[0] for run in learned] == pytest.approx([80, 80], abs=0.01)
    assert max(run.angles[-1] for run in learned) < 20
    moved = [np.abs(run.thresholds - even).max() for run in learned]
    assert min(moved) > 0.5 * (even[1] - even[0])
    check_output(names, results, "no direction       accuracy 0.500 (0.000)")


@pytest.mark.slow
def test_segmentation(example, check_output):
    """With the loss there are far fewer pieces and holes too many or too few, for a little Dice."""
    names = example("segmentation")
    results = names["compare"](seeds=1, steps=160, shown=16, unseen=40)
    without, with_loss = results[0]
    assert with_loss.betti < 0.7 * without.betti
    assert with_loss.dice > without.dice - 0.05
    assert without.masks.shape == with_loss.masks.shape == (40, 64, 64)
    check_output(names, results, f"{without.betti:.2f}", f"{with_loss.betti:.2f}")


def test_betti_numbers_of_known_masks(example):
    betti_numbers = example("segmentation")["betti_numbers"]
    mask = np.zeros((9, 9), bool)
    mask[1:6, 1:6] = True
    mask[3, 3] = False
    mask[6, 6] = mask[8, 0] = True  # One touches at a corner, one is apart.
    assert betti_numbers(mask) == (2, 1)
