"""``ecc merge``: the table of an image from the parts of it that ``ecc stack`` computed."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ecc_core._cli import options, outputs
from ecc_core._cli.paths import matching_paths
from ecc_core._io.merged_parts import merged_curves
from ecc_core.errors import InputFileError
from ecc_core.io import write_table

DESCRIPTION = (
    "Make the table of an image from its parts, each of which was computed by ecc stack --part. It "
    "is that of ecc stack of the whole image, byte by byte. Parts that are missing are named, and "
    "those of another image, of other options or of another version are refused."
)


def add_arguments(parser: ArgumentParser) -> None:
    parts = "parts, or patterns such as 'part-*.npz'"
    options.add(parser, "inputs", metavar="PART", help=parts)
    options.add(parser, "--out", required=True)
    options.add(parser, "--plot")


def run(arguments: Namespace) -> None:
    paths = matching_paths(arguments.inputs)
    for path in paths:
        if not Path(path).is_file():
            raise InputFileError(f"{path}: is no file, and parts are")
    outputs.check_outputs(arguments, paths)
    job, curves = merged_curves(paths, lambda note: sys.stderr.write(f"ecc: {note}\n"))
    table = job.table(curves)
    write_table(arguments.out, table.columns, metadata=table.metadata)
    drawn = Namespace(**{**vars(job.arguments), "plot": arguments.plot})
    outputs.plot([curves], drawn, job.image["unit"])
