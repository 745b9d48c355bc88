# SPDX-License-Identifier: Apache-2.0
"""Build a wheel with compiled kernels for x86-64 and aarch64: python tools/wheel.py [FOLDER]

One compiler makes both, so the wheel is for every computer: py3-none-any. It is fetched for that, and so are
the packages that build wheels; the wheel is made from a copy of the sources, in which no earlier build lies.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from set_up import CONSTRAINTS, ROOT, UV, Step, StepError, call, fetch_compiler, pip_settings

from ik_node.kernels import build

LEFT_OUT = '.*', 'build', 'dist', 'install', 'log', '__pycache__', '*.egg-info', '*.so', 'test', 'docs'


def main(output: Path) -> int:
    """Return 0 if the wheel is in the folder output, else 1."""
    try:
        with tempfile.TemporaryDirectory(prefix='ik_node-') as name:
            folder = Path(name)
            if not find_spec('ziglang'):
                fetch_compiler(folder)
                command = [str(folder / 'zig' / 'ziglang' / 'zig'), 'cc']
            else:
                command = [sys.executable, '-m', 'ziglang', 'cc']
            source = shutil.copytree(ROOT, folder / 'source', ignore=shutil.ignore_patterns(*LEFT_OUT))
            with Step('compiling the kernels'):
                build.compile_for_wheels(source / 'ik_node' / 'kernels', command)
            with Step('building the wheel'):
                tested = ['--build-constraint', CONSTRAINTS] if CONSTRAINTS.exists() else []
                call(UV, 'build', '--wheel', '--out-dir', output, *tested, source, **pip_settings())
    except (StepError, build.BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f'the wheel is in {output}')
    return 0


if __name__ == '__main__':
    sys.exit(main(Path(*sys.argv[1:] or ['dist']).resolve()))
