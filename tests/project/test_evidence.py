"""What the studies under benchmarks/evidence claim holds in a small setting, too."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from skimage import io

import ecc_core as ecc
from ecc_core.features import expected_gaussian_curve

FOLDER = Path(__file__).parents[2] / "benchmarks" / "evidence"


@pytest.fixture
def study(monkeypatch):
    """Import a module of the folder."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def rows(outcome, table):
    """Rows of a table by their first column."""
    rows = outcome.tables[table]
    first, *_ = rows[0]
    return {row[first]: row for row in rows}


def test_gaussian_fields_follow_theory(study):
    gaussian_field = study("gaussian_field")
    outcome = gaussian_field.run(quick=True)
    rows = outcome.tables["Mean curve against theory"]
    assert min(row["p, lattice"] for row in rows) > 0.01
    assert max(row["max abs z"] for row in rows) < 3.5
    # The test can tell: the other connectivity's theory is refused.
    settings = {len(setting[0]): setting for setting in reversed(gaussian_field.QUICK)}
    others = []
    for (ndim, _, connectivity), (curves, _, _) in outcome.arrays.items():
        other = gaussian_field.expected_curves(settings[ndim], ndim if connectivity == 1 else 1)
        others.append(gaussian_field.p_value(curves, other["lattice"]))
    assert max(others) < 1e-6


@pytest.mark.parametrize("shape", [(9, 12), (5, 6, 7)])
def test_expected_curve_of_a_mask_without_holes_is_that_of_the_box(study, shape, monkeypatch):
    masked_fields = study("masked_fields")
    covariance = masked_fields.neighbour_covariance(1.5)
    t = np.linspace(-2, 2, 5)
    monkeypatch.setattr(masked_fields, "THRESHOLDS", t)
    box = expected_gaussian_curve(shape, t, covariance=covariance, connectivity=1, rng=1)
    found = masked_fields.on_the_grid(np.ones(shape, bool), 1.5)
    assert (np.abs(found - box.mean) < 5 * box.error).all()  # Both are integrated numerically.
    assert (box.error < 2e-3 * np.abs(box.mean).max()).all()
    moment = 2 * (1 - masked_fields.neighbour_correlation(1.5))
    smooth = expected_gaussian_curve(shape, t, spectral_moments=moment)
    found = masked_fields.kinematic(np.ones(shape, bool), 1.5, 1)
    np.testing.assert_allclose(found, smooth.mean, atol=1e-9 * np.abs(box.mean).max())


def test_masked_fields_follow_theory(study):
    masked_fields = study("masked_fields")
    setting = masked_fields.QUICK[0]
    mask = masked_fields.mask_of(2, 64)
    assert ecc.euler_number(mask, connectivity=1) == -2
    assert ecc.betti_numbers(masked_fields.mask_of(3, 32)) == (1, 2, 1)
    curves = masked_fields.measure(setting, mask)[1]
    p_value = masked_fields.p_value
    assert p_value(curves, masked_fields.on_the_grid(mask, setting[2])) > 0.01
    assert p_value(curves, masked_fields.without_border(mask, setting[2])) < 1e-6


@pytest.mark.slow
def test_thresholds_of_maps(study):
    (found,) = study("map_thresholds").run(quick=True).tables.values()
    rates = {True: [], False: []}
    for row in found:
        rates[row["threshold"].startswith("smooth formula")].append(row["rate"])
    assert max(rates[True]) < 0.038
    assert 0.03 < min(rates[False]) <= max(rates[False]) < 0.07


def test_estimators(study):
    shapes, fields = study("estimators").run(quick=True).tables.values()
    discs = [row["shapes"].startswith("discs") for row in shapes]
    steps = np.where(discs, 4 / np.pi, 3 / 2).tolist()
    assert [row["exact"]["mean"] for row in shapes] == pytest.approx(steps, rel=0.05)
    of_directions = [row["4 or 13 directions"]["mean"] for row in shapes]
    assert of_directions == pytest.approx([1] * len(shapes), abs=0.02)
    means = [row["surface at 0"]["mean"] for row in fields]
    biased = [abs(mean - 1) > 0.1 for mean in means]
    assert biased == [row["border"] == "closed" for row in fields]


