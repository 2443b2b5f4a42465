"""Curves by their definition, in a few lines of array arithmetic and without kernels.

Read this folder first; other backends are compared with it. Arrays that follow the array API
standard fall back on it where their device has no kernels.
"""
