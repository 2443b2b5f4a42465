"""Curves of the regions of an image of labels."""

import numpy as np
import pytest
from fake_cupy import ndarray
from kernel_cases import SIDES, check_regions

from ecc_core._request.filtration import Filtration


@pytest.mark.parametrize("side", SIDES, ids=["vertices", "cubes"])
@pytest.mark.parametrize(("shape", "dtype"), [((30, 260), "u2"), ((9, 11, 35), "i8")])
def test_regions(emulator, monkeypatch, shape, dtype, side):
    rng = np.random.default_rng(7)
    image = rng.normal(size=shape).astype(np.float32)
    if dtype == "u2":  # There are more labels than rows of a block.
        monkeypatch.setattr(emulator.backend.regions, "MOST_POINTS_OF_32_BITS", 0)
        few = rng.integers(0, 200, (shape[0] // 3, shape[1] // 2))
        labels = few.repeat(3, axis=0).repeat(2, axis=1).astype(dtype)
    else:
        monkeypatch.setattr(emulator.backend.regions, "ROWS_BYTES", 0)
        labels = (rng.integers(0, 5, shape) * 7).astype(dtype)
        labels[labels == 7] = 1 << 40
    levels = np.linspace(-1, 1, 9)
    emulator.clear()
    check_regions(emulator, image, labels, levels, side)
    few = np.minimum(labels, 3)  # One kernel counts and writes these curves.
    check_regions(emulator, image, few, levels, side)
    check_regions(emulator, image, few, levels, side)
    assert not any(zeros.any() for zeros in emulator.backend.calls._shared.values())
    if dtype == "i8":
        labels[2, 3, 4] = -2
        with pytest.raises(ValueError, match="`labels` must not be negative, got -2"):
            emulator.backend.regions.rank_labels(labels.view(ndarray))


def test_another_thread_may_replace_the_launch_that_is_kept(emulator, monkeypatch):
    always_none = property(lambda _: None, lambda *_: None)
    monkeypatch.setattr(emulator.backend.regions.Regions, "_kept", always_none, raising=False)
    labels = np.arange(60, dtype=np.int32).reshape(5, 12) % 4
    image = np.random.default_rng(9).normal(size=(5, 12)).astype(np.float32)
    given = image, labels, np.linspace(-1, 1, 5), SIDES[0]
    check_regions(emulator, *given)
    check_regions(emulator, *given)  # The room for regions is guessed from the first image.


def test_labels_that_change_are_never_an_index(emulator, monkeypatch):
    """Another thread writes larger and negative labels after they were ranked."""
    image = np.random.default_rng(8).normal(size=(60, 70)).astype(np.float32).view(ndarray)
    labels = np.full((60, 70), 60_000, np.int32).view(ndarray)
    rank_labels = emulator.backend.regions.rank_labels

    def rank_and_change(given):
        found = rank_labels(given)
        given[::2] = 1 << 30
        given[1::2] = -5
        return found

    monkeypatch.setattr(emulator.backend.regions, "rank_labels", rank_and_change)
    monkeypatch.setattr(emulator.backend.regions, "MOST_BYTES", 1 << 17)
    ids, values = emulator.launch.region_curves(image, labels, np.zeros(1), Filtration(2, 2))
    assert ids.shape == (0,)  # All labels that were ranked have gone.
    assert values.shape == (0, 1)


@pytest.mark.parametrize(
    "shape",
    [(5, 12, 40), *(pytest.param(s, marks=pytest.mark.slow) for s in ((40, 75), (64, 6, 30)))],
)
def test_more_and_larger_labels_than_in_the_last_image(emulator, monkeypatch, shape):
    rng = np.random.default_rng(11)
    image = rng.normal(size=shape).astype(np.float32)
    monkeypatch.setattr(emulator.backend.regions, "EXPECTED_LABELS", 2)
    monkeypatch.setattr(emulator.backend.regions, "MOST_BYTES", 4 * 4 * 3000)
    levels = np.linspace(-1, 1, 3)
    check_regions(emulator, image, np.ones(shape, np.int32), levels, SIDES[0])
    # The largest label, the step from label to label, and how often they are counted.
    cases = (2, 1, 1), (150, 1, 2), (170, 1, 1), (200, 1, 2), (90, 30, 1), (9000, 1, 2), (9, 1, 1)
    for most, step, times in cases:
        # Most regions are one run of a row.
        labels = np.arange(image.size, dtype=np.int32).reshape(shape) // 9 % (most // step + 1)
        labels *= step
        labels.flat[-1] = most
        emulator.launched.clear()
        check_regions(emulator, image, labels, levels, SIDES[0])
        assert sum(source.startswith("points") for source in emulator.launched) == times
    labels.flat[0] = -4
    with pytest.raises(ValueError, match="`labels` must not be negative, got -4"):
        check_regions(emulator, image, labels, levels, SIDES[0])
