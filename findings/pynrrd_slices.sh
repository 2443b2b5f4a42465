#!/usr/bin/env bash
# pynrrd does not read NRRD headers whose values are in a file for each slice, listed or numbered.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "pynrrd==1.1.3" "SimpleITK==2.5.2" "numpy==2.4.6"
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import nrrd
import numpy as np
import SimpleITK

image = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
for number, plane in enumerate(image):
    plane.tofile(f"s{number + 1}.raw")
header = "NRRD0004\ntype: short\ndimension: 3\nsizes: 5 4 3\nendian: little\nencoding: raw\n"
places = {"listed": "LIST\ns1.raw\ns2.raw\ns3.raw\n", "numbered": "s%d.raw 1 3 1\n"}
print("pynrrd", version("pynrrd"), "SimpleITK", version("SimpleITK"))
for name, files in places.items():
    with open(f"{name}.nhdr", "w") as file:
        file.write(f"{header}data file: {files}")
    by_itk = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(f"{name}.nhdr"))
    assert (by_itk == image).all()
    try:
        nrrd.read(f"{name}.nhdr")
    except Exception as error:
        print(f"{name}: ITK reads all values, pynrrd raises {type(error).__name__}: {error}")
    else:
        raise SystemExit(f"{name}: pynrrd reads it now")
PYTHON
