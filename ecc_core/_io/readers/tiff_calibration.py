"""Pixel sizes of TIFF files, from tags of microscopes, descriptions, and the resolution."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any, NamedTuple

from ecc_core._io.units import unit_named

INCH_IN_CM = 2.54
PRINT_DPI = (72, 600)
"""Resolutions that programs write for printing, in points per inch."""
MOST_ROUNDING = 1e-6
"""The largest relative error of a resolution, which is stored as a ratio of integers."""
MICROMETERS_IN_CM = 1e4


class Calibration(NamedTuple):
    """The distances between points by a TIFF file."""

    steps: Mapping[str, Any]
    """The distance by the letter of the axis. Values that are not positive numbers are ignored."""
    units: Mapping[str, str] | str
    """The unit of each axis, or one for Z, Y and X."""
    notes: tuple[str, ...] = ()


def calibration_of(tiff: Any, number: int) -> Calibration:
    """Return the steps along the axes of a series that are known from metadata or tags."""
    if tiff.is_ome:
        return _of_ome(tiff, number)
    if tiff.is_lsm:
        sizes = tiff.lsm_metadata
        return Calibration({axis: sizes[f"VoxelSize{axis}"] for axis in "ZYX"}, "m")
    made = _of_maker(tiff)
    if made is not None:
        return made
    return _of_resolution(tiff, number)


def _of_ome(tiff: Any, number: int) -> Calibration:
    found = re.findall(r"<(?:\w+:)?Pixels\b[^>]*>", tiff.ome_metadata)
    text = found[number] if number < len(found) else ""
    pattern = r'\b(PhysicalSize[XYZ]|TimeIncrement)(Unit)?\s*=\s*"([^"]*)"'
    named = {name + unit: value for name, unit, value in re.findall(pattern, text)}
    names = {axis: f"PhysicalSize{axis}" for axis in "ZYX"} | {"T": "TimeIncrement"}
    usual = dict.fromkeys("ZYX", "\u00b5m") | {"T": "s"}
    units = {axis: unescape(named.get(f"{name}Unit", usual[axis])) for axis, name in names.items()}
    return Calibration({axis: named.get(name) for axis, name in names.items()}, units)


def _of_maker(tiff: Any) -> Calibration | None:
    """Return the calibration by the tag of a microscope, None if tifffile finds none."""
    fei = tiff.fei_metadata if tiff.is_fei else None
    if fei and "PixelWidth" in fei.get("Scan", {}):
        scan = fei["Scan"]
        return Calibration({"Y": scan.get("PixelHeight"), "X": scan["PixelWidth"]}, "m")
    zeiss = tiff.sem_metadata if tiff.is_sem else None
    for name in ("ap_image_pixel_size", "ap_pixel_size"):
        entry = (zeiss or {}).get(name, ())
        if len(entry) > 2:  # An entry is a name, a value and a unit.
            return Calibration({"Y": entry[1], "X": entry[1]}, str(entry[2]))
    olympus = tiff.sis_metadata if tiff.is_sis else None
    if olympus and "pixelsizex" in olympus:
        return Calibration({"Y": olympus["pixelsizey"], "X": olympus["pixelsizex"]}, "m")
    tvips = tiff.tvips_metadata if tiff.is_tvips else None
    if tvips and "PixelSizeX" in tvips:
        return Calibration({"Y": tvips["PixelSizeY"], "X": tvips["PixelSizeX"]}, "nm")
    return None


def _of_resolution(tiff: Any, number: int) -> Calibration:
    """Return the resolution of the tags, in the unit of a description by ImageJ or tifffile."""
    described: Any = {}
    if tiff.is_imagej:
        described = tiff.imagej_metadata or {}
    elif number < len(tiff.shaped_metadata or ()):
        described = tiff.shaped_metadata[number]
    common = str(described.get("unit", ""))
    steps, unit = _resolution(tiff.series[number].keyframe)
    notes: tuple[str, ...] = ()
    if tiff.is_imagej and common:
        if unit == "cm" and unit_named(common) == "micrometer":  # ImageJ converts these.
            steps = {axis: MICROMETERS_IN_CM * step for axis, step in steps.items()}
        unit = common
    elif common and unit == "inch":
        unit = common  # Tifffile writes inches by default.
    elif unit:
        dpi = _print_resolution(steps, unit)
        if dpi:
            steps = {}
            notes = (f"its resolution of {dpi} dpi is that of a print, and no pixel size",)
    if not unit and set(steps.values()) == {1.0}:  # Programs write 1 for an unknown resolution.
        steps = {}
    units = {
        "X": unit or common,
        "Y": str(described.get("yunit", unit or common)),
        "Z": str(described.get("zunit", common)),
        "T": "s",
    }
    spacing = described.get("spacing", 0)
    if isinstance(spacing, int | float):
        spacing = abs(spacing)  # ImageJ writes a negative spacing for stacks taken upwards.
    return Calibration({**steps, "Z": spacing, "T": described.get("finterval")}, units, notes)


def _resolution(page: Any) -> tuple[dict[str, float], str]:
    """Return the distances that the tags of a page give, and their unit."""
    steps = {}
    for axis in "YX":
        tag = page.tags.get(f"{axis}Resolution")
        points, lengths = (0, 0) if tag is None else tag.value
        if points:
            steps[axis] = lengths / points
    unit = page.tags.get("ResolutionUnit")
    return steps, {1: "", 2: "inch", 3: "cm"}.get(2 if unit is None else int(unit.value), "")


def _print_resolution(steps: Mapping[str, float], unit: str) -> str:
    """Return the points per inch in words if programs write them for printing, otherwise ""."""
    inch = INCH_IN_CM if unit == "cm" else 1.0
    found = [inch / step for step in steps.values() if step > 0]
    least, most = PRINT_DPI
    if not found:
        return ""
    if min(found) < least * (1 - MOST_ROUNDING) or max(found) > most * (1 + MOST_ROUNDING):
        return ""
    distinct = dict.fromkeys(reversed(found))
    return " x ".join(f"{dpi:.4g}" for dpi in distinct)


def scaled(calibration: Calibration, ratios: Mapping[str, float]) -> Calibration:
    """Return the calibration of a level, whose points average `ratios` points of the finest."""
    steps = dict(calibration.steps)
    for axis, ratio in ratios.items():
        if ratio != 1 and steps.get(axis):
            steps[axis] = float(steps[axis]) * ratio
    return calibration._replace(steps=steps)
