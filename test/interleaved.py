# SPDX-License-Identifier: Apache-2.0
"""Two calls of two threads in every order that can happen: one of them within the other, at each step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import ik_node

PACKAGE = str(Path(ik_node.__file__).parent)


def at_step(number: int, act: Callable[[], None], call: Callable[[], None]) -> bool:
    """Return whether act was done within call: before its bytecode of that number in this package.

    Only between two of these can another thread come in.
    """
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == 'opcode':
            steps += 1
            if steps == number:
                sys.settrace(None)
                act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps >= number
