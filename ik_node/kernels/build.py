# SPDX-License-Identifier: Apache-2.0
"""Compile the kernels, so that a first start finds them: python -m ik_node.kernels.build."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ik_node.kernels import KERNELS, native
from ik_node.kernels.emit.module import module_source

# Every operation as Python does it: no fused multiply-add, no reordering.
OPTIONS = '-std=gnu99 -O2 -ffp-contract=off -fno-math-errno -fvisibility=hidden -pthread -shared -fPIC'
# Of what wheels hold: for which computers, and the oldest glibc there.
TARGETS = {'x86_64': 'x86_64-linux-gnu.2.28', 'aarch64': 'aarch64-linux-gnu.2.28'}
NO_COMPILER = (
    'there is no C compiler: install one (sudo apt install gcc), or without the right to do that {} -m pip '
    'install ziglang'
)


def main(given: Sequence[str] | None = None) -> int:
    """Compile the kernels unless that has been done; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog='python -m ik_node.kernels.build', description=__doc__)
    parser.add_argument('--locked', action='store_true', help=argparse.SUPPRESS)  # this process inherited the lock
    arguments = parser.parse_args(given)
    if arguments.locked:
        os.nice(10)  # in the background, beside the program that started it
    if reason := native.obstacle():
        print(reason, file=sys.stderr)
        return 1
    folder = native.cache_folder()
    target = folder / native.file_name()
    with native.lock_file(folder).open('w') as lock:
        if not arguments.locked:
            fcntl.flock(lock, fcntl.LOCK_EX)
        start = time.perf_counter()
        try:
            if done := native.find():
                target = done
            else:
                native.remove_old(folder)
                compile_module(source(), target)
        except BuildError as error:
            print(error, file=sys.stderr)
            return 1
    seconds = time.perf_counter() - start
    print(f'kernels are compiled: {target}' if done else f'kernels compiled in {seconds:.0f} s: {target}')
    return 0


class BuildError(Exception):
    """The kernels could not be compiled, and why."""


def compiler() -> list[str]:
    """Return the command of a C compiler. Raises BuildError if there is none."""
    for name in (os.environ.get('CC'), 'cc', 'gcc', 'clang'):
        if name and shutil.which(name.split()[0]):
            return name.split()
    if find_spec('ziglang'):
        return [sys.executable, '-m', 'ziglang', 'cc']
    raise BuildError(NO_COMPILER.format(sys.executable))


def source(checked: bool = False) -> str:
    """Return all kernels as C."""
    modules = {name: import_module(f'ik_node.kernels.{module}') for name, module in KERNELS.items()}
    plain = {name: getattr(module, name) for name, module in modules.items()}
    return module_source(native.MODULE, plain, checked)


def compile_module(text: str, target: Path, command: Sequence[str] = (), options: Sequence[str] = ()) -> None:
    """Compile C to a module, which appears as a whole or not at all. Raises BuildError.

    command: of the compiler; options: more of them.
    """
    link = ('-undefined', 'dynamic_lookup') if sys.platform == 'darwin' else ()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix='.kernels-') as name:
        file, result = Path(name, f'{native.MODULE}.c'), Path(name, target.name)
        file.write_text(text, encoding='utf-8')
        line = [
            *(command or compiler()),
            *OPTIONS.split(),
            *options,
            str(file),
            '-o',
            str(result),
            '-lm',
            *link,
        ]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            output = done.stdout.strip()
            raise BuildError(f'{" ".join(line)} ended with exit code {done.returncode}: {output}')
        native.sign(result)
        result.chmod(0o755)
        with result.open('rb') as written:
            os.fsync(written.fileno())
        result.replace(target)


def compile_for_wheels(folder: Path, command: Sequence[str]) -> list[Path]:
    """Compile into a folder for each of TARGETS. command: of zig cc, which compiles for all. Raises BuildError."""
    made = []
    for machine, name in TARGETS.items():
        made.append(folder / native.file_name(machine))
        compile_module(source(), made[-1], command, ('-target', name, '-s'))
    return made


if __name__ == '__main__':
    sys.exit(main())
