"""The commands of ``ecc``, one module each; `ecc_core.cli` lists them.

A command's module has what its help says, ``DESCRIPTION``, ``add_arguments(parser)``, which
declares its arguments, and ``run(arguments)``.
"""
