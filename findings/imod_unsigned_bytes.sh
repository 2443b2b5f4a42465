#!/usr/bin/env bash
# mrcfile and SimpleITK give the bytes without a sign that IMOD marks in its header as signed ones:
# 200 becomes -56. Bit 0 of imodFlags says whether bytes have a sign
# (https://bio3d.colorado.edu/imod/doc/mrc_format.txt).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "mrcfile==1.5.4" "SimpleITK==2.5.7" "numpy==2.4.6"
cd "$folder"
env/bin/python - <<'PYTHON'
from importlib.metadata import version

import mrcfile
import numpy as np
import SimpleITK

print({name: version(name) for name in ("mrcfile", "SimpleITK", "numpy")})
values = np.array([[[0, 100, 200], [1, 2, 3]], [[4, 5, 6], [7, 8, 255]]], np.uint8)
with mrcfile.new("a.mrc") as file:
    file.set_data(values.view(np.int8))
content = bytearray(open("a.mrc", "rb").read())
content[152:160] = np.array([1146047817, 0], "<i4").tobytes()  # "IMOD", and bytes without a sign
open("a.mrc", "wb").write(content)
by_mrcfile = mrcfile.read("a.mrc")
by_itk = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage("a.mrc", imageIO="MRCImageIO"))
print("mrcfile:", by_mrcfile.dtype, by_mrcfile[0, 0], "SimpleITK:", by_itk.dtype, by_itk[0, 0])
assert by_mrcfile[0, 0].tolist() == [0, 100, -56]
assert by_itk[0, 0].tolist() == [0, 100, -56]
PYTHON
