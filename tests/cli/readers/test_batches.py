"""A batch finishes, whatever one file does."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from io_helpers import LEVELS, noise, rows_of

from ecc_core._cli import batch
from ecc_core.cli import main

THRESHOLDS = ",".join(map(str, LEVELS))


class TestBatch:
    def test_it_finishes_whatever_one_image_does(self, tmp_path, monkeypatch, capsys):
        for name in "abc":
            np.save(tmp_path / f"{name}.npy", noise(9, 8))
        compute = batch.curves_of

        def fail(stack: Any, *rest: Any, **named: Any) -> Any:
            if Path(stack.blocks.image.source.path).stem == "b":
                raise ZeroDivisionError("division by zero")
            return compute(stack, *rest, **named)

        monkeypatch.setattr(batch, "curves_of", fail)
        out = tmp_path / "out.csv"
        command = ["batch", str(tmp_path / "*.npy"), "--out", str(out), "--thresholds", THRESHOLDS]
        assert main(command) == 1
        assert capsys.readouterr().err == f"ecc: failed: {tmp_path / 'b.npy'}: division by zero\n"
        assert [Path(row["input"]).stem for row in rows_of(out)] == ["a", "c"]

    def test_names_that_are_not_unicode(self, tmp_path):
        path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npy")
        np.save(path, noise(9, 8))
        for suffix in (".csv", ".json", ".parquet"):
            out = tmp_path / f"out{suffix}"
            command = ["batch", path, "--out", str(out), "--thresholds", THRESHOLDS]
            assert main(command) == 0
            assert out.stat().st_size > 0
        assert os.fsencode(path) in (tmp_path / "out.csv").read_bytes()
