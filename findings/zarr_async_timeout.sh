#!/usr/bin/env bash
# The setting `async.timeout` of zarr limits how long groups are waited for, and not arrays: values in a store that does not
# answer are waited for without end, whatever the setting is.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "zarr==3.1.6"
"$folder/env/bin/python" - <<'PYTHON'
import asyncio
import time
from importlib.metadata import version

import zarr
from zarr.storage import MemoryStore, WrapperStore

ANSWER = 3  # seconds after which the store answers
TIMEOUT = 0.5


class SlowStore(WrapperStore):
    async def get(self, key, prototype, byte_range=None):
        await asyncio.sleep(ANSWER if self.slow else 0)
        return await self._store.get(key, prototype, byte_range)


print("zarr", version("zarr"))
store = SlowStore(MemoryStore())
store.slow = False
group = zarr.create_group(store)
array = group.create_array("image", shape=(4,), chunks=(4,), dtype="u1")
array[:] = 7
store.slow = True


def outcome(function):
    start = time.perf_counter()
    try:
        with zarr.config.set({"async.timeout": TIMEOUT}):
            found = function()
    except TimeoutError:
        found = "TimeoutError"
    return found, time.perf_counter() - start


of_group, seconds_of_group = outcome(lambda: "image" in group)
of_array, seconds_of_array = outcome(lambda: array[:].tolist())
print(f"a member of the group: {of_group} after {seconds_of_group:.1f} s")
print(f"values of the array: {of_array} after {seconds_of_array:.1f} s")
assert of_group == "TimeoutError" and seconds_of_group < ANSWER
assert of_array == [7, 7, 7, 7] and seconds_of_array >= ANSWER
print(f"async.timeout of {TIMEOUT} s does not end the reading of an array, which takes {ANSWER} s")
PYTHON
