# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels: what makes them stale, and how they are compiled."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from kernel_copies import ALONE, CALLER, ROOT, build, copied, run

from ik_node import kernels
from ik_node.kernels.runtime.signatures import KERNELS as NAMES
from ik_node.kernels.runtime.signatures import kinds

pytestmark = pytest.mark.slow

KERNELS = ROOT / 'ik_node' / 'kernels'
MODULES = [
    path
    for path in sorted(KERNELS.rglob('*.py'))
    if path.stem != '__init__' and path.parent.name != 'runtime'
]
# In these, no decorator: a template is compiled where it is filled in, what is filled in has its own.
TEMPLATED = {'driver', 'trees'}
TURNED = """
import numpy as np
from ik_node import kernels
kernels.prepare(['serve_lateral'], wait=True)
joints = np.array([[0, 0, 1, 0, 0, 0, 0, 0, 1, 0.0]])
tool = np.array([0, 0, 1, 0, 0, 1, 1, 0, 0.0])
goal = np.array([0, 0, 1, 0, 0, 1, 0, 1, 0.0])
print(kernels.serve_lateral(joints, tool, np.array([[-1.0], [1.0]]), goal, -1, np.zeros(1), np.zeros(1)))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return copied(tmp_path)


def test_a_changed_callee_is_compiled_anew_in_its_callers_and_nothing_else_is(
    package: Path, tmp_path: Path
) -> None:
    cache = tmp_path / 'cache'
    assert build(package, cache, CALLER, ALONE).splitlines()[-1].startswith('2 of 2 kernels compiled')
    before = float(run(TURNED, package, cache).stdout)
    assert before == pytest.approx(1.5707963)
    module = package / 'ik_node' / 'kernels' / 'chain.py'
    text = module.read_text()
    assert text.count('    return 2.0 * atan2(') == 1
    module.write_text(text.replace('    return 2.0 * atan2(', '    return 1.0 + 2.0 * atan2('))
    lines = build(package, cache, CALLER, ALONE).splitlines()
    assert [line.split()[3] for line in lines[:-1]] == [CALLER], lines
    assert float(run(TURNED, package, cache).stdout) == pytest.approx(before + 1.0)
    assert build(package, cache, CALLER, ALONE).startswith('0 of 2 kernels compiled')


def templates() -> set[str]:
    """Names of the functions that only specialised compiles, and of those that it fills in."""
    names = set()
    for node in (node for path in MODULES for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == 'specialised':
            names |= {ast.unparse(node.args[0]), *(str(keyword.arg) for keyword in node.keywords)}
    return names


def test_kernels_are_compiled_by_the_one_decorator_and_import_one_another_relatively() -> None:
    names_of_templates = templates()
    for path in MODULES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for name in names:  # an absolute import would mix the plain modules with the compiled ones
                assert name.split('.')[0] not in ('ik_node', 'numba'), f'{path.name} imports {name}'
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            if path.stem in TEMPLATED and function.name in names_of_templates:
                continue
            decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
            assert decorators == ['compiled'], f'{path.name}: {function.name} has {decorators}'


def test_every_kernel_that_python_calls_has_known_types() -> None:
    for name in NAMES:
        assert kinds(getattr(kernels, name)), name
