"""Sizes of memory in messages: as users write them, and enough where they are a least size."""

from argparse import ArgumentTypeError

import pytest

from ecc_core._cli.argument_types import given_memory, least_memory, memory

SIZES = [1, 80, 1023, 1024, 1025, 20_000, 58_500, 1 << 20, (1 << 20) - 1, (1 << 30) + 1, 3 << 40]


@pytest.mark.parametrize("text", ["1", "20K", "1.5M", "600M", "4G", "2T"])
def test_given_sizes_come_back(text):
    assert given_memory(memory(text)) == text


@pytest.mark.parametrize("size", SIZES)
def test_the_least_size_is_enough(size):
    assert size <= memory(least_memory(size)) <= 1.1 * size


@pytest.mark.parametrize("size", SIZES)
def test_given_sizes_are_not_exaggerated(size):
    assert 0.9 * size <= memory(given_memory(size)) <= size


@pytest.mark.parametrize(
    "text", ["0", "-1", "abc", "inf", "1e3", "0.0001K", "9" * 400, "9" * 400 + "T"]
)
def test_what_is_no_size_is_refused(text):
    """Also so many digits that they are no float."""
    with pytest.raises(ArgumentTypeError, match="must be a size such as 600M or 4G"):
        memory(text)
