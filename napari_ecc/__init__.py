"""The napari plugin of napari-ecc: Euler characteristic curves of the layers of a viewer.

The plugin is found through its manifest, ``napari.yaml``. `ecc_core` does the computing.
"""
