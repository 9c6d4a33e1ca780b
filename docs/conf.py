"""How Sphinx builds the site: MyST for Markdown, furo for looks, and nothing that a page would fetch from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from leakgauge import __version__

project = "leakgauge"
author = "the leakgauge authors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["examples"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
highlight_language = "text"
smartquotes = False  # values of a TOML file are in straight quotes
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # a short name that several packages export links to one of them

toc_object_entries = False  # each page lists its names; the tree of all of them takes half of the build
pygments_dark_style = "github-dark"
html_theme = "furo"
html_title = f"leakgauge {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False


def inline(writer: Any, node: nodes.math) -> None:
    """A formula within a line, as MathML, which browsers draw by themselves."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    writer.body.append(f'<div class="formula" tabindex="0">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def dashes(app: Any, doctree: nodes.document) -> None:
    """Two hyphens between a parameter and its description, as Sphinx writes them, become a dash."""
    for node in list(doctree.findall(lambda one: isinstance(one, nodes.Text) and one.astext() == " -- ")):
        node.parent.replace(node, nodes.Text(" – "))


def reachable(app: Any, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """What scrolls can be reached by the keyboard, and captions of the contents are headings of a level."""
    scrolled = r'<pre(?=>)|<div class="(?:output|table-wrapper[^"]*)"'
    context["body"] = re.sub(scrolled, r'\g<0> tabindex="0"', context.get("body", ""))
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Any) -> None:
    """Formulas are drawn without MathJax, and pages are made easier to use without a mouse."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("doctree-read", dashes)
    app.connect("html-page-context", reachable, priority=900)  # after furo has made its tree
