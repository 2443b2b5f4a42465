"""The arguments of layers and losses come in one order, by name after the first ones."""

import inspect

import pytest

pytest.importorskip("torch")

from ecc_core import nn

ORDER = (
    # Levels.
    *("count", "thresholds", "heights", "range", "sharpness", "p"),
    # What is computed at them.
    *("directions", "direction_scale", "scale", "min_persistence", "extension"),
    *("window", "stride", "padding"),
    # Sets, and the grid.
    *("superlevel", "connectivity", "spacing", "n_spatial"),
    # Results.
    *("normalize", "hard"),
    # What is learned.
    *("learn_thresholds", "learn_heights", "learn_sharpness"),
    *("learn_directions", "learn_direction_scale", "learn_scale"),
    # The memory of parameters.
    *("device", "dtype"),
)
LAYERS = [name for name in nn.__all__ if name.endswith(("Layer", "Map"))]
BY_POSITION = {"EulerTransformLayer": 2, "SimplicialTransformLayer": 2}


def arguments_of(name):
    return list(inspect.signature(getattr(nn, name)).parameters.values())


@pytest.mark.parametrize("name", LAYERS)
def test_keyword_arguments_are_in_order(name):
    """Transforms are called with directions before their levels, as the functions are."""
    rest = arguments_of(name)[BY_POSITION.get(name, 1) :]
    places = [ORDER.index(argument.name) for argument in rest]
    assert places == sorted(places)


@pytest.mark.parametrize("name", LAYERS)
def test_arguments_after_the_first_ones_have_names(name):
    by_position = [a.name for a in arguments_of(name) if a.kind is not a.KEYWORD_ONLY]
    assert len(by_position) == BY_POSITION.get(name, 1)


@pytest.mark.parametrize("name", LAYERS)
def test_arguments_are_documented_in_order(name):
    """All arguments are there, several on a line where they belong together."""
    text = inspect.getdoc(getattr(nn, name)).partition("Parameters\n----------\n")[2]
    text = text.partition("\n\n")[0]
    entries = [line.partition(" : ")[0] for line in text.splitlines() if line[0] != " "]
    documented = [argument for entry in entries for argument in entry.split(", ")]
    given = [argument.name for argument in arguments_of(name)]
    assert sorted(documented) == sorted(given)
    firsts = [given.index(entry.split(", ")[0]) for entry in entries]
    assert firsts == sorted(firsts)
