# SPDX-License-Identifier: Apache-2.0
"""Fresh faults by chance: does a test notice? python -m campaigns.mutants --seed 1 --count 60

Draws places in the syntax trees of ik_node: a comparison is turned round, a number doubled, a statement
dropped, a condition negated. One fault at a time goes into a copy of the repository. First the quick tests of
the changed folder run, then all of that folder, then those of the gate that need neither programs
nor a browser, each until a test fails. Prints a row per fault with the level that noticed; the seed and the
commit say which faults.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.near import folders_of

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 900.0  # [s]: a test that hangs has noticed, too
TURNED = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """A fault: what replaces the text of a node of a file's syntax tree."""

    path: Path
    node: ast.expr | ast.stmt
    text: str

    def applied(self) -> str:
        """Return the file's text with the fault."""
        lines = self.path.read_bytes().splitlines(keepends=True)  # columns count bytes
        first, last = self.node.lineno - 1, (self.node.end_lineno or self.node.lineno) - 1
        head, tail = lines[first][: self.node.col_offset], lines[last][self.node.end_col_offset :]
        return b''.join([*lines[:first], head + self.text.encode() + tail, *lines[last + 1 :]]).decode()


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield each fault that a file can have."""
    for function in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if not isinstance(function, ast.FunctionDef):
            continue  # constants of a module are figures, which no test should repeat
        for node in ast.walk(function):
            match node:
                case ast.Compare(left=left, ops=[operator], comparators=comparators):
                    turned = ast.Compare(left, [TURNED[type(operator)]()], comparators)
                    yield Mutant(path, node, f'({ast.unparse(turned)})')
                case ast.Constant(value=float(value)) if value:
                    yield Mutant(path, node, repr(2.0 * value))
                case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                    yield Mutant(path, test, f'(not ({ast.unparse(test)}))')
                case ast.Expr(value=ast.Call()) | ast.AugAssign():
                    yield Mutant(path, node, 'pass')
                case _:
                    pass


def drawn(seed: int, count: int, under: str = 'ik_node') -> list[Mutant]:
    """Return faults by chance in a folder: a file by its length, and each kind in it as likely as the others."""
    chance = random.Random(seed)
    found = {path: list(mutants_of(path)) for path in sorted((ROOT / under).rglob('*.py'))}
    files = chance.choices(list(found), weights=[len(each) for each in found.values()], k=count)
    chosen = []
    for path in files:
        kind = chance.choice(sorted({type(mutant.node).__name__ for mutant in found[path]}))
        chosen.append(chance.choice([each for each in found[path] if type(each.node).__name__ == kind]))
    return chosen


def noticed(copy: Path, chosen: list[str]) -> str:
    """Run tests of the copy until one fails, and return its name; empty if all pass."""
    environment = {
        **os.environ,
        'IK_NODE_SHARED': str(ROOT.parent / 'shared'),
        'PYTHONDONTWRITEBYTECODE': '1',
    }
    build = [sys.executable, '-m', 'ik_node.kernels.build']
    built = subprocess.run(build, cwd=copy, env=environment, capture_output=True, check=False, timeout=TIMEOUT)
    if built.returncode:
        return 'the kernels cannot be compiled'
    command = [sys.executable, '-m', 'pytest', '-q', '-x', '-n', 'logical', '-p', 'no:cacheprovider', *chosen]
    with subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            said, _ = run.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            return 'a test that hangs'
    if run.returncode == 0:
        return ''
    failed = re.search(r'^(?:FAILED|ERROR) (\S+)', said, re.MULTILINE)
    return failed[1] if failed else f'exit code {run.returncode}'


def main() -> int:
    """Print a row per fault and the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=60)
    parser.add_argument(
        '--under', default='ik_node', help='the folder of the faults: ik_node/kernels/emit, translation'
    )
    parser.add_argument('--levels', default='quick,near,gate', help='which tests run; kernels: those of test/kernels')
    given = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, 'ik_node')
        unused = shutil.ignore_patterns('.git', '.venv*', '__pycache__', '_build', '.*_cache', '.hypothesis')
        shutil.copytree(ROOT, copy, ignore=unused)
        for number, mutant in enumerate(drawn(given.seed, given.count, given.under)):
            name, begin = mutant.path.relative_to(ROOT), time.monotonic()
            before = mutant.path.read_text(encoding='utf-8')
            (copy / name).write_text(mutant.applied(), encoding='utf-8')
            near = folders_of([str(name)])
            levels = {
                'quick': ['-m', 'not slow and not nightly', *near],
                'kernels': ['-m', 'not nightly', 'test/kernels'],
                'near': ['-m', 'not process and not browser and not nightly', *near],
                'gate': ['-m', 'not process and not browser and not nightly'],
            }
            level, test = 'MISSED', ''
            for each in given.levels.split(','):
                test = noticed(copy, levels[each])
                if test:
                    level = each
                    break
            (copy / name).write_text(before, encoding='utf-8')
            missed += not test
            line = ast.get_source_segment(before, mutant.node) or ''
            took = time.monotonic() - begin
            print(f'{number:2} {level:6} {took:4.0f} s {name}:{mutant.node.lineno}', end='  ')
            print(f'{" ".join(line.split())[:60]} -> {mutant.text[:60]}  {test}', flush=True)
    print(f'{given.count - missed} of {given.count} were noticed')
    return 0


if __name__ == '__main__':
    sys.exit(main())
