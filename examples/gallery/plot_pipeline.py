"""
Curves in a scikit-learn pipeline
=================================

:class:`~ecc_core.features.EulerCurveTransformer` makes curves the first step of a pipeline. Here
it classifies patches of three photographs, trained on their left halves and tested on their right
halves.
"""

# %%
# Patches of 32 x 32 pixels. Each is standardised, so that brightness and contrast carry no
# information.
import matplotlib.pyplot as plt
import numpy as np
from skimage import data
from skimage.util import view_as_blocks
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ecc_core.features import EulerCurveTransformer

SIDE = 32
names = "brick", "grass", "gravel"


def patches(photograph: np.ndarray) -> np.ndarray:
    """Cut an image into standardised patches."""
    cut = view_as_blocks(photograph.astype(np.float32), (SIDE, SIDE)).reshape(-1, SIDE, SIDE)
    cut = cut - cut.mean(axis=(1, 2), keepdims=True)
    return cut / cut.std(axis=(1, 2), keepdims=True)


halves = [np.split(getattr(data, name)(), 2, axis=1) for name in names]
train, test = (np.concatenate([patches(pair[side]) for pair in halves]) for side in (0, 1))
kinds = np.repeat(names, len(train) // 3)

# %%
# The transformer accepts images of shape (n, h, w), and sets the range of the thresholds in `fit`.
model = make_pipeline(
    EulerCurveTransformer(48),
    StandardScaler(),
    LogisticRegression(C=0.1, max_iter=1000),
)
model.fit(train, kinds)
print(f"accuracy on the right halves: {model.score(test, kinds):.3f}")

# %%
figure, ax = plt.subplots(figsize=(4.4, 3.8), layout="constrained")
ConfusionMatrixDisplay.from_predictions(kinds, model.predict(test), ax=ax, cmap="Blues")
plt.show()

# %%
# With ``set_output`` the features are a table with one named column per threshold.
table = EulerCurveTransformer(4).set_output(transform="pandas").fit_transform(train)
print(table.head())
