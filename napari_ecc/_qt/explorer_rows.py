"""The rows of widgets of the dock "Threshold"."""

from typing import Any

from napari_ecc._qt import form

ANY_NUMBER: dict[str, Any] = {
    "low": -form.LARGEST_NUMBER,
    "high": form.LARGEST_NUMBER,
    "step": 1,
}
HALF = "Label the set, or what lasts up to half of its height, unless some of it is chosen"
LASTING = "Least persistence of what counts, from birth to death"
CHOICES: form.Rows = {
    "Image": form.choice("image", "The Image or Labels layer to explore"),
    "Sets": (form.SUPERLEVEL, form.SCOPE),
    "Show": (
        form.check("show_betti", "Betti curves", "Components, holes or tunnels, and cavities"),
        form.check("show_histogram", "Histogram", "Of the values from which the curve is computed"),
    ),
}
LEVELS = {
    "Threshold": (
        form.steps("t", "Threshold t"),
        form.number("t_value", "Threshold t, to be typed", **ANY_NUMBER),
    ),
    "Lasts at least": (
        form.steps("least", LASTING),
        form.number("least_value", f"{LASTING}, to be typed", **ANY_NUMBER),
    ),
}
SETTINGS = {
    "Region": form.choice("roi", "Restrict the image to a Shapes or Labels layer"),
    "Connect": form.CONNECTIVITY,
    "Thresholds": form.whole_number("bins", "Number of thresholds", 2, 65536),
    "Smoothing": form.number("sigma", "Gaussian smoothing, in pixels", 0, 50, step=0.5),
    "Smallest": form.whole_number(
        "min_size", "Points of the least object of Make Labels", 0, 2**31 - 1
    ),
    "Labels": form.choice("half_height", HALF, {"At the threshold": False, "Half height": True}),
    "Outline": form.choice(
        "contour",
        "How the set is drawn; all of it in three dimensions",
        {"Contour": True, "Fill": False},
    ),
    "Histogram": form.choice(
        "histogram_log",
        "Scale of the counts, as in the histogram of napari's layer controls",
        {"Linear": False, "Logarithmic": True},
    ),
    "Window": form.number("window", "Of what changes, ± % of the range", 0.1, 50, step=0.5),
}
OVERLAYS = {
    "": (
        form.check("show_set", "Show the set", "Outline what the set at the threshold has"),
        form.check(
            "show_changes",
            "Critical points",
            "Points that change the Euler characteristic near the threshold: "
            "amber raises it when it enters, pink lowers it",
        ),
    )
}
