"""The commands of ``ecc``, one module each; `ecc_core.cli` lists them.

A command's module has ``add_parser(commands)``, which declares its arguments and sets ``run`` to
the function that is called with them.
"""
