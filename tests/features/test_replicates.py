"""Which curves of a unit are replicates, which are averaged, and which are none."""

import numpy as np
import pandas as pd
import pytest

from ecc_core.features import mean_band, permutation_test
from ecc_core.io import curves_of_table


def frame_of(**columns):
    """Return a table of random curves, one for each row of `columns`."""
    head = pd.DataFrame(columns)
    values = np.random.default_rng(0).integers(0, 99, (len(head), 3))
    return pd.concat([head, pd.DataFrame(values, columns=["0", "1", "2"])], axis=1)


def groups_with(**columns):
    """Return two groups of four images, two curves of each, that have these values in turn."""
    groups = []
    for letter in "ab":
        own = {name: values * 4 for name, values in columns.items()}
        images = [f"{letter}{image}.tif" for image in range(4) for _ in range(2)]
        groups.append(frame_of(input=images, **own))
    return groups


RECURRING = [
    ("channel", ["DAPI", "GFP"], "channel=DAPI"),
    ("c", [0, 1], "c=0"),
    ("t", [0, 1], "t=0"),
    ("frame", [0, 1], "frame=0"),
    ("label", [1, 5], "label=1"),
    ("stain", ["HE", "PAS"], "stain=HE"),
]


@pytest.mark.parametrize(("column", "values", "choice"), RECURRING)
def test_what_is_no_replicate(column, values, choice):
    """Values that recur in each image are no replicates; one is chosen, or it is said otherwise.

    The test of one value is that of a table which has no others.
    """
    first, second = groups_with(**{column: values})
    pattern = rf"differ in {column} \({values[0]}, {values[1]}\).*where\(\"{choice}\"\)"
    with pytest.raises(ValueError, match=pattern):
        permutation_test(first, second)
    with pytest.raises(ValueError, match=pattern):
        mean_band(first)
    with pytest.raises(ValueError, match=pattern):
        permutation_test(first, second, units=(first.input, second.input))
    chosen = [curves_of_table(group).where(choice) for group in (first, second)]
    alone = [group[group[column] == values[0]] for group in (first, second)]
    assert permutation_test(*chosen) == permutation_test(*alone)
    averaged = permutation_test(first, second, average=column)
    assert averaged.units == (4, 4)
    means = [group.groupby("input")[["0", "1", "2"]].mean() for group in (first, second)]
    alike = permutation_test(*((np.arange(3), part.to_numpy()) for part in means))
    assert averaged.pvalue == alike.pvalue


def test_channels_between_units():
    """Channels in a group are no replicates even if each image has only one of them."""
    group = frame_of(input=["a", "b", "c"], channel=["DAPI", "GFP", "DAPI"])
    with pytest.raises(ValueError, match=r"curves of a group differ in channel \(DAPI, GFP\)"):
        permutation_test(group, frame_of(input=["d", "e"], channel=["DAPI", "DAPI"]))


REPLICATES = {
    "objects": {"label": [*range(1, 7), *range(1, 4), *range(1, 9)]},
    "fields": {"field": [*range(6), *range(3), *range(8)]},
    "positions": {"x": [*(np.arange(17) / 7)]},
}


@pytest.mark.parametrize("columns", REPLICATES.values(), ids=REPLICATES)
def test_what_is_averaged(columns):
    """Objects without names, of which each image has its own number, are replicates."""
    counts = [6, 3, 8]
    images = np.repeat(["p", "q", "r"], counts).tolist()
    first, second = (frame_of(input=[f"{g}{at}" for at in images], **columns) for g in "ab")
    assert permutation_test(first, second).units == (3, 3)
    of_images = first.groupby("input")[["0", "1", "2"]].mean()
    assert mean_band(first).mean == pytest.approx(of_images.mean().to_numpy())


CONDITIONS = [
    (("label=1",), [0, 2]),
    (("label!=1",), [1, 3]),
    (("label=1.0", "well != A"), [2]),
    (("well=A", "label=2"), [1]),
]


@pytest.mark.parametrize(("conditions", "rows"), CONDITIONS)
def test_where(conditions, rows):
    """Conditions choose the rows that pandas chooses; numbers are compared as numbers."""
    frame = frame_of(well=list("AABB"), label=[1, 2, 1, 2])
    chosen = curves_of_table(frame).where(*conditions)
    np.testing.assert_array_equal(chosen.curves.values, frame.iloc[rows, 2:])


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("label", "`conditions` must be COLUMN=VALUE or COLUMN!=VALUE, got 'label'"),
        ("stain=HE", "condition on a column of the table, got 'stain=HE': it has well, label"),
        ("label=3", "none has label=3: label is 1, 2"),
    ],
)
def test_bad_conditions(condition, message):
    table = curves_of_table(frame_of(well=list("AABB"), label=[1, 2, 1, 2]))
    with pytest.raises(ValueError, match=message):
        table.where(condition)


def test_equality_of_tests():
    """Results of the same seed are equal, those of other numbers are not."""
    rng = np.random.default_rng(0)
    first, second = ((np.arange(3), rng.normal(size=(4, 3))) for _ in range(2))
    one = permutation_test(first, second, rng=0)
    assert one == permutation_test(first, second, rng=0)
    assert one != permutation_test(second, first, rng=0)
    assert one != one._replace(pvalues=one.pvalues.astype(np.float32))
    assert one != "test"


LEAST = [
    ((2, 2), False, 2 / 6),
    ((3, 4), False, 1 / 35),
    ((4, 4), True, 2 / 16),
    ((1, 1, 1), False, 1),
]


@pytest.mark.parametrize(("sizes", "paired", "least"), LEAST)
def test_the_smallest_p_value(sizes, paired, least):
    """Groups that do not overlap have the smallest p-value that so few curves can have."""
    rng = np.random.default_rng(0)
    groups = [
        (np.arange(3), rng.normal(100 * number**2, 1, (size, 3)))
        for number, size in enumerate(sizes)
    ]
    found = permutation_test(*groups, paired=paired)
    assert found.pvalue == pytest.approx(least)
    assert found.least_pvalue == pytest.approx(least)
    assert found.is_least
    assert not found._replace(pvalue=1.5).is_least
