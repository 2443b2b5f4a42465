"""Requests and bytes of `ecc stack` on a sharded Zarr volume in a local S3 store.

    pip install "moto[server]" s3fs
    python -m benchmarks.object_store

The store is moto's server in this process. Every request for an object is counted; with
`--busy N`, the first N requests for each shard are answered with 503 SlowDown. Ideal is one request
for each shard, and its bytes.
"""

import argparse
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import boto3
import numpy as np
from moto.server import ThreadedMotoServer

from benchmarks.periodic_volumes import STORAGES, curve_of, make, truth
from benchmarks.scale import assert_true
from ecc_core._cli import block_sizes
from ecc_core.cli import main as ecc_command

SECRET = "not-to-be-shown"
PERIODS = (2, 2, 2)


class Counted:
    """A WSGI application that counts the requests for shards, and lets some of them fail."""

    def __init__(self, application: Any, busy: int) -> None:
        self.application = application
        self.busy = busy
        self.methods: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.sent = 0

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        path = environ["PATH_INFO"]
        method = environ["REQUEST_METHOD"]
        if "/c/" not in path:
            return self.application(environ, start)
        if method == "GET" and self.failed[path] < self.busy:
            self.failed[path] += 1
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>busy</Message></Error>"]
        self.methods[method] += 1
        found = list(self.application(environ, start))
        if method == "GET":
            self.sent += sum(map(len, found))
        return found


def stored(folder: Path, period: np.ndarray) -> tuple[int, int]:
    """Copy a volume to the store; return its shards and their bytes."""
    storage = STORAGES["zstd"]._replace(chunk=len(period) // 8)
    path = make(folder / "a.zarr", period, periods=PERIODS, shard=len(period) // 2, storage=storage)
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    client.create_bucket(Bucket="bucket")
    files = [file for file in path.rglob("*") if file.is_file() and file.name != "complete"]
    for file in files:
        client.upload_file(str(file), "bucket", str(file.relative_to(folder)))
    shards = [file.stat().st_size for file in files if "c" in file.relative_to(path).parts]
    return len(shards), sum(shards)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--side", type=int, default=128)
    arguments = parser.parse_args()
    server = ThreadedMotoServer(port=0)
    server.start()
    counted = Counted(server._server.app, arguments.busy)
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    period = np.random.default_rng(0).integers(0, 256, (arguments.side,) * 3, dtype=np.uint8)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards, size = stored(folder, period)
        server._server.app = counted
        out = folder / "curve.csv"
        block_sizes.BLOCK_BYTES = 1  # Each shard becomes a block.
        assert ecc_command(["stack", "s3://bucket/a.zarr", "--out", str(out)]) == 0
        assert_true(out, truth(curve_of, period, PERIODS, "closed"))
    server.stop()
    rows = {
        "busy": arguments.busy,
        "shards": shards,
        "bytes": size,
        "requests": dict(counted.methods),
        "sent": counted.sent,
        "failed": counted.failed.total(),
        "requests / shards": counted.methods["GET"] / shards,
        "sent / bytes": counted.sent / size,
    }
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
