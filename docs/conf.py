# SPDX-License-Identifier: Apache-2.0
"""The documentation site: Sphinx with MyST; `make docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'docs')]

project = 'ik_node'
author = copyright = 'the authors of ik_node'  # noqa: A001 - the name that Sphinx reads
release = re.findall(r'<version>(.*?)<', (ROOT / 'package.xml').read_text(encoding='utf-8'))[0]
extensions = ['myst_parser', 'sphinx.ext.autodoc', 'generated', 'mathml']
myst_enable_extensions = ['colon_fence', 'dollarmath']
myst_heading_anchors = 3
myst_fence_as_directive = ['math']
html_math_renderer = 'mathml'
smartquotes = False
exclude_patterns = [
    '_build',
    '*.py',
    'reference/examples.txt',
    'reference/tables',
    'explanation/figures.json',
]
html_theme = 'furo'
html_title = f'ik_node {release}'
autodoc_member_order = 'bysource'
autodoc_typehints = 'signature'
autodoc_type_aliases = {'ArrayLike': 'ArrayLike', 'Array': 'Array'}
nitpicky = True
nitpick_ignore_regex = [  # types without a page here
    ('py:class', r'Array(Like)?|Robot|TypeAliasForwardRef|(numpy|os|collections)\..*|ik_node\.(control|model)\..*'),
]