def test_outlines_are_found_again(study):
    objects = study("objects")
    morphology = study("morphology")
    masks, kinds = morphology.lobes(4)
    labels = morphology.mosaic(masks)
    turned = morphology.mosaic(np.rot90(masks, axes=(1, 2)))
    everything = np.arange(kinds.size)
    of_own = {}
    of_others = {}
    for name, settings in objects.FEATURES.items():
        compute = next(iter(settings.values()))
        first = compute(labels)
        second = compute(turned)
        unit = np.ones(first.shape[1])
        of_own[name] = objects.found_again(first, second, everything, unit)
        of_others[name] = objects.found_again(first, second[::-1], everything, unit)
    assert min(of_own.values()) > 0.7, of_own
    assert max(of_others.values()) < 0.3, of_others


@pytest.mark.slow
def test_textures(study):
    found = rows(study("texture_classification").run(quick=True), "Patches of 64 x 64 pixels")
    accuracy = {name: row["accuracy"]["mean"] for name, row in found.items()}
    assert accuracy["ECC"] > 0.9
    assert accuracy["ECC"] > accuracy["HOG"] + 0.1
    assert found["HOG"]["minus reference"]["mean"] < -0.1


@pytest.mark.slow
def test_letters(study):
    pytest.importorskip("HersheyFonts", reason="it has the strokes")
    found = rows(study("letters").run(quick=True), "Accuracy by distortion")
    layer, same, edgeless = (
        found[name]["low"]["mean"]
        for name in (
            "layer, learned directions",
            "DECT's method, learned directions",
            "layer, points without edges",
        )
    )
    assert layer > edgeless + 0.1 > 0.2
    assert abs(layer - same) < 0.05


def test_solar_cells(study):
    pytest.importorskip("elpv_dataset", reason="pip install elpv-dataset, 90 MB of photographs")
    found = rows(study("solar_cells").run(quick=True), "80 cells divided at random")
    assert found["ECC"]["roc_auc"]["mean"] > 0.65


def test_no_pixel_trains_and_tests(study):
    textures = study("textures")
    trials = study("trials")
    images, kinds, regions = textures.patches(64)
    places = list(zip(kinds.tolist(), regions.tolist(), strict=True))
    for trial in trials.trials(kinds, 3, seed=0, groups=regions):
        parts = [{places[i] for i in part} for part in trial]
        assert [len(part) for part in parts] == [8 * 7, 3 * 7, 5 * 7]
        assert len(set.union(*parts)) == 16 * 7
        assert sum(map(len, trial)) == len(images)
    assert len(images) == len(textures.textures()) * 64
    # These are the splits of the study of noise.
    for training in textures.splits(kinds, regions, 3, seed=0):
        known, others = (
            {places[i] for i in np.flatnonzero(part)} for part in (training, ~training)
        )
        assert not known & others
        assert len(known) == len(others)


def test_settings_are_chosen_by_validation_and_judged_by_the_test(study):
    trials = study("trials")
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1], 60)
    told = kinds[:, None] + rng.normal(0, 0.2, (120, 3))
    noise = rng.normal(size=(120, 3))
    features = {"noise": {"": noise}, "either": {"bad": noise, "good": told}}
    chosen = trials.trials(kinds, 4, seed=1)
    noise_row, either_row = trials.compare(features, kinds, chosen, "noise")
    assert either_row["setting chosen"] == "good"
    assert either_row["accuracy"]["mean"] > 0.95
    assert abs(noise_row["accuracy"]["mean"] - 0.5) < 0.15
    assert either_row["p"] < 0.01
    assert noise_row["p"] == ""


def test_intervals_and_paired_tests_without_overlap_are_students(study):
    trials = study("trials")
    values = np.random.default_rng(0).normal(0.3, 1, 12)
    student = ttest_1samp(values, 0)
    low, high = student.confidence_interval(0.95)
    found = trials.interval(values, 0.0)
    np.testing.assert_allclose([found["low"], found["high"]], [low, high])
    np.testing.assert_allclose(trials.p_value(values, 0.0), student.pvalue)
    assert trials.p_value(values, 0.4) > student.pvalue


@pytest.mark.slow
def test_shapes(study):
    outcome = study("morphology").run(quick=True)
    lobes = rows(outcome, "Shapes of equal area with 3 to 7 lobes")
    accuracy = {name: row["accuracy"]["mean"] for name, row in lobes.items()}
    assert accuracy["SECT, turned"] > 0.6
    assert accuracy["radial profile"] > accuracy["region properties"]
    digits = rows(outcome, "Handwritten digits, 10 classes")
    assert digits["ECT"]["accuracy"]["mean"] > 0.8
    masks, _ = outcome.arrays["lobes"]
    assert np.ptp(masks.sum(axis=(1, 2))) <= 1


