"""What the tests compare with: the definitions, written slowly and plainly.

``euler`` and ``transform`` share no code with the package (a test holds them to it). ``soft`` is
plain PyTorch on the package's own cells, and ``components`` labels with SciPy.
"""
