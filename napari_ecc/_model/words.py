"""Words for numbers of things."""


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun; the plural form is ``one`` with an s, or ``several``."""
    if number == 1:
        return f"1 {one}"
    return f"{number:,} {several or one + 's'}"