def test_persistent_homology(study):
    outcome = study("persistent_homology").run(quick=True)
    found = rows(outcome, "Separation: 2-D, ridges")
    assert all(row["area"]["mean"] > 0.8 for row in found.values())
    plane, space = outcome.tables["Time"]
    assert plane["GUDHI, ms"] > 0  # The image is so small that the call itself takes most of it.
    assert space["GUDHI / ECC"] > 10


def test_porous_media_follow_theory(study):
    porous_media = study("porous_media")
    outcome = porous_media.run(quick=True)
    plane, space = outcome.tables.values()
    off = {(row["functional"], row["estimator"]): row["of the mean"] for row in [*space, *plane]}
    assert off["volume", "Crofton, connectivity 3"] < 0.05
    assert off["surface", "Crofton, connectivity 3"] < 0.15
    assert 0.3 < off["surface", "exact, connectivity 3"] < 0.6  # Steps have 3/2 of the surface.
    # Steps have 4/pi of the perimeter.
    assert 0.15 < off["perimeter", "exact, connectivity 2"] < 0.35
    # Grains that do not meet yet are counted one by one, each with its own size.
    few = porous_media.expected(3, np.array([1e-3]), 0.5)
    np.testing.assert_allclose(few["euler"], 0.5, rtol=1e-6)
    np.testing.assert_allclose(few["mean_breadth"], 0.5 * 2e-3, rtol=1e-6)


def conductance(mask):
    """Between plates before and behind a small mask, by the pseudoinverse of the network."""
    points = [*map(tuple, np.argwhere(mask))]
    network = np.zeros((len(points) + 2,) * 2)
    for i, point in enumerate(points):
        for j, other in enumerate(points):
            network[i, j] -= np.abs(np.subtract(point, other)).sum() == 1
        for plate, level in ((-2, 0), (-1, len(mask) - 1)):
            network[i, plate] = network[plate, i] = -2.0 * (point[0] == level)
    np.fill_diagonal(network, -network.sum(axis=1))
    between = np.zeros(len(network))
    between[-2:] = 1, -1
    return 1 / (between @ np.linalg.pinv(network, hermitian=True) @ between)


def test_conductivity_is_that_of_the_network(study):
    conductivity = study("conductivity").conductivity
    channels = np.zeros((9, 8, 8), bool)
    assert conductivity(channels) == 0
    channels[:, 1:3, 4:7] = channels[:, 5, 5] = True
    assert conductivity(channels) == pytest.approx(7 / 64)
    channels[4, 5, 5] = False
    assert conductivity(channels) == pytest.approx(6 / 64)


@pytest.mark.parametrize("seed", range(5))
def test_conductivity_of_noise(study, seed):
    mask = np.random.default_rng(seed).random((6, 5, 4)) < 0.6
    found = study("conductivity").conductivity(mask)
    assert found == pytest.approx(conductance(mask) * 6 / 20, rel=1e-4)


def test_features_of_porous_media(study):
    conductivity = study("conductivity")
    rng = np.random.default_rng(0)
    for family in conductivity.FAMILIES:
        mask = conductivity.pores(family, rng)
        found = conductivity.describe(mask)  # It compares the persistence images.
        flows = conductivity.spanning(mask)
        porosity, share = found["porosity, percolating share"]
        assert porosity == mask.mean()
        assert share == flows.sum() / mask.sum()
        points, _, spans = found["component curves"].reshape(3, -1)
        np.testing.assert_array_equal(points, found["pore sizes"])
        outside = conductivity.LEVELS < 0  # Distances are at least 1 on either side.
        assert points[outside].max() <= porosity <= points[~outside].min()
        at = np.searchsorted(conductivity.LEVELS, 0)
        assert spans[at] == flows.any()


@pytest.mark.slow
def test_regression_is_judged_by_the_test(study):
    score = study("conductivity").score
    rng = np.random.default_rng(0)
    told, noise = rng.uniform(-2, 2, (2, 90, 3))
    target = np.sin(told).sum(axis=1)
    training = np.arange(90) < 60
    assert score(told, target, training) > 0.9
    assert score(noise, target, training) < 0.2


