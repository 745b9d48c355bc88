"""numba, loaded without what kernels do not need."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

STEPS = ('llvmlite.binding', 'numba')  # each takes its time; between them the program may end


def load_numba(go_on: Callable[[], bool]) -> None:
    """Load numba; stop early if go_on says so."""
    for name in STEPS:
        if not go_on():
            return
        import_module(name)
    if 'numba.np.arraymath' not in sys.modules:
        _leave_out_blas()


def _leave_out_blas() -> None:
    """Let numba take SciPy's BLAS to be there, and look for it where somebody multiplies matrices.

    It loads scipy.linalg to see whether it is there: half a second, with extension modules that hold the GIL
    for a tenth of it. Kernels multiply no matrices.
    """
    with suppress(AttributeError, ImportError):  # another numba may do it otherwise
        linalg: Any = import_module('numba.np.linalg')
        ask = linalg.ensure_blas
        linalg.ensure_blas = lambda: None
        try:
            arraymath: Any = import_module('numba.np.arraymath')
            arraymath.ensure_blas = ask
        finally:
            linalg.ensure_blas = ask
