"""Topology of a simulated field in a periodic box, and of a Gaussian one with the same spectrum."""

from dataclasses import replace

import numpy as np
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core.features import expected_gaussian_curve

rng = np.random.default_rng(0)
fields = gaussian_filter(rng.normal(size=(8, 48, 48, 48)), (0, 2, 2, 2), mode="wrap")
fields /= fields.std()
at = np.linspace(-3, 3, 61)

options = {"axis": (1, 2, 3), "superlevel": True, "boundary": "periodic"}
betti = ecc.betti_curves(fields, at, **options)
components, tunnels, cavities, torus = betti.values.mean(axis=0)
euler = betti.euler.mean(axis=0)

lags = np.fft.fftn(fields, axes=(1, 2, 3))
covariance = np.fft.ifftn((np.abs(lags) ** 2).mean(axis=0)).real / fields[0].size
expected = expected_gaussian_curve(
    fields.shape[1:], at, covariance=covariance, superlevel=True, boundary="periodic"
)
largest = np.abs(euler - expected.mean).max() / np.abs(expected.mean).max()
print(f"Euler characteristic: within {largest:.1%} of the peak of a Gaussian field's")
print(f"components: most at {at[components.argmax()]:.1f} standard deviations")
print(f"loops of the torus itself: {betti.values[0, 1, 0]} once every point has entered")

replace(betti, values=betti.values.mean(axis=0)).plot().figure.savefig("field.png", dpi=200)
