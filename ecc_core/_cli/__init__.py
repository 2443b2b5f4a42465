"""The commands of ``ecc``, one module each; `ecc_core.cli` lists them.

The module of a command has ``DESCRIPTION``, the text of its help, ``add_arguments(parser)``, which
declares its arguments, and ``run(arguments)``.
"""
