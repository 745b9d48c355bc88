# SPDX-License-Identifier: Apache-2.0
"""Load numba and compiled kernels without the parts that kernels do not need."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

STEPS = ('llvmlite.binding', 'numba')  # each is slow to load; the program may end between them


def load_numba(go_on: Callable[[], bool]) -> None:
    """Load numba; stop early if go_on returns False."""
    for name in STEPS:
        if not go_on():
            return
        import_module(name)
    if 'numba.np.arraymath' not in sys.modules:
        _leave_out_blas()


def _leave_out_blas() -> None:
    """Make numba check for SciPy's BLAS only when a matrix product is compiled, not when it is imported.

    The check imports scipy.linalg: half a second, with extension modules that hold the GIL for a tenth of it.
    Kernels contain no matrix products.
    """
    with suppress(AttributeError, ImportError):  # other versions of numba may differ
        linalg: Any = import_module('numba.np.linalg')
        ask = linalg.ensure_blas
        linalg.ensure_blas = lambda: None
        try:
            arraymath: Any = import_module('numba.np.arraymath')
            arraymath.ensure_blas = ask
        finally:
            linalg.ensure_blas = ask


def drop_intermediate_code(kernel: Any) -> None:
    """Free LLVM's intermediate code of a compiled kernel: a fifth of the memory of a node.

    Only a kernel that is compiled later in this process, and calls this one, would need it; such kernels are
    compiled by another process.
    """
    for compiled in kernel.overloads.values():
        with suppress(AttributeError):  # other versions of numba may differ
            compiled.library._shared_module = None
