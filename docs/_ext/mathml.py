"""Formulas as MathML, which browsers draw themselves: no script and no network is needed."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def mathml(formula: str, **options: bool) -> str:
    """The formula, with the commands that docutils does not know by others of their meaning."""
    return tex2mathml(formula.replace(r"\dots", r"\ldots"), **options)


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    self.body.append(f'<div class="math">{mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
