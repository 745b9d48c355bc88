# SPDX-License-Identifier: Apache-2.0
"""Formulas as MathML, which browsers display without scripts or a network. A Sphinx extension."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

PRIMED = re.compile(r'<msup>(<mi>\w+</mi>)<mi>(&#x0203[23];)</mi></msup>')


def mathml(node: Any, display: str) -> str:
    """Return the formula of a node; primes are not superscripts, as fonts have them raised and small."""
    formula = convert(node.astext().replace('{aligned}', '{align*}'), display=display)
    formula = formula.replace('columnalign="', 'style="text-align: ')  # as MathML Core
    return PRIMED.sub(r'<mrow>\1<mo lspace="0" rspace="0">\2</mo></mrow>', formula)


def inline(translator: Any, node: Any) -> NoReturn:
    """Write a formula within a line."""
    translator.body.append(mathml(node, 'inline'))
    raise SkipNode


def block(translator: Any, node: Any) -> NoReturn:
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math">{mathml(node, "block")}</div>\n')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_html_math_renderer('mathml', (inline, None), (block, None))
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
