# SPDX-License-Identifier: Apache-2.0
"""compiled: the decorator of every kernel.

The modules of kernels are loaded twice. As ik_node.kernels they are plain Python and the decorator does
nothing; as ik_node.kernels.native, see takeover.py, it is numba's njit with a cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLAIN = __package__ == 'ik_node.kernels.runtime'


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel, or leave it as it is where the plain modules are loaded.

    Compiled without Python's error model (a division by zero is infinite) and to run without the GIL.
    Kernels that only kernels call need neither a way in from Python nor a cache: the code of those that
    call them contains theirs.
    """
    return function if PLAIN else _njit(function)


def _njit(function: Callable[..., Any]) -> Any:
    import numba  # the plain kernels do without

    from ik_node.kernels.runtime import cache
    from ik_node.kernels.runtime.inner_kernels import PartCompiler
    from ik_node.kernels.runtime.signatures import KERNELS

    njit: Any = numba.njit
    options: dict[str, Any] = {'error_model': 'numpy', 'nogil': True, 'no_cfunc_wrapper': True}
    if function.__name__ not in KERNELS:
        return _of_plain_types(
            njit(no_cpython_wrapper=True, pipeline_class=PartCompiler, **options)(function)
        )
    # numba keys its cache by the text of one file and misses a change of a callee in another: the folder
    # does not. numba picks the folder when it decorates, so it need not be set for longer.
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache.folder(Path(function.__code__.co_filename)))
    try:
        return _of_plain_types(njit(cache=True, **options)(function))
    finally:
        config.CACHE_DIR = before


def _of_plain_types(kernel: Any) -> Any:
    """Keep numba from compiling a kernel once more for types that need no code of their own.

    An int serves for a literal 0, and a read-only array for a writable one where all others are read-only.
    """
    from numba import types

    from ik_node.kernels.runtime.signatures import kind_of

    unliteral: Any = vars(types)['unliteral']
    constant = [kind_of(name).startswith('r') for name in inspect.signature(kernel.py_func).parameters]

    def plain(given: Any, fixed: bool) -> Any:
        given = unliteral(given)
        return given.copy(readonly=True) if fixed and isinstance(given, types.Array) else given

    typed = kernel.get_call_template
    kernel.get_call_template = lambda given, named: typed(tuple(map(plain, given, constant)), named)
    return kernel
