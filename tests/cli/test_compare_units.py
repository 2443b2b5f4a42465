"""What ``ecc compare`` takes for a unit and for a group, and columns from another table."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from ecc_core.features import permutation_test

AT = ["0", "1", "2"]


def write(path, **columns):
    """Write a table of random curves with these columns; return it."""
    head = pd.DataFrame(columns)
    values = np.random.default_rng(0).integers(0, 99, (len(head), 3))
    table = pd.concat([head, pd.DataFrame(values, columns=AT)], axis=1)
    table.to_csv(path, index=False)
    return table


@pytest.fixture
def stained(tmp_path):
    """Two channels of four images in each of two groups."""
    images = [f"{group}{number}.tif" for group in "ab" for number in range(4) for _ in range(2)]
    groups = [name[0] for name in images]
    return write(tmp_path / "t.csv", input=images, group=groups, channel=["DAPI", "GFP"] * 8)


@pytest.mark.parametrize("more", [[], ["--unit", "input"], ["--unit", "group"]])
def test_channels_are_no_replicates(stained, tmp_path, refuse, more):
    """Channels are neither averaged nor permuted, whatever the unit is."""
    error = refuse("compare", tmp_path / "t.csv", "--by", "group", *more)
    assert "differ in channel (DAPI, GFP)" in error
    assert "--where 'channel=DAPI', or give --average channel" in error


@pytest.mark.parametrize("condition", ["channel=GFP", "channel!=DAPI"])
def test_where(stained, tmp_path, say, condition):
    """The test of one channel is that of its rows alone."""
    out = tmp_path / "o.json"
    text = say(
        "compare", tmp_path / "t.csv", "--by", "group", "--where", condition, "--out", str(out)
    )
    assert "a (4 curves) and b (4 curves)" in text
    one = stained[stained.channel == "GFP"]
    first, second = ((np.arange(3), one.loc[one.group == g, AT].to_numpy()) for g in "ab")
    found = json.loads(out.read_text())["metadata"]
    assert found["pvalue"] == permutation_test(first, second).pvalue
    assert found["difference"] == "a \N{MINUS SIGN} b"
    assert found["settings"]["where"] == [condition]


def test_average(stained, tmp_path, say):
    """The text says what was averaged within a unit."""
    text = say("compare", tmp_path / "t.csv", "--by", "group", "--average", "channel")
    assert "a (4 x input, 8 curves) and b (4 x input, 8 curves)" in text
    assert "averaged within each input: 2 curves, over channel" in text


def test_objects_are_averaged(tmp_path, say):
    """Objects are averaged within their image, and it is said."""
    counts = [3, 5, 4, 6]
    images = np.repeat(["a0", "a1", "b0", "b1"], counts)
    labels = np.concatenate([np.arange(1, count + 1) for count in counts])
    write(tmp_path / "t.csv", input=images, group=[name[0] for name in images], label=labels)
    text = say("compare", tmp_path / "t.csv", "--by", "group")
    assert "a (2 x input, 8 curves) and b (2 x input, 10 curves)" in text
    assert "averaged within each input: 3 to 6 curves, over label (objects without names" in text


@pytest.fixture
def animals(tmp_path):
    """Images of animals s0, s1, ... in the folder of each treatment."""
    paths = [
        f"{group}/s{animal}/{image}.tif"
        for group in ("control", "drug")
        for animal in range(4)
        for image in range(2)
    ]
    return write(tmp_path / "t.csv", input=paths)


def test_folders_of_the_same_name(animals, tmp_path, say):
    """Folders are told apart by their whole paths, and are units of their own."""
    path = tmp_path / "t.csv"
    text = say("compare", path, "--by", "folder")
    assert "control/s0 (2 curves), control/s1 (2 curves)" in text
    assert "drug/s3 (2 curves)" in text
    treatments = [name.split("/")[0] for name in animals.input]
    animals.assign(group=treatments).to_csv(path, index=False)
    text = say("compare", path, "--by", "group", "--unit", "folder")
    assert "control (4 x folder, 8 curves) and drug (4 x folder, 8 curves)" in text


def test_wells_of_several_plates(tmp_path, say):
    """Well A1 of another plate is another unit."""
    plates = ["p", "p", "q", "q"] * 2
    wells = ["A1", "A2"] * 4
    groups = ["a"] * 2 + ["b"] * 2 + ["a"] * 2 + ["b"] * 2
    write(tmp_path / "t.csv", plate=plates, well=wells, group=groups)
    text = say("compare", tmp_path / "t.csv", "--by", "group", "--unit", "well")
    assert "a (2 x well, 4 curves) and b (2 x well, 4 curves)" in text


JOINED = {
    "paths": lambda paths: {"input": paths},
    "names": lambda paths: {"name": [path.rsplit("/")[-1] for path in paths]},
    "stems": lambda paths: {"name": [path.rsplit("/")[-1][:-4] for path in paths]},
}


@pytest.mark.parametrize("keys", JOINED.values(), ids=JOINED)
def test_join(tmp_path, say, keys):
    """Treatments of another table are those of the rows with the same image."""
    paths = [f"day/{number}.tif" for number in range(6)]
    curves = write(tmp_path / "t.csv", input=paths)
    drugs = ["x", "y", "x", "y", "y", "x"]
    order = [5, 3, 1, 0, 2, 4]
    meta = pd.DataFrame({**keys([paths[k] for k in order]), "drug": [drugs[k] for k in order]})
    meta.to_csv(tmp_path / "meta.csv", index=False)
    out = tmp_path / "o.json"
    flags = ["--by", "drug", "--join", str(tmp_path / "meta.csv"), "--out", str(out)]
    assert "x (3 curves) and y (3 curves)" in say("compare", tmp_path / "t.csv", *flags)
    values = curves[AT].to_numpy()
    drug = np.array(drugs)
    difference = values[drug == "x"].mean(axis=0) - values[drug == "y"].mean(axis=0)
    found = json.loads(out.read_text())["columns"]["difference"]
    np.testing.assert_allclose(found, difference)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (
            {"animal": ["1"], "drug": ["x"]},
            r"--join .* one of the columns .*, got \['animal', 'drug'\]",
        ),
        (
            {"input": ["a/0.tif"] * 2, "drug": ["x", "y"]},
            "one row for each of .*input.*, got several",
        ),
        ({"name": ["0"], "drug": ["x"]}, "the name '0' is that of a/0.tif and b/0.tif"),
        ({"input": ["a/0.tif"], "drug": ["x"]}, "--by must have a value .* drug is empty for 1"),
        (
            {"input": ["0.tif"], "drug": ["x"]},
            "none has their input: the first curve has 'a/0.tif', the first row '0.tif'",
        ),
        ({"input": [], "drug": []}, "meta.csv must have a row for some of the curves, got no rows"),
    ],
)
def test_tables_that_do_not_join(tmp_path, refuse, meta, message):
    write(tmp_path / "t.csv", input=["a/0.tif", "b/0.tif"])
    pd.DataFrame(meta).to_csv(tmp_path / "meta.csv", index=False)
    flags = ["--by", "drug", "--join", str(tmp_path / "meta.csv")]
    assert re.search(message, refuse("compare", tmp_path / "t.csv", *flags))


def test_messages_name_groups_and_options(tmp_path, refuse):
    """A unit that is in one group only is named with the groups of the table."""
    write(tmp_path / "t.csv", animal=["k", "l", "k", "m"], dose=["low", "low", "high", "high"])
    flags = ["--by", "dose", "--unit", "animal", "--paired"]
    error = refuse("compare", tmp_path / "t.csv", *flags)
    assert "--unit must have each unit in both groups" in error
    assert "'m' in high only, not in low" in error or "'l' in low only, not in high" in error


def test_the_smallest_p_value_is_said(tmp_path, say):
    """Groups that do not overlap have the smallest p-value of their sizes."""
    table = write(tmp_path / "t.csv", group=list("aaaabbbb"))
    table.loc[table.group == "b", AT] += 1000
    table.to_csv(tmp_path / "t.csv", index=False)
    text = say("compare", tmp_path / "t.csv", "--by", "group")
    assert "p = 0.02857 (all 70 permutations, by curve), the smallest that these units" in text
    assert "largest effect there (a \N{MINUS SIGN} b)" in text
