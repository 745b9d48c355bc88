# SPDX-License-Identifier: Apache-2.0
"""Expressions of kernels: each becomes a Value, C text with a type.

What is known while translating is worked out here, so that branches of sizes disappear: after
`n = q.shape[0]` with a static q, n is a number, and `if n > 5` keeps one of its two branches.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from .types import ArrayType, TupleType, Type, c_type, dynamic, join

# Precedence in C, higher binds more strongly. Bit operators rank below comparisons in C, so they are always
# put in parentheses.
ATOM, UNARY, TIMES, PLUS, SHIFT, COMPARE, AND, CHOICE = 8, 7, 6, 5, 4, 3, 2, 1
OPERATORS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Mult: ('*', TIMES),
    ast.Div: ('/', TIMES),
    ast.Add: ('+', PLUS),
    ast.Sub: ('-', PLUS),
    ast.LShift: ('<<', SHIFT),
    ast.RShift: ('>>', SHIFT),
    ast.BitXor: ('^', AND),
    ast.BitAnd: ('&', AND),
}
OF_INTEGERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ('<', operator.lt),
    ast.LtE: ('<=', operator.le),
    ast.Gt: ('>', operator.gt),
    ast.GtE: ('>=', operator.ge),
    ast.Eq: ('==', operator.eq),
    ast.NotEq: ('!=', operator.ne),
}
OF_COMPLEX: dict[type[ast.operator], str] = {ast.Add: 'ik_cadd', ast.Sub: 'ik_csub', ast.Mult: 'ik_cmul'}
MATH = {'sin', 'cos', 'tan', 'asin', 'acos', 'atan2', 'sqrt', 'exp', 'log'}  # the same names in <math.h>
ROUNDED = {'floor': 'floor', 'ceil': 'ceil', 'round': 'rint'}  # Python returns an int
PREDICATES = {'isnan', 'isinf', 'isfinite'}
DTYPES = {'int64': 'i', 'uint64': 'u', 'bool_': 'b', 'float64': 'f'}
SMALLEST, LARGEST = 1.2e-38, 3.4e38  # normal numbers of float


class UnsupportedError(Exception):
    """A construct outside of the subset of Python that is translated. place: file, line and text of it."""

    def __init__(self, what: str, place: str = '') -> None:
        super().__init__(f'{place}: no C for {what}' if place else what)
        self.place = place


@dataclass(frozen=True)
class Value:
    """An expression in C.

    rank: precedence of its outermost operator. known: its value, if that is known while translating.
    whole: of an integer that was rounded from a real number, that number: beyond 2^63 only it is right.
    """

    type: Type
    text: str
    rank: int = ATOM
    known: Any = None
    whole: str = ''

    def within(self, rank: int) -> str:
        """Return the text for a place that binds as strongly as rank."""
        return self.text if self.rank >= rank else f'({self.text})'


def real_literal(value: float, single: bool) -> str:
    """Return a number as C writes it; single: as a float."""
    if math.isnan(value):
        return 'NAN'
    if math.isinf(value):
        return 'INFINITY' if value > 0.0 else '-INFINITY'
    if single and value:  # what float cannot hold is as small or large as it can be
        return repr(math.copysign(min(max(abs(value), SMALLEST), LARGEST), value)) + 'f'
    return repr(value) + ('f' if single else '')


@dataclass(frozen=True)
class Place:
    """Where a part of an array begins, and sizes and strides of the dimensions that remain.

    chosen: the indices that are known, None for others. varies: the offset is another one for each lane.
    """

    offset: str
    sizes: Sequence[Value]
    strides: Sequence[str]
    chosen: tuple[Any, ...]
    varies: bool = False


def add_offsets(offsets: Sequence[str]) -> str:
    """Return the sum of offsets into an array, numbers added up."""
    number = sum(int(offset) for offset in offsets if offset.isdigit())
    terms = [offset for offset in offsets if not offset.isdigit()]
    return ' + '.join([*terms, str(number)] if number or not terms else terms)


def scale_index(index: Value, stride: str) -> str:
    """Return an index times a stride."""
    if index.text == '0' or stride == '0':
        return '0'
    if stride == '1':
        return index.within(PLUS)
    if index.text.isdigit() and stride.isdigit():
        return str(int(index.text) * int(stride))
    return f'{index.within(UNARY)} * {stride}'


def struct_of(kind: Type, members: Sequence[str]) -> str:
    """Return a struct of a type with these members."""
    return f'IK_VALUE({c_type(kind)}){{{", ".join(members)}}}'


class Expressions:
    """The part of function.Function that translates expressions."""

    program: Any  # a Program
    scope: dict[str, Any]  # the globals of the kernel
    variables: dict[str, Type]
    current: dict[str, str]  # by name in Python, the variable in C that it stands for now
    constants: dict[str, Any]  # variables whose value is known
    callees: list[Any]  # of Function
    needs_arena: bool

    def value(self, node: ast.expr) -> Value:
        """Translate an expression. Raises UnsupportedError."""
        method = getattr(self, f'_{type(node).__name__.lower()}', None)
        if method is None:
            raise UnsupportedError(type(node).__name__)
        value: Value = method(node)
        return value

    def place(self, node: ast.AST) -> str:
        """Return file, line and text of a construct, for messages."""
        raise NotImplementedError

    def c_name(self, name: str) -> str:
        """Return the name of a variable in C."""
        raise NotImplementedError

    def new_array(self, element: str, sizes: list[Value]) -> Value:
        """Return a new array as scratch memory."""
        raise NotImplementedError

    def literal(self, value: Any) -> Value:
        """Return a constant."""
        single = self.program.single
        if isinstance(value, bool):
            return Value('b', str(value).lower(), known=value)
        if isinstance(value, int):
            return Value('i', str(value), ATOM if value >= 0 else UNARY, value)
        if isinstance(value, float):
            text = real_literal(value, single)
            return Value('f', text, UNARY if text.startswith('-') else ATOM, value)
        if isinstance(value, complex):
            return Value('c', f'ik_c({real_literal(value.real, single)}, {real_literal(value.imag, single)})')
        if isinstance(value, tuple):
            parts = [self.literal(part) for part in value]
            kind = TupleType(tuple(part.type for part in parts))
            return Value(kind, self.compound(kind, parts), known=value)
        raise UnsupportedError(f'a constant of type {type(value).__name__}')

    def _constant(self, node: ast.Constant) -> Value:
        return self.literal(node.value)

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.constants:
            return self.literal(self.constants[name])
        variable = self.current.get(name, name)
        if variable in self.variables:
            return Value(self.variables[variable], self.c_name(variable))
        if name not in self.scope:
            raise UnsupportedError(f'the name {name}, which has no value yet')
        return self.literal(self.program.constants.get(name, self.scope[name]))

    def _tuple(self, node: ast.Tuple) -> Value:
        parts = [self.value(part) for part in node.elts]
        kind = TupleType(tuple(part.type for part in parts))
        known = tuple(part.known for part in parts)
        return Value(kind, self.compound(kind, parts), known=None if None in known else known)

    def compound(self, kind: TupleType, parts: Sequence[Value]) -> str:
        """Return a struct of values as C writes it."""
        self.program.note_struct(kind)
        texts = [self.member(part, want) for part, want in zip(parts, kind.parts, strict=True)]
        return struct_of(kind, texts)

    def member(self, value: Value, kind: Type) -> str:
        """Return a value for a list in braces, where C++ does not turn an integer into a real number by itself."""
        if kind == 'f' and value.type != 'f' and value.known is None:
            return value.whole or f'(real){value.within(UNARY)}'
        return self.coerce(value, kind).text

    def coerce(self, value: Value, kind: Type) -> Value:
        """Return a value as one of a type that holds it."""
        if value.type == kind or c_type(value.type) == c_type(kind):
            return Value(kind, value.text, value.rank)
        if isinstance(kind, ArrayType) and isinstance(value.type, ArrayType):  # a pointer becomes a view
            return Value(kind, struct_of(kind, [value.text, *map(str, (*value.type.sizes, *value.type.strides))]))
        if isinstance(kind, TupleType) and isinstance(value.type, TupleType):
            parts = [Value(part, f'{value.within(ATOM)}.e{i}') for i, part in enumerate(value.type.parts)]
            return Value(kind, self.compound(kind, parts))
        if kind == 'c':
            return Value('c', f'ik_c({value.text}, 0)')
        return value  # C converts numbers by itself

    # Operators

    def _binop(self, node: ast.BinOp) -> Value:
        return self.operate(node.op, self.value(node.left), self.value(node.right))

    def operate(self, op: ast.operator, a: Value, b: Value) -> Value:
        """Return a op b."""
        kind = join(a.type, b.type)
        if kind == 'b':
            kind = 'i'
        if not isinstance(kind, str):
            raise UnsupportedError('an operator between arrays or tuples')
        if kind == 'c':
            if type(op) not in OF_COMPLEX:
                raise UnsupportedError(f'{type(op).__name__} of complex numbers')
            return Value('c', f'{OF_COMPLEX[type(op)]}({self.coerce(a, "c").text}, {self.coerce(b, "c").text})')
        both = a.known is not None and b.known is not None
        if kind == 'i' and both and type(op) in OF_INTEGERS:
            return self.literal(OF_INTEGERS[type(op)](a.known, b.known))
        if isinstance(op, ast.Pow):
            return self._power(kind, a, b)
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            if kind != 'i':
                raise UnsupportedError('// and % of other than integers')
            return Value('i', f'ik_{"div" if isinstance(op, ast.FloorDiv) else "mod"}({a.text}, {b.text})')
        if type(op) not in OPERATORS:
            raise UnsupportedError(f'the operator {type(op).__name__}')
        symbol, rank = OPERATORS[type(op)]
        if rank in (SHIFT, AND):
            if kind == 'f':
                raise UnsupportedError(f'{symbol} of real numbers')
            return Value(kind, f'{a.within(UNARY)} {symbol} {b.within(UNARY)}', rank)
        if kind == 'f':  # a rounded number as it was: an integer has limits that Python's do not have
            a, b = (Value('f', value.whole) if value.whole else value for value in (a, b))
        left = a.within(rank)
        if isinstance(op, ast.Div) and kind != 'f':
            kind, left = 'f', f'(real){a.within(UNARY)}'
        # The right operand binds more strongly: a - (b - c) is not a - b - c.
        return Value(kind, f'{left} {symbol} {b.within(rank + 1)}', rank)

    def _power(self, kind: str, a: Value, b: Value) -> Value:
        if kind == 'i':
            return Value('i', f'ik_power({a.text}, {b.text})')
        if isinstance(b.known, int):  # pow and a product differ in the last bit
            raise UnsupportedError(f'x ** {b.known}: write the product')
        return Value('f', f'ik_pow({a.text}, {b.text})')

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        a = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            if a.type != 'b':
                raise UnsupportedError('not of other than bool')
            return self.literal(not a.known) if a.known is not None else Value('b', f'!{a.within(UNARY)}', UNARY)
        if not isinstance(node.op, ast.USub):
            raise UnsupportedError(f'the operator {type(node.op).__name__}')
        if a.known is not None and a.type in ('i', 'f'):
            return self.literal(-a.known)
        if a.type == 'c':
            return Value('c', f'ik_cneg({a.text})')
        return Value('i' if a.type == 'b' else a.type, f'-{a.within(ATOM)}', UNARY)  # not --a

    def _boolop(self, node: ast.BoolOp) -> Value:
        decides = isinstance(node.op, ast.Or)  # the value that ends the evaluation
        parts: list[Value] = []
        for item in node.values:
            part = self.value(item)
            if part.type != 'b':
                raise UnsupportedError('and, or of other than bool')
            if part.known is None:
                parts.append(part)
            elif part.known == decides:  # Python does not look at what follows
                if not parts:
                    return self.literal(decides)
                parts.append(part)
                break
        if not parts:
            return self.literal(not decides)
        if len(parts) == 1:
            return parts[0]
        return Value('b', (' || ' if decides else ' && ').join(part.within(COMPARE) for part in parts), AND)

    def _compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        if isinstance(node.ops[0], ast.In):
            entries = self.value(node.comparators[0])
            if not isinstance(entries.type, TupleType) or entries.known is None:
                raise UnsupportedError('in of other than a tuple of constants')
            texts = [f'{left.within(SHIFT)} == {self.literal(entry).within(SHIFT)}' for entry in entries.known]
            return Value('b', ' || '.join(texts), AND)
        values = [left, *map(self.value, node.comparators)]
        pairs = list(zip(values, node.ops, values[1:], strict=False))
        for op in node.ops:
            if type(op) not in COMPARISONS:
                raise UnsupportedError(f'the comparison {type(op).__name__}')
        if all(value.known is not None for value in values):
            return self.literal(all(COMPARISONS[type(op)][1](a.known, b.known) for a, op, b in pairs))
        # Values in the middle of a chain are written twice: without effects that is the same.
        texts = [f'{a.within(SHIFT)} {COMPARISONS[type(op)][0]} {b.within(SHIFT)}' for a, op, b in pairs]
        return Value('b', ' && '.join(texts), COMPARE if len(texts) == 1 else AND)

    def _ifexp(self, node: ast.IfExp) -> Value:
        test = self.test(node.test)
        if test.known is not None:
            return self.value(node.body if test.known else node.orelse)
        a, b = self.value(node.body), self.value(node.orelse)
        kind = join(a.type, b.type)
        wholes = a.whole, b.whole
        a, b = self.coerce(a, kind), self.coerce(b, kind)
        text = f'{test.within(AND)} ? {a.within(AND)} : {b.within(CHOICE)}'
        whole = f'({test.within(AND)} ? {wholes[0]} : {wholes[1]})' if all(wholes) else ''
        return Value(kind, text, CHOICE, whole=whole)

    def test(self, node: ast.expr) -> Value:
        """Translate a condition."""
        value = self.value(node)
        if value.type not in ('b', 'i'):
            raise UnsupportedError('a condition that is neither bool nor int')
        return value

    # Arrays

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = self.value(node.value)
        if owner.type == 'c' and node.attr in ('real', 'imag'):
            return Value('f', f'{owner.within(ATOM)}.{node.attr[:2]}')
        raise UnsupportedError(f'the attribute {node.attr}')

    def array(self, node: ast.expr) -> tuple[Value, ArrayType]:
        """Translate an expression that must be an array."""
        value = self.value(node)
        if not isinstance(value.type, ArrayType):
            raise UnsupportedError('other than an array')
        return value, value.type

    def size(self, array: Value, axis: int) -> Value:
        """Return the size of an array along an axis."""
        assert isinstance(array.type, ArrayType)
        known = array.type.sizes[axis]
        return self.literal(known) if known is not None else Value('i', f'{array.within(ATOM)}.n{axis}')

    def stride(self, array: Value, axis: int) -> str:
        """Return the stride of an array along an axis, in entries."""
        assert isinstance(array.type, ArrayType)
        if axis == array.type.rank - 1:
            return '1'
        known = array.type.strides[axis]
        return str(known) if known is not None else f'{array.within(ATOM)}.s{axis}'

    def pointer(self, array: Value) -> str:
        """Return the address of the first entry."""
        assert isinstance(array.type, ArrayType)
        return array.within(ATOM) if array.type.is_static else f'{array.within(ATOM)}.p'

    def _subscript(self, node: ast.Subscript) -> Value:
        if is_shape(node):
            assert isinstance(node.value, ast.Attribute)
            return self.size(self.value(node.value.value), self._number(node.slice))
        array = self.value(node.value)
        if isinstance(array.type, TupleType):
            part = self._number(node.slice)
            if array.known is not None:
                return self.literal(array.known[part])
            return Value(array.type.parts[part], f'{array.within(ATOM)}.e{part}')
        if not isinstance(array.type, ArrayType):
            raise UnsupportedError('an index into a number')
        place = self.located(array, node)
        if not place.sizes:
            if array.type.constant is not None and None not in place.chosen:
                return self.literal(array.type.constant.values[place.chosen].item())
            return self.entry(array, place)
        if place.strides[-1] != '1':
            raise UnsupportedError('a view whose entries are apart')
        return self._view(array, place.offset, place.sizes, place.strides[:-1])

    def located(self, array: Value, node: ast.Subscript) -> Place:
        """Return what an index or slices choose of an array."""
        assert isinstance(array.type, ArrayType)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        offsets: list[str] = []
        sizes: list[Value] = []
        strides: list[str] = []
        chosen: list[Value] = []
        varies = False
        for axis in range(array.type.rank):
            item = indices[axis] if axis < len(indices) else ast.Slice()
            stride, size = self.stride(array, axis), self.size(array, axis)
            if isinstance(item, ast.Slice):
                first, length = self._span(item, size)
                sizes.append(length)
                strides.append(stride)
            else:
                first = self._index(item, size, node)
                chosen.append(first)
            offsets.append(scale_index(first, stride))
            varies = varies or first.type == 'I'
        return Place(add_offsets(offsets), sizes, strides, tuple(index.known for index in chosen), varies)

    def entry(self, array: Value, place: Place) -> Value:
        """Return an entry of an array."""
        assert isinstance(array.type, ArrayType)
        return Value(array.type.element, f'{self.pointer(array)}[{place.offset}]')

    def _number(self, node: ast.expr) -> int:
        known = self.value(node).known
        if not isinstance(known, int):
            raise UnsupportedError('an index that is not known')
        return known

    def _index(self, node: ast.expr, size: Value, whole: ast.Subscript) -> Value:
        index = self.value(node)
        if index.type not in ('i', 'u', 'b'):
            raise UnsupportedError('an index that is not an integer')
        if index.known is None:
            if self.program.checked:
                place = self.place(whole).replace('\\', '/').replace('"', "'")
                return Value('i', f'ik_index({index.text}, {size.text}, "{place}")')
            return index
        return self.operate(ast.Add(), size, index) if index.known < 0 else index

    def _view(self, array: Value, offset: str, sizes: Sequence[Value], strides: Sequence[str]) -> Value:
        assert isinstance(array.type, ArrayType)
        known = tuple(int(stride) if stride.isdigit() else None for stride in strides)
        kind = ArrayType(array.type.element, tuple(size.known for size in sizes), known)
        pointer = self.pointer(array) + (f' + {offset}' if offset != '0' else '')
        if kind.is_static:
            return Value(kind, pointer, PLUS if offset != '0' else ATOM)
        return Value(kind, struct_of(kind, [pointer, *(size.text for size in sizes), *strides]))

    def _span(self, item: ast.Slice, size: Value) -> tuple[Value, Value]:
        """Return the first index and the length of a slice, which ends where the array ends, as in Python."""
        if item.step is not None:
            raise UnsupportedError('a slice with a step')
        low = self.value(item.lower) if item.lower else self.literal(0)
        high = self.value(item.upper) if item.upper else size
        if any(isinstance(end.known, int) and end.known < 0 for end in (low, high)):
            raise UnsupportedError('a slice from the end')
        if item.upper is None and low.text == '0':
            return low, size
        if low.known is not None and high.known is not None and size.known is not None:
            return low, self.literal(max(min(high.known, size.known) - low.known, 0))
        return low, Value('i', f'ik_span({low.text}, {high.text}, {size.text})')

    # Calls

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if node.keywords:
            raise UnsupportedError('arguments by name')
        target = self.scope.get(name)
        arguments = [self.value(argument) for argument in node.args]
        if isinstance(target, FunctionType):
            return self._kernel(target, arguments)
        return self._builtin(name, arguments)

    def _kernel(self, target: FunctionType, arguments: Sequence[Value]) -> Value:
        callee = self.program.function(target, [argument.type for argument in arguments])
        self.callees.append(callee)
        texts = [self.coerce(argument, want).text for argument, want in zip(arguments, callee.arguments, strict=True)]
        if callee.needs_arena:
            self.needs_arena = True
            texts.insert(0, 'A')
        assert callee.returns is not None
        return Value(callee.returns, f'{callee.name}({", ".join(texts)})')

    def _builtin(self, name: str, arguments: Sequence[Value]) -> Value:
        texts = ', '.join(argument.text for argument in arguments)
        first = arguments[0]
        suffix = 'f' if self.program.single else ''
        if name in ('min', 'max'):
            return self._extreme(name, arguments)
        if name == 'abs':
            if first.type == 'c':
                return Value('f', f'ik_cabs({texts})')
            return Value('f', f'fabs{suffix}({texts})') if first.type == 'f' else Value('i', f'ik_abs({texts})')
        if name in MATH:
            return Value('f', f'{name}{suffix}({texts})')
        if name in ROUNDED:
            whole = f'({ROUNDED[name]}{suffix}({texts}) + 0)'  # an integer has no -0.0
            return Value('i', f'ik_int{whole}', whole=whole)
        if name in PREDICATES:
            return Value('b', f'({name}({texts}) != 0)')
        if name in ('int', 'float', 'bool'):
            if first.known is not None:
                return self.literal({'int': int, 'float': float, 'bool': bool}[name](first.known))
            if name == 'float' and first.whole:
                return Value('f', first.whole)
            if name == 'int' and first.type == 'f':
                return Value('i', f'ik_int({texts})')
            return Value(name[0], f'({c_type(name[0])}){first.within(UNARY)}', UNARY)
        if name == 'complex':
            return Value('c', f'ik_c({texts})')
        if name == 'ldexp':
            return Value('f', f'ldexp{suffix}({first.text}, (int){arguments[1].within(UNARY)})')
        if name == 'frexp':
            kind = TupleType(('f', 'i'))
            self.program.note_struct(kind)
            return Value(kind, f'ik_frexp({texts})')
        raise UnsupportedError(f'a call of {name}')

    def _extreme(self, name: str, arguments: Sequence[Value]) -> Value:
        if all(argument.known is not None for argument in arguments):
            return self.literal((min if name == 'min' else max)(argument.known for argument in arguments))
        result = arguments[0]
        for other in arguments[1:]:
            kind = join(result.type, other.type)
            result = Value(kind, f'ik_{name}_{"f" if kind == "f" else "i"}({result.text}, {other.text})')
        return result

    def _method(self, node: ast.Call, function: ast.Attribute) -> Value:
        owner, name = function.value, function.attr
        if isinstance(owner, ast.Name) and owner.id == 'np':
            return self._numpy(name, node)
        if name in ('argmin', 'argmax'):
            if _is_column(owner):
                assert isinstance(owner, ast.Subscript)
                assert isinstance(owner.slice, ast.Tuple)
                (array, _), column = self.array(owner.value), self.value(owner.slice.elts[1])
                first = f'{self.pointer(array)} + {column.within(PLUS)}'
                return Value('i', f'ik_{name}({first}, {self.size(array, 0).text}, {self.stride(array, 0)})')
            array, _ = self.array(owner)
            return Value('i', f'ik_{name}({self.pointer(array)}, {self.size(array, 0).text}, 1)')
        if name == 'conjugate':
            return Value('c', f'ik_conjugate({self.value(owner).text})')
        array, kind = self.array(owner)
        if name == 'copy':
            new = self.new_array(kind.element, [self.size(array, axis) for axis in range(kind.rank)])
            assert isinstance(new.type, ArrayType)
            if new.type.is_static:
                text = f'ik_copied_{kind.element}({new.text}, {self.pointer(array)}, {new.type.count})'
                return Value(new.type, text)
            source = self.coerce(array, dynamic(kind.element, kind.rank)).text
            return Value(new.type, f'ik_copied_{kind.element}{kind.rank}({new.text}, {source})')
        if name == 'reshape':
            sizes = [self.value(argument) for argument in node.args]
            numbers = [self._number(argument) for argument in node.args[1:]]
            strides = [str(math.prod(numbers[axis:])) for axis in range(len(numbers))]
            view = self._view(array, '0', sizes, strides)
            return view if self.program.keeps_sizes else self.coerce(view, dynamic(kind.element, len(sizes)))
        raise UnsupportedError(f'the method {name}')

    def _numpy(self, name: str, node: ast.Call) -> Value:
        if name in ('uint64', 'int64'):
            number, letter = self.value(node.args[0]), DTYPES[name]
            if isinstance(number.known, int) and letter == 'u':
                return Value('u', f'UINT64_C({number.known})')
            return Value(letter, f'({c_type(letter)}){number.within(UNARY)}', UNARY)
        if name not in ('empty', 'zeros', 'full'):
            raise UnsupportedError(f'np.{name}')
        shape = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
        others = [*node.args[2 if name == 'full' else 1 :], *(keyword.value for keyword in node.keywords)]
        element = 'f'
        if others:
            if not isinstance(others[0], ast.Attribute) or others[0].attr not in DTYPES:
                raise UnsupportedError('this dtype')
            element = DTYPES[others[0].attr]
        new = self.new_array(element, [self.value(size) for size in shape])
        if name == 'empty':
            return new
        value = self.value(node.args[1]).text if name == 'full' else '0'
        return Value(new.type, self.filled(new, value))

    def filled(self, array: Value, value: str) -> str:
        """Return the call that writes a value into all entries, and returns the array."""
        assert isinstance(array.type, ArrayType)
        element, rank = array.type.element, array.type.rank
        if array.type.is_static:
            return f'ik_filled_{element}({array.text}, {array.type.count}, {value})'
        return f'ik_filled_{element}{rank}({array.text}, {value})'


def _is_column(node: ast.expr) -> bool:
    """Whether a node is table[:, column]."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return False
    rows, *columns = node.slice.elts
    whole = isinstance(rows, ast.Slice) and rows.lower is rows.upper is rows.step is None
    return whole and len(columns) == 1 and not isinstance(columns[0], ast.Slice)


def is_shape(node: ast.AST) -> bool:
    """Whether a node is array.shape[axis]."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == 'shape'
