"""The oracles of the tests: definitions in plain code, which need not be fast.

``euler`` and ``transform`` share no code with the package, which a test checks. ``soft`` is plain
PyTorch on the cells of the package, and ``components`` labels with SciPy.
"""
