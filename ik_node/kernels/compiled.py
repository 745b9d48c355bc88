"""compiled: numba's njit with a cache that also notices a change in the kernel modules that a module imports.

numba keys its cache by the text of one file and misses a change of a callee in another. Here the folder
of the cache is keyed by the contents of a module and of every kernel module that it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba import njit

KERNELS = Path(__file__).parent

config: Any = numba.config


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel: cached, without Python's error model, releasing the GIL."""
    before = config.CACHE_DIR
    root = Path(before) if before else KERNELS / '__pycache__'
    # numba picks the folder when it decorates, so it need not be set for longer.
    config.CACHE_DIR = str(root / digest(Path(function.__code__.co_filename)))
    try:
        return njit(cache=True, error_model='numpy', nogil=True)(function)
    finally:
        config.CACHE_DIR = before


@cache
def digest(path: Path) -> str:
    """Return a hash of a kernel module and of all kernel modules that it imports, however indirectly."""
    source = path.read_bytes()
    used = sorted(
        {_imported(path, node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    )
    parts = [source, *(digest(module).encode() for module in used if module.exists())]
    return sha256(b'\0'.join(parts)).hexdigest()[:16]


def _imported(path: Path, node: ast.ImportFrom) -> Path:
    """Return the file that a relative import in the module at path names; others name none that exists."""
    folder = path.parents[node.level - 1] if node.level else KERNELS / 'external'
    return folder.joinpath(*(node.module or '').split('.')).with_suffix('.py')
