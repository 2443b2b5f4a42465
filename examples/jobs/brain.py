"""Which regions of the brain tell patients from controls? NIfTI images with segmentations.

Twelve subjects in the layout of BIDS; patients have lesions in region 2.
"""

from pathlib import Path

import nibabel
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ecc_core.cli import main
from ecc_core.features import RegionCurvesTransformer

rng, affine = np.random.default_rng(0), np.diag([1.0, 1.0, 1.2, 1.0])
regions = np.zeros((32, 32, 24), np.uint8)
regions[2:15, 4:28, 4:20], regions[17:30, 4:28, 4:20] = 1, 2
patient = np.arange(12) % 2 == 1
for number, ill in enumerate(patient):
    image = 100 + 60 * gaussian_filter(rng.normal(size=regions.shape), 1.5)
    if ill:
        for z, y, x in rng.integers([19, 6, 6], [28, 26, 18], (12, 3)):
            image[z, y, x] += 150
    for name, array in (("T1w", image.astype(np.float32)), ("dseg", regions)):
        nibabel.save(nibabel.Nifti1Image(array, affine), f"sub-{number:02}_{name}.nii.gz")

curves = ["--range", "50,250", "--thresholds", "32", "--superlevel"]
main(["batch", "sub-*_T1w.nii.gz", "--labels", "_T1w=_dseg", *curves, "--out", "regions.csv"])

pairs = [(str(p), str(p).replace("_T1w", "_dseg")) for p in sorted(Path().glob("*_T1w.nii.gz"))]
for region in (1, 2):
    features = RegionCurvesTransformer(32, range=(50, 250), ids=[region], superlevel=True)
    model = make_pipeline(features, StandardScaler(), LogisticRegression())
    scores = cross_val_score(model, pairs, patient, cv=4)
    print(f"region {region}: {scores.mean():.0%} of the subjects are classified correctly")
