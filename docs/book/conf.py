"""Sphinx's settings for the book of the study; `python -m shrink_utils book` gathers and builds it.

Sphinx with myst-nb, not Jupyter Book 2: that one fetches its templates from the network when it
builds. Nothing here asks the network for anything, when built or when read: the theme brings its
fonts and scripts along, `sphinx-mathjax-offline` brings MathJax, and widgets stand as pictures.
"""

import re

project = "shrink"
author = "the shrink authors"
copyright = "2026, the shrink authors. MIT licence"
language = "en"

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
]
# Parts of index.md, and what is offered as it is.
exclude_patterns = ["findings.md", "headlines.md", "_templates", "shrink_utils", "data/reference"]

# Notebooks are shown as they were executed.
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"
nb_ipywidgets_js = {}
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

# One page for every name that a package passes on.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True  # Sphinx finds no __all__ in the dir() of a lazy room
autodoc_typehints = "none"  # the docstrings say types and shapes
numpydoc_show_class_members = False
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring links where there is such a name

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = [("book.js", {"defer": "defer"})]
html_favicon = "_static/favicon.svg"
html_sidebars = {
    name: [] for name in ("claims", "evidence", "glossary", "one_number")
}  # one page each
html_domain_indices = False
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "shrink"},
    "collapse_navigation": True,  # else every page holds every name
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "claims": []},
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def _escape_bars(app, what, name, obj, options, lines):
    """An absolute value in a docstring is no substitution: |⟨h, x⟩|."""
    lines[:] = [re.sub(r"\|(⟨[^|]*⟩)\|", r"\\|\1\\|", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _escape_bars, priority=400)  # before numpydoc
