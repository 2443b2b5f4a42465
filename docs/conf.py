"""The documentation site: ``make docs`` builds it into site/, and every warning is an error."""

import importlib
import importlib.metadata
import os
import sysconfig

import numpydoc.xref

# The help of the command `ecc` is asked of the one beside this interpreter.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
os.environ["COLUMNS"] = "76"

project = "napari-ecc"
author = "The napari-ecc developers"
release = version = importlib.metadata.version("napari-ecc")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinxcontrib.programoutput",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py", "gallery/*.zip", "gallery/*.json"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
default_role = "autolink"  # `name` links to what it names, if that is in the reference
autodoc_typehints = "none"
numpydoc_xref_param_type = True
numpydoc.xref.DEFAULT_LINKS.clear()  # they point to the sites of other projects
PUBLIC = (
    "ecc_core",
    *(f"ecc_core.{name}" for name in ("dask", "errors", "features", "io", "results")),
)
numpydoc_xref_aliases = {
    name: f"{module}.{name}"
    for module in reversed(PUBLIC)  # a name belongs to the first module that has it
    for name in importlib.import_module(module).__all__
}
numpydoc_xref_ignore = "all"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
}
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold objects that are not pickled

html_theme = "pydata_sphinx_theme"
html_title = "napari-ecc"
html_static_path = []
html_sourcelink_suffix = ""
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_nav_level": 2,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
}
