"""Paths of inputs: patterns, lists, and the labels and masks that belong to an image."""

import csv
import glob
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ecc_core._io.files import is_address, matching_addresses
from ecc_core._io.meshes import MESH_SUFFIXES
from ecc_core._io.open import CONTAINER_SUFFIXES, IMAGE_SUFFIXES, is_there
from ecc_core._io.readers.folders import natural_key
from ecc_core._io.write import is_own_figure
from ecc_core.errors import InputFileError

STDIN = "-"
STEM_ENDS = (*IMAGE_SUFFIXES, *MESH_SUFFIXES, ".ome", ".gz")
MOST_NAMED = 3


def matching_paths(patterns: Iterable[str]) -> list[str]:
    """Return the distinct paths that match patterns, in order. Each pattern must match one."""
    paths: dict[str, None] = {}
    for pattern in patterns:
        if pattern == STDIN or (is_there(pattern) and not is_address(pattern)):
            found = [pattern]
        else:
            found = matching_addresses(pattern) if is_address(pattern) else _matches(pattern)
        if not found:
            raise InputFileError(f"{pattern}: no such file or folder")
        paths |= dict.fromkeys(found)
    return list(paths)


def _matches(pattern: str) -> list[str]:
    """Return the paths that match a pattern, which may lead into files of several arrays."""
    for suffix in CONTAINER_SUFFIXES:
        files, inside, name = pattern.partition(f"{suffix}/")
        if inside:
            return [f"{file}/{name}" for file in _sorted(files + suffix)]
    return _sorted(pattern)


def _sorted(pattern: str) -> list[str]:
    """Return the paths that match a pattern, without figures that were written beside images."""
    found = sorted(glob.glob(pattern), key=natural_key)  # noqa: PTH207
    figures = [path for path in found if Path(path).is_file() and is_own_figure(path)]
    for path in figures:
        sys.stderr.write(f"ecc: {path} left out, a figure that ecc drew\n")
    return [path for path in found if path not in figures]


def pair_of(name: str, given: str | None, image: str) -> str | None:
    """Return the path that --labels or --mask gives for an image, "" if it gives none.

    `given` is a path, which may contain ``{input}``, ``{stem}`` and ``{name}``; or ``OLD=NEW``; or
    a table.
    """
    if given is None:
        return None
    if given.lower().endswith(".csv"):
        return _table(given, name).get(os.path.abspath(image), "")  # noqa: PTH100
    old, is_rule, new = given.partition("=")
    if is_rule and not is_there(given):
        return image.replace(old, new) if old and old in image else ""
    stem = stem_of(image)
    parts = {"input": image, "stem": stem, "name": Path(stem).name}
    return re.sub("{(input|stem|name)}", lambda found: parts[found[1]], given)


def stem_of(path: str) -> str:
    """Return a path without the suffixes of images."""
    suffix = Path(path).suffix
    while suffix.lower() in STEM_ENDS:
        path = path[: -len(suffix)]
        suffix = Path(path).suffix
    return path


@lru_cache
def _table(path: str, name: str) -> Mapping[str, str]:
    """Return the column `name` of a table, by the absolute paths of images."""
    with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
        rows = csv.DictReader(file)
        if not {"input", name} <= {*(rows.fieldnames or ())}:
            found = ", ".join(rows.fieldnames or ()) or "none"
            raise InputFileError(f"{path}: must have the columns input and {name}, got {found}")
        return {os.path.abspath(row["input"]): row[name] or "" for row in rows}  # noqa: PTH100


def pairs_of(images: Sequence[str], arguments: Namespace) -> list[str]:
    """Return the labels and masks of all images; raise an error if any is missing."""
    found: list[str] = []
    for name in ("labels", "mask"):
        given = getattr(arguments, name, None)
        if not isinstance(given, str):  # The option --labels of `ecc transform` is a flag.
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


def single_path(patterns: Iterable[str], rule: str) -> str:
    """Return the only path that matches patterns. `rule` is the reason why there must be one."""
    path, *others = matching_paths(patterns)
    if others:
        raise InputFileError(f"{others[0]}: {rule}, got more")
    return path
