#!/usr/bin/env bash
# dask.cache.Cache, which napari registers for dask layers, keeps values of tasks and puts them into later graphs. dask takes a
# value that is a named tuple for a task there and calls its first field, so that a second computation of the same value
# fails. A plain tuple and no cache are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "dask==2026.8.0" "cachey==0.2.1"
"$folder/env/bin/python" - <<'PYTHON'
import time
from collections import namedtuple
from contextlib import nullcontext
from importlib.metadata import version

import dask
from dask.cache import Cache

print({name: version(name) for name in ("dask", "cachey")})
Counts = namedtuple("Counts", "components holes")


def count_named():
    time.sleep(0.1)  # the cache keeps what takes long
    return Counts(3, 1)


def count_plain():
    time.sleep(0.1)
    return 3, 1


def euler(counts):
    components, holes = counts
    return components - holes


def double(counts):
    return [2 * count for count in counts]


def outcome(function, context):
    counts = dask.delayed(function, pure=True)()
    with context:
        first = dask.delayed(euler)(counts).compute(scheduler="sync")
        try:
            second = dask.delayed(double)(counts).compute(scheduler="sync")
        except TypeError as error:
            second = f"TypeError: {error}"
    return first, second


found = {
    (function.__name__, kind): outcome(function, context)
    for function in (count_plain, count_named)
    for kind, context in (("no cache", nullcontext()), ("cache", Cache(1e9)))
}
for case, values in found.items():
    print(*case, *values, sep=", ")
right = (2, [6, 2])
assert found["count_plain", "no cache"] == found["count_plain", "cache"] == right
assert found["count_named", "no cache"] == right
assert found["count_named", "cache"] == (2, "TypeError: 'Counts' object is not callable")
PYTHON