@pytest.mark.slow
def test_noise_and_resolution(study):
    outcome = study("robustness").run(quick=True)
    noise = rows(outcome, "Noise and the curve")
    assert noise[0.0]["presmoothing 0"]["mean"] == 0
    assert noise[0.2]["presmoothing 0"]["mean"] > 20 * noise[0.2]["presmoothing 1"]["mean"]
    assert noise[0.8]["presmoothing 2"]["mean"] < noise[0.8]["presmoothing 1"]["mean"]
    classes = rows(outcome, "Noise and classification")
    assert classes[0.05]["ECC, 3 bands"]["mean"] > classes[0.05]["LBP"]["mean"] + 0.1
    resolutions = outcome.tables["Resolution and the curve"]
    off = [row["distance to full resolution"]["mean"] for row in resolutions]
    assert off == sorted(off)
    assert off[0] < 0.05


@pytest.mark.slow
def test_map_of_tasks(study):
    found = rows(study("map_of_tasks").run(quick=True), "noise of the phases")
    assert all(row["0"]["mean"] > 0.9 for row in found.values())


def test_random_phases_keep_spectra(study):
    map_of_tasks = study("map_of_tasks")
    rng = np.random.default_rng(0)
    image = map_of_tasks.cells(rng)
    found = map_of_tasks.with_phases(image, 1.0, rng)
    np.testing.assert_allclose(np.abs(np.fft.fft2(found)), np.abs(np.fft.fft2(image)), atol=1e-8)
    assert np.abs(np.corrcoef(found.ravel(), image.ravel())[0, 1]) < 0.3


def test_markers_are_judged_by_centres(study):
    lasting_classes = study("lasting_classes")
    volume = lasting_classes.nuclei(0.0, np.random.default_rng(0))
    agreement = lasting_classes.agreement
    assert agreement(volume.centres + 1, volume.centres) == 1
    assert agreement(np.repeat(volume.centres, 2, axis=0), volume.centres) == pytest.approx(2 / 3)
    assert agreement(volume.centres + 100, volume.centres) == 0
    smooth = volume.image + 0.01 * np.random.default_rng(1).random(volume.image.shape)
    lasting, height_maxima = (
        agreement(markers(smooth, 0.1), volume.centres)
        for markers in (lasting_classes.persistence, lasting_classes.maxima_of_height)
    )
    assert lasting == height_maxima > 0.95
    assert agreement(lasting_classes.maxima(smooth, 1), volume.centres) < 0.8


SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if "\nQUESTION" in path.read_text("utf-8")]
LEARNING = "classification", "letters", "loss_study", "membranes", "recovery", "segmentation"


@pytest.mark.parametrize("name", [path.stem for path in SCRIPTS])
def test_committed_results_are_those_of_the_script(study, name):
    """The Markdown holds the script's own text and the tables of the JSON file."""
    if name in LEARNING:
        pytest.importorskip("torch", reason="torch is not installed")
    outcome = study("outcome")
    stem = outcome.RESULTS / name.replace("_", "-")
    found = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    text = stem.with_suffix(".md").read_text(encoding="utf-8")
    script = study(name)
    said = script.QUESTION, script.CONCLUSION
    expected = outcome.Outcome(found["title"], script.TEXT, found["tables"], {}, *said)
    assert text == outcome.markdown(expected, outcome.command_of(name), found["machine"])
    assert len(script.CONCLUSION.split()) > 10
    if not hasattr(script, "draw"):
        return
    pixels = io.imread(outcome.IMAGES / f"evidence-{stem.name}.png")[..., :3]
    assert np.mean(pixels.min(axis=-1) < 250) > 0.02  # Something has been drawn.
    assert np.unique(pixels @ [1, 256, 65_536]).size > 100


def test_known_splits_and_merges_are_found(study):
    """All of them, and no others, of components without noise.

    Smoothing by two points joins regions that are five points apart, so that it may miss a split.
    """
    outcome = study("tracking").run(quick=True)
    assert set(outcome.tables) == {"Noise of 0 of the contrast"}
    exact = [
        row
        for row in outcome.tables["Noise of 0 of the contrast"]
        if not row["components"].startswith("more smoothing")
    ]
    assert len(exact) == 5
    columns = ("split and merge: ", "appear and vanish: ")
    found = [[row[f"{kinds}found"]["mean"] for kinds in columns] for row in exact]
    assert found == [[1, 1]] * 5
    false = [[row[f"{kinds}false a frame"]["mean"] for kinds in columns] for row in exact]
    assert false == [[0, 0]] * 5
