"""The label image and the mask that belong to each image."""

import csv
import os
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ecc_core._io.open import IMAGE_SUFFIXES, is_there
from ecc_core.errors import InputFileError

STEM_ENDS = (*IMAGE_SUFFIXES, ".ome", ".gz")
MOST_NAMED = 3


def pair_of(name: str, given: str | None, image: str) -> str | None:
    """Return the path that --labels or --mask gives for an image; "" if it says nothing of it.

    An option is a path, with ``{input}``, ``{stem}`` and ``{name}``; ``OLD=NEW``; or a table.
    """
    if given is None:
        return None
    if given.lower().endswith(".csv"):
        return _table(given, name).get(os.path.abspath(image), "")  # noqa: PTH100
    old, is_rule, new = given.partition("=")
    if is_rule and not is_there(given):
        return image.replace(old, new) if old and old in image else ""
    stem = image
    while (suffix := Path(stem).suffix.lower()) in STEM_ENDS:
        stem = stem[: -len(suffix)]
    parts = {"input": image, "stem": stem, "name": Path(stem).name}
    return re.sub("{(input|stem|name)}", lambda found: parts[found[1]], given)


@lru_cache
def _table(path: str, name: str) -> Mapping[str, str]:
    """Return what a table says of each image, by the absolute path of the image."""
    with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
        rows = csv.DictReader(file)
        if not {"input", name} <= {*(rows.fieldnames or ())}:
            found = ", ".join(rows.fieldnames or ()) or "none"
            raise InputFileError(f"{path}: must have the columns input and {name}, got {found}")
        return {os.path.abspath(row["input"]): row[name] or "" for row in rows}  # noqa: PTH100


def pairs_of(images: Sequence[str], arguments: Namespace) -> list[str]:
    """Return the labels and masks of all images; raise an error that names some of the missing."""
    found: list[str] = []
    for name in ("labels", "mask"):
        given = getattr(arguments, name, None)
        if not isinstance(given, str):  # --labels of `ecc transform` has no value
            continue
        pairs = {image: pair_of(name, given, image) or "" for image in images}
        words = [
            f"{path}: no such file or folder"
            if path
            else f"{image}: --{name} {given} does not name it"
            for image, path in pairs.items()
            if not (path and is_there(path))
        ]
        if len(words) > 1:
            some = ", ".join(words[:MOST_NAMED])
            more = f", and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
            raise InputFileError(
                f"no {name} for {len(words)} of {len(images)} images: {some}{more}"
            )
        if words:
            raise InputFileError(words[0])
        found += pairs.values()
    return found
