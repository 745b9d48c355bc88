# SPDX-License-Identifier: Apache-2.0
"""Print all that programs, reports and the page may say: python tools/sentences.py > test/sentences.txt

A string of four words or more that is no docstring counts. {} stands for what is put in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORD = re.compile('[A-Za-z]{2,}')


def strings_of(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a syntax tree that are no docstrings, those of f-strings with {} for values."""
    parts = [value for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values]
    docstrings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    seen = set(map(id, [*parts, *docstrings]))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield ''.join(str(part.value) if isinstance(part, ast.Constant) else '{}' for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in seen:
            yield node.value


def sentences() -> str:
    """Return the text: the name of a file, and its sentences in the order of the alphabet, indented."""
    lines = []
    for path in sorted((ROOT / 'ik_node').rglob('*.py')):
        found = {' '.join(text.split()) for text in strings_of(ast.parse(path.read_text(encoding='utf-8')))}
        said = sorted(text for text in found if len(WORD.findall(text)) >= 4 and ' ' in text)
        if said:
            lines += [path.relative_to(ROOT).as_posix(), *(f'    {text}' for text in said)]
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    print(sentences(), end='')
