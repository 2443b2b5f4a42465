"""The napari plugin of napari-ecc: Euler characteristic curves of the layers of a viewer.

The package will hold the plugin; it has no widget yet. The computations are in `ecc_core`.
"""
