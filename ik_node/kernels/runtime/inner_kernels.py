# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled that only kernels call: as parts of those, and for nothing else.

numba optimises every function together with all that it calls, turns it into machine code, and does so again
with each of its callers. That is most of the time that compiling takes and of no use for a function that
Python never calls: here it is left to the kernels that Python calls.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class PartLibrary(JITCodeLibrary):
    """Code that is only there to be linked into that of callers: as it is, and without an address."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - none has one
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Leave out what numba would write into the machine code."""


class PartCompiler(Compiler):
    """numba's compiler, with a PartLibrary for the code."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or PartLibrary(target.codegen(), 'part'), *rest)
