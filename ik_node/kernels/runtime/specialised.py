# SPDX-License-Identifier: Apache-2.0
"""Kernels made from a template: a function some of whose globals stand for others.

numba keeps no cache of functions that are given functions, so a loop that several kernels share is
compiled anew around each of them, and cached beside it.
"""

from types import FunctionType
from typing import Any

from .compiled import compiled


def specialised(template: Any, name: str, file: str, **parts: Any) -> Any:
    """Compile template as the kernel name of the module in file, with parts in place of its globals.

    The module in file must import the template: then its cache notices a change in either.
    """
    function = filled(template, name, **parts)
    function.__code__ = function.__code__.replace(co_filename=file)
    return compiled(function)


def filled(template: Any, name: str, **parts: Any) -> FunctionType:
    """Return template as a Python function of this name, with parts in place of its globals."""
    missing = parts.keys() - template.__globals__.keys()
    if missing:
        raise TypeError(f'{template.__name__} has no part {", ".join(sorted(missing))}')
    function = FunctionType(template.__code__, {**template.__globals__, **parts}, name)
    function.__qualname__, function.__doc__ = name, template.__doc__
    return function
