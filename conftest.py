"""Settings that must be in place before the package is imported, for `tests` and the doctests."""

import os
from pathlib import Path

# numba's cache on disk does not lock its index, so workers that compile at the same time could
# take each other's machine code: each has a cache of its own.
_worker = os.environ.get("PYTEST_XDIST_WORKER")
if _worker is not None:
    os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).parent / ".numba_cache" / _worker)
