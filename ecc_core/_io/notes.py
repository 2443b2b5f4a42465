"""What users should know of an image's values, which are always as stored."""

ZERO_IS_WHITE = "0 is white and the largest value black; values are as stored"
CMYK = "channels are amounts of ink: cyan, magenta, yellow and black"


def orientation_notes(orientation: int) -> list[str]:
    """Return what to say of an orientation tag of EXIF or TIFF, 1 to 8."""
    if orientation in (0, 1):
        return []
    return [f"rows and columns are as stored; its orientation tag {orientation} is not applied"]
