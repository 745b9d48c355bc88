"""Formulas as MathML, which browsers display without scripts or a network. A Sphinx extension."""

from __future__ import annotations

from typing import Any, NoReturn

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def inline(translator: Any, node: Any) -> NoReturn:
    """Write a formula within a line."""
    translator.body.append(convert(node.astext()))
    raise SkipNode


def block(translator: Any, node: Any) -> NoReturn:
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>\n')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_html_math_renderer('mathml', (inline, None), (block, None))
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
