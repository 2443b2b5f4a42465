"""``ecc compare``: the numbers of the library, and what it says of them."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.features import permutation_test


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    at = np.linspace(0, 1, 11)
    rows = []
    for treatment, well in [("control", i) for i in range(4)] + [("drug", i) for i in range(4)]:
        shift = rng.normal()
        for _ in range(3):
            values = rng.normal(shift, 1, at.size) + 30 * (treatment == "drug") * (at > 0.75)
            head = {"treatment": treatment, "well": f"{treatment[0]}{well}"}
            numbers = zip(map(str, at.tolist()), values.tolist(), strict=True)
            rows.append(head | dict(numbers))
    path = tmp_path / "t.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_wells_are_permuted(table, tmp_path, say):
    out = tmp_path / "test.json"
    plot = tmp_path / "test.png"
    flags = ["--by", "treatment", "--unit", "well", "--out", str(out), "--plot", str(plot)]
    text = say("compare", table, *flags)
    assert "control (4 x well, 12 curves) and drug (4 x well, 12 curves)" in text
    assert "all 70 permutations, by well" in text
    assert "thresholds that differ (p <= 0.05, corrected): 0.8 to 1\n" in text
    assert "no result can be significant" not in text
    found = json.loads(out.read_text())
    wells = pd.read_csv(table).groupby(["treatment", "well"]).mean()
    first = wells.loc["control"].to_numpy()
    second = wells.loc["drug"].to_numpy()
    np.testing.assert_allclose(
        found["columns"]["difference"], first.mean(axis=0) - second.mean(axis=0)
    )

    def distance(a, b):
        gap = a.mean(axis=0) - b.mean(axis=0)
        return np.sqrt((gap[:-1] ** 2 * 0.1).sum())

    both = np.concatenate([first, second])
    groups = [np.isin(range(8), own) for own in itertools.combinations(range(8), 4)]
    null = np.array([distance(both[own], both[~own]) for own in groups])
    observed = distance(first, second)
    assert found["metadata"]["pvalue"] == np.mean(null >= observed - 1e-9)
    assert found["metadata"]["statistic"] == pytest.approx(observed)
    assert found["metadata"]["settings"]["unit"] == "well"
    assert plot.stat().st_size > 10_000


def test_too_few_units(table, say):
    text = say("compare", table, "--by", "well", "--groups", "c0,d1", "--unit", "well")
    assert "p is at least 1" in text
    assert "corrected): none" in text


def test_groups_of_one_curve(tmp_path, say):
    path = tmp_path / "t.csv"
    path.write_text("well,1,2\na,3,4\nb,5,6\n")
    assert "a (1 curve) and b (1 curve)\n" in say("compare", str(path), "--by", "well")


def test_more_than_two_groups(table, say):
    groups = ["--by", "well", "--groups", "c0,c1,d0", "--permutations", "99"]
    text = say("compare", table, *groups)
    assert "c0 (3 curves), c1 (3 curves) and d0 (3 curves)\n" in text
    assert "random 99 permutations, by curve" in text
    groups[3] = "c0,c1,c2"
    assert "p is at least 1" in say("compare", table, *groups[:4], "--unit", "well")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--by", "dose"],
            "--by must be a column of .*, got 'dose': it has treatment, well .* added",
        ),
        (["--by", "treatment", "--groups", "drug"], "--groups must name two or more .*got drug"),
        (["--by", "well", "--groups", "c0,c1,d0", "--unit", "well", "--paired"], "--paired must"),
        (["--by", "treatment", "--groups", "drug,placebo"], "got 'placebo'"),
        (["--by", "treatment", "--measure", "b0"], "--measure must be one of 'euler', got 'b0'"),
        (
            ["--by", "treatment", "--measure", "all"],
            "--measure must be 'euler' or left out, got 'a",
        ),
        (["--by", "treatment", "--unit", "animal"], "--unit must be a column"),
        (["--by", "treatment", "--paired"], "--paired needs --unit"),
        (["--by", "treatment", "--unit", "well", "--paired"], "both groups"),
    ],
)
def test_bad_input(table, refuse, flags, message):
    error = refuse("compare", table, *flags)
    assert error.count("\n") == 1
    assert re.search(message, error)


@pytest.fixture
def folders(tmp_path):
    """Images in two folders, and a table of their functionals and components."""
    images = np.random.default_rng(1).integers(0, 9, (8, 12, 12))
    images //= np.repeat([1, 3], 4)[:, None, None]
    for number, image in enumerate(images):
        folder = tmp_path / ("one" if number < 4 else "two")
        folder.mkdir(exist_ok=True)
        np.save(folder / f"{number}.npy", image)
    flags = f"--thresholds 0,1,2,3,4,5,6,7,8 --minkowski exact --components --out {tmp_path}/t.csv"
    assert main(["batch", str(tmp_path / "*/*.npy"), *flags.split()]) == 0
    return images, tmp_path / "t.csv"


def test_all_functionals_at_once(folders, tmp_path, say):
    images, table = folders
    out = tmp_path / "test.csv"
    plot = tmp_path / "test.png"
    flags = ["--by", "folder", "--measure", "all", "--out", out, "--plot", plot]
    text = say("compare", table, *flags)
    first, second = (ecc.minkowski_curves(i, range(9), axis=(1, 2)) for i in np.split(images, 2))
    test = permutation_test(first, second, functional="all")
    assert f"p = {test.pvalue:.4g} (all 70 permutations" in text
    found = pd.read_csv(out)
    names = ["area", "perimeter", "euler"]
    assert found["measure"].tolist() == np.repeat(names, 9).tolist()
    np.testing.assert_allclose(found["pvalue"], test.pvalues.ravel())
    np.testing.assert_allclose(found["difference"], test.difference.ravel())
    expected = []
    for name, pvalues in zip(names, test.pvalues, strict=True):
        which = "none" if (pvalues > 0.05).all() else r"\d"
        expected.append(rf"differ in {name} \(p <= 0.05, corrected\): {which}")
    assert [line for line in expected if not re.search(line, text)] == []
    assert plot.stat().st_size > 10_000


def test_all_curves_of_components_at_once(tmp_path, say):
    images = np.random.default_rng(1).integers(0, 9, (8, 12, 12))
    curves = ecc.component_curves(images, np.arange(9), axis=(1, 2))
    euler = ecc.euler_curve(images, np.arange(9), axis=(1, 2)).by_name()
    columns = {k: v.ravel() for k, v in (euler | curves.by_name()).items()}
    heads = {"group": np.repeat(["a", "b"], 4 * 9), "image": np.repeat(np.arange(8), 9)}
    path = tmp_path / "t.csv"
    heads["threshold"] = np.tile(np.arange(9), 8)
    pd.DataFrame(heads | columns).to_csv(path, index=False)
    text = say("compare", str(path), "--by", "group", "--measure", "all")
    parts = (curves._replace(values=part, kept=(144,) * 4) for part in np.split(curves.values, 2))
    test = permutation_test(*parts, functional="all")
    assert f"p = {test.pvalue:.4g} (all 70 permutations" in text
    for_each = [
        f"thresholds that differ in {name} "
        for name in ("points", "largest", "spanning_0", "spanning_1")
    ]
    assert [words for words in for_each if words not in text] == []


def test_a_measure_of_components(folders, tmp_path, say, refuse):
    images, table = folders
    plot = tmp_path / "t.png"
    text = say("compare", table, "--by", "folder", "--measure", "points", "--plot", plot)
    assert "one (4 curves) and two (4 curves)" in text
    curves = [ecc.component_curves(image, range(9)) for image in images]
    test = permutation_test(curves[:4], curves[4:], functional="points")
    assert f"p = {test.pvalue:.4g} (all 70 permutations" in text
    assert plot.stat().st_size > 10_000
    assert "it has input, folder (" in refuse("compare", table, "--by", "group")


@pytest.mark.parametrize(
    ("columns", "measure", "names"),
    [
        ("1,b0 1,b1 1,area 1,perimeter 1", "all", "'euler', 'b0', 'b1', 'area', 'perimeter'"),
        ("1,b2 1", "b0", "'euler'"),
        ("1,b0 1,b2 1", "b2", "'euler'"),
        ("1,points 1", "points", "'euler'"),
        ("1,points 1,largest 1", "largest", "'euler'"),
        ("1,perimeter 1,b0 1", "perimeter", "'euler', 'b0'"),
        ("area 1,perimeter 1,b0 1", "area", "'b0'"),
    ],
)
def test_which_measures_a_table_has(tmp_path, refuse, columns, measure, names):
    path = tmp_path / "got 'minkowski', got.csv"
    row = ",".join("1" * len(columns.split(",")))
    path.write_text(f"well,{columns}\na,{row}\nb,{row}\n")
    given = ("compare", path, "--by", "well", "--measure", measure)
    more = " of a table with several kinds of curves" * (measure == "all")
    assert f"must be one of {names}, got {measure!r}{more}" in refuse(*given)


@pytest.mark.parametrize("column", ["treatment", "well"])
def test_empty_cells(table, refuse, column):
    frame = pd.read_csv(table)
    frame.loc[3, column] = None
    frame.to_csv(table, index=False)
    assert f"for each curve, but {column} is empty for 1" in refuse(
        "compare", table, "--by", "treatment", "--unit", "well"
    )


def test_no_table(tmp_path, refuse):
    assert "no such file" in refuse("compare", tmp_path / "none.csv", "--by", "x")
