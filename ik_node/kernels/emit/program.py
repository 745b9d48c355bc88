# SPDX-License-Identifier: Apache-2.0
"""All functions of C that some kernels need."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from .expressions import UnsupportedError
from .function import Function
from .types import ArrayType, TupleType, Type, c_type, declaration, dynamic

RUNTIME, ARENA = (Path(__file__).with_name(name) for name in ('runtime.h', 'arena.h'))
IN_RUNTIME = 'ik_tfi'  # the struct that runtime.h declares, of frexp


@cache
def _definitions(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(Path(file).read_text(encoding='utf-8'))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def definition(kernel: FunctionType) -> ast.FunctionDef:
    """Return the source of a kernel; of one that was made from a template, that of the template."""
    return _definitions(kernel.__globals__['__file__'])[kernel.__code__.co_name]


class Program:
    """Kernels in C, each once for each set of argument types.

    single: float in place of double. keeps_sizes: sizes that are known belong to the types, so that loops
    have known ends, branches of sizes disappear, and scratch memory is on the stack; what remains of unknown
    size is refused. checked: every index is checked when it runs, and scratch memory begins as NaN.
    constants: what takes the place of constants of the kernels' modules, by name.
    """

    def __init__(
        self,
        *,
        single: bool = False,
        keeps_sizes: bool = False,
        checked: bool = False,
        constants: Mapping[str, float] | None = None,
    ) -> None:
        self.single, self.keeps_sizes, self.checked = single, keeps_sizes, checked
        self.constants = constants or {}
        self._functions: dict[Any, Function | None] = {}
        self._names: set[str] = set()
        self.structs: dict[str, TupleType] = {}

    def function(self, kernel: FunctionType, arguments: Sequence[Type]) -> Function:
        """Return a kernel for arguments of these types. Raises UnsupportedError."""
        kinds = tuple(
            dynamic(kind.element, kind.rank) if isinstance(kind, ArrayType) and not self.keeps_sizes else kind
            for kind in arguments
        )
        constants = tuple(id(kind.constant) if isinstance(kind, ArrayType) else 0 for kind in kinds)
        key = kernel, kinds, constants
        if key not in self._functions:
            self._functions[key] = None
            self._functions[key] = Function(self, kernel, definition(kernel), self._name(kernel), kinds)
        found = self._functions[key]
        if found is None:
            raise UnsupportedError(f'{kernel.__name__}, which calls itself')
        return found

    def _name(self, kernel: FunctionType) -> str:
        stem = name = f'ik_{kernel.__name__}'
        number = 1
        while name in self._names:
            number += 1
            name = f'{stem}_{number}'
        self._names.add(name)
        return name

    def note_struct(self, kind: TupleType) -> None:
        """Note that the program needs a struct for tuples of a type."""
        for part in kind.parts:
            if isinstance(part, TupleType):
                self.note_struct(part)
        self.structs.setdefault(c_type(kind), kind)

    def source(self, entries: Sequence[Function], constants: str = '') -> str:
        """Return the C of entries and all that they call, after other C that declares constants."""
        for entry in entries:
            entry.is_entry = True
        structs = [struct(name, kind) for name, kind in self.structs.items() if name != IN_RUNTIME]
        parts = [
            f'typedef {"float" if self.single else "double"} real;',
            RUNTIME.read_text(encoding='utf-8'),
            '' if self.keeps_sizes else ARENA.read_text(encoding='utf-8'),
            '\n'.join(structs),
            constants,
            *(function.text for function in in_order(entries)),
        ]
        return '\n\n'.join(filter(None, parts)) + '\n'


def struct(name: str, kind: TupleType) -> str:
    members = [f'{declaration(part, f"e{index}")};' for index, part in enumerate(kind.parts)]
    return f'typedef struct {{ {" ".join(members)} }} {name};'


def in_order(entries: Sequence[Function]) -> list[Function]:
    """Return functions and all that they call, each after those."""
    order: dict[int, Function] = {}

    def visit(function: Function) -> None:
        if id(function) not in order:
            for callee in function.callees:
                visit(callee)
            order[id(function)] = function

    for entry in entries:
        visit(entry)
    return list(order.values())
