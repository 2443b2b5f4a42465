"""The documentation site: ``make docs`` builds it into site/, and every warning is an error."""

import importlib
import importlib.metadata
import os
import runpy
import sys
import sysconfig
from pathlib import Path

import numpydoc.xref
from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

import reference  # noqa: E402

# The modules say what is public. Sphinx looks for pages before it calls extensions.
(DOCS / "api").mkdir(exist_ok=True)
(DOCS / "api" / "index.md").write_text(reference.page(DOCS), encoding="utf-8")

# The help of the command `ecc` is asked of the one beside this interpreter.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
os.environ["COLUMNS"] = "76"

project = "napari-ecc"
author = "The napari-ecc developers"
release = version = importlib.metadata.version("napari-ecc")

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinxcontrib.programoutput",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_ext",
    "design/history",
    *(f"gallery/*.{kind}" for kind in ("ipynb", "py", "zip", "json")),
]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
html_math_renderer = "mathml"
myst_heading_anchors = 3

autosummary_generate = True
default_role = "autolink"  # It links `name` to what it names, if that is in the reference.
autodoc_typehints = "none"
numpydoc_xref_param_type = True
numpydoc.xref.DEFAULT_LINKS.clear()  # They point to the sites of other projects.
PUBLIC = (
    "ecc_core",
    *(f"ecc_core.{name}" for name in ("dask", "errors", "features", "io", "results")),
)
numpydoc_xref_aliases = {
    name: f"{module}.{name}"
    for module in reversed(PUBLIC)  # A name belongs to the first module that has it.
    for name in importlib.import_module(module).__all__
}
numpydoc_xref_ignore = "all"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("ecc_core",),
    "thumbnail_size": (640, 400),
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
}
# The settings of sphinx-gallery hold objects that cannot be pickled.
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "napari-ecc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_sidebars = {page: [] for page in ("index", "start", "try", "concepts")}
html_sourcelink_suffix = ""
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_nav_level": 2,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": {"**": ["page-toc"], "try": [], "measurements": []},
    "logo": {f"image_{mode}": "_static/logo.svg" for mode in ("light", "dark")}
    | {"text": "napari-ecc"},
}


def draw_benchmarks(app: Sphinx) -> None:
    """Draw the figures of the benchmarks from the committed results."""
    figures = runpy.run_path(str(Path(app.srcdir).parent / "benchmarks" / "figures.py"))
    figures["draw_all"](Path(app.srcdir) / "benchmark-figures")


def setup(app: Sphinx) -> None:
    """Tell Sphinx what to do."""
    app.connect("builder-inited", draw_benchmarks)
