#!/usr/bin/env bash
# imaris-ims-file-reader rounds the size of voxels to three decimals by default: 0.0325 um becomes 0.033.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "imaris-ims-file-reader==0.1.8" "numpy==2.4.6" "h5py==3.16.0"
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import h5py
import numpy as np
from imaris_ims_file_reader.ims import ims


def text(value):
    return np.frombuffer(str(value).encode(), "S1")


with h5py.File("a.ims", "w") as file:
    info = file.create_group("DataSetInfo/Image")
    channel = file.create_group("DataSet/ResolutionLevel 0/TimePoint 0/Channel 0")
    channel.create_dataset("Data", data=np.zeros((8, 8, 8), "u1"), chunks=(8, 8, 8))
    channel.attrs["HistogramMin"] = channel.attrs["HistogramMax"] = text(0)
    for number, axis in enumerate("XYZ"):
        info.attrs[axis] = channel.attrs[f"ImageSize{axis}"] = text(8)
        info.attrs[f"ExtMin{number}"], info.attrs[f"ExtMax{number}"] = text(0), text(8 * 0.0325)

rounded = ims("a.ims").resolution
exact = ims("a.ims", resolution_decimal_places=None).resolution
print("imaris-ims-file-reader", version("imaris-ims-file-reader"))
print("voxels of 0.0325:", rounded, "with resolution_decimal_places=None:", exact)
print("volume of a voxel is too large by", f"{np.prod(rounded) / np.prod(exact) - 1:.1%}")
assert rounded == (0.033, 0.033, 0.033)
assert np.allclose(exact, 0.0325)
PYTHON
