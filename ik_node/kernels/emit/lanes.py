# SPDX-License-Identifier: Apache-2.0
"""Kernels with several goals at once, one in each lane of a vector register.

A kernel whose loop `for k in each(...)` has independent turns is translated a second time: LANES turns go
through the same instructions. A value that differs from lane to lane has the type 'F', 'I' or 'B' in place of
'f', 'i' or 'b': a vector, or a mask with all bits of a lane set or none. What all lanes share, such as the
model and counters of loops over joints, stays a number. Scratch memory has a vector for each entry.

Control flow that lanes do not share becomes masks, as compilers for graphics processors make them:

    if test:            mask = mask & test, and the body is skipped where no lane is left in it
    x = value           x = pick(mask, value, x), so that other lanes keep theirs
    return, break       the lanes are taken out of the masks around, and the rest goes on without them
    for, while          until no lane is left in the mask of the loop
    a[k], k a vector    a load or store for each lane

A variable that is set and read only inside of a body needs no pick: lanes outside never read theirs. Nor do
variables at the top of a function after a return: the lanes that have returned never come back.

lanes.h has the vectors and functions of math for them. Everything is done lane by lane with the same rounding,
so that the number of lanes changes no bit of a result. Names begin with ikL_, and L becomes their number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any

from .expressions import ATOM, COMPARISONS, ROUNDED, Place, UnsupportedError, Value
from .function import Function
from .program import Program, definition, in_order, struct
from .types import ArrayType, TupleType, Type, c_type, declaration, join

HEADER = Path(__file__).with_name('lanes.h')
TARGETS = {8: 'avx512f,fma', 4: 'avx2,fma'}  # what a processor needs for so many lanes
PICK = {'F': 'ikL_pick_f', 'I': 'ikL_pick_i', 'B': 'ikL_pick_i'}
SPREAD = {'F': 'ikL_all_f', 'I': 'ikL_all_i', 'B': 'ikL_all_b'}
IN_VECTORS = {ast.Mult: '*', ast.Add: '+', ast.Sub: '-', ast.Div: '/'}
SHORT = 4  # statements that cost less than a branch around them


def varies(value: Value) -> bool:
    """Whether a value differs from lane to lane."""
    return isinstance(value.type, str) and value.type.isupper()


def in_each(kind: Type) -> Type:
    """Return the type of values that differ from lane to lane."""
    if isinstance(kind, TupleType):
        return TupleType(tuple(map(in_each, kind.parts)))
    return kind.upper() if isinstance(kind, str) else kind


@dataclass
class Loop:
    """A loop around the statement being translated.

    first: the index of its mask among those in force. region: how many bodies that lanes do not share are
    around it. is_masked: whether lanes leave it one by one.
    """

    node: ast.stmt
    first: int
    region: int
    is_masked: bool


class LaneFunction(Function):
    """A kernel for several lanes. is_masked: it is called where some lanes may take no part."""

    def __init__(self, *given: Any, is_masked: bool) -> None:
        self.is_masked = is_masked
        self._returns_early = False  # some lanes before others
        self._masked_loops: set[ast.stmt] = set()  # that lanes leave one by one
        super().__init__(*given)
        # The first passes may have taken a view of each lane for one that all share.
        self.variables = {name: kind for name, kind in self.variables.items() if name in self._declared}

    def _declare(self, name: str, kind: Type) -> str:
        variable = super()._declare(name, kind)
        self._declared.add(variable)
        return variable

    def _found(self) -> Any:
        return super()._found(), self._returns_early, len(self._masked_loops)

    def _translate(self) -> None:
        self._masks = ['live_'] if self.is_masked or self._returns_early else []
        self._condition = ''  # of the part of an expression being translated: not all lanes need it
        self._region = 0
        self._own: list[set[str]] = []  # of the bodies around, from the innermost that lanes do not share on
        self._around: list[Loop] = []
        self._declared = set(self.parameters)
        super()._translate()

    # Masks

    @property
    def _mask(self) -> str:
        """The lanes that take part in what is being translated; '' where all do, or others do no harm."""
        return ' & '.join(filter(None, (self._masks[-1] if self._masks else '', self._condition)))

    @property
    def _lanes(self) -> str:
        return self._mask or 'ikL_everyone'

    def _leave(self, first: int) -> None:
        """Take the lanes of the current mask out of all masks from index first on."""
        for mask in self._masks[first:-1]:
            self._emit(f'{mask} &= ~{self._masks[-1]};')
        self._emit(f'{self._masks[-1]} = ikL_none;')

    @contextmanager
    def _where(self, condition: str) -> Iterator[None]:
        """Translate a part of an expression that matters only where a condition holds."""
        before = self._condition
        self._condition = ' & '.join(filter(None, (before, condition)))
        yield
        self._condition = before

    @contextmanager
    def _inside(self, masks: Sequence[str], body: Sequence[ast.stmt]) -> Iterator[None]:
        """Translate a body that lanes do not share."""
        before = list(self._masks), self._own
        self._masks += masks
        self._own = [self._own_names(body)]
        self._region += 1
        self._depth += 1
        yield
        self._masks, self._own = before
        self._region -= 1
        self._depth -= 1

    def _own_names(self, body: Sequence[ast.stmt]) -> set[str]:
        """Return the variables that exist only inside of a body: set first, before anything reads them."""
        found: set[str] = set()
        seen: set[str] = set()
        inside = _uses(body)
        whole = _uses(self.tree.body)
        for statement in body:
            if isinstance(statement, ast.Assign):
                names = {
                    node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)
                    if isinstance(node.ctx, ast.Store)
                }  # fmt: skip
                read = set(_uses([statement.value]))
                found |= {name for name in names - seen - read if inside[name] == whole[name]}
            seen |= set(_uses([statement]))
        return found

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        self._own.append(self._own_names(statements))
        super()._block(statements)
        self._own.pop()

    # Statements

    def _if(self, node: ast.If) -> None:
        test = self.test(node.test)
        if test.type != 'B':
            super()._if(node)
            return
        name = self._new_name('test')
        self._emit(f'const ikL_i {name} = {test.text};')
        self._branch(name, node.body)
        if node.orelse:
            self._branch(f'~{name}', node.orelse)

    def _branch(self, test: str, body: Sequence[ast.stmt]) -> None:
        mask = self._new_name('mask')
        outer = self._mask
        self._emit(f'ikL_i {mask} = {f"{outer} & {test}" if outer else test};')
        self._emit('{' if _is_short(body) else f'if (ikL_any({mask})) {{')
        with self._inside([mask], body):
            self._block(body)
        self._emit('}')
        returns = any(isinstance(node, ast.Return) for statement in body for node in ast.walk(statement))
        if returns and self._returns_early and self._region == 0:
            self._emit(f'if (!ikL_any(live_)) {self._goodbye}')

    @property
    def _goodbye(self) -> str:
        return 'return result_;' if self.returns and c_type(self.returns) != 'void' else 'return;'

    def _return(self, node: ast.Return) -> None:
        if self._region > 0:
            self._returns_early = True
        if not self._returns_early:
            super()._return(node)
            return
        if node.value is not None:
            value = self.value(node.value)
            kind = in_each(join(self.returns, value.type))
            self.returns = kind
            value = self._kept(self.coerce(value, kind))
            parts = enumerate(kind.parts) if isinstance(kind, TupleType) else [('', kind)]
            for part, of in parts:
                member = f'.e{part}' if part != '' else ''
                mask = self._masks[-1] if self._masks else 'ikL_everyone'
                self._emit(f'result_{member} = {PICK[str(of)]}({mask}, {value.text}{member}, result_{member});')
        if self._region > 0:
            self._leave(0)
        else:
            self._emit(self._goodbye)

    def _break(self, node: ast.Break) -> None:  # noqa: ARG002
        self._go('break;', 0)

    def _continue(self, node: ast.Continue) -> None:  # noqa: ARG002
        self._go('continue;', 1)

    def _go(self, text: str, beyond: int) -> None:
        """Leave a loop, whose two masks are those of all turns and of this one, or this turn."""
        loop = self._around[-1]
        if loop.is_masked:
            self._leave(loop.first + beyond)
        elif self._region == loop.region:
            self._emit(text)
        else:
            self._masked_loops.add(loop.node)

    def _over_range(self, node: ast.For, call: ast.Call) -> None:
        assert isinstance(call.func, ast.Name)
        if call.func.id == 'each':
            self._over_lanes(node, call)
            return
        arguments = [self.value(argument) for argument in call.args]
        end = arguments[min(len(arguments) - 1, 1)]
        if not varies(end) and node not in self._masked_loops:
            self._around.append(Loop(node, 0, self._region, False))
            super()._over_range(node, call)
            self._around.pop()
            return
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        if len(arguments) > 2 or varies(arguments[0]) is not varies(end) is False or name not in self._counters | {'_'}:
            raise UnsupportedError('a loop that lanes leave one by one, with a step or with a counter read after it')
        counter = self._new_name('k') if name == '_' else self.c_name(name)
        if name != '_':
            self._declare(name, 'i')
        start = arguments[0].text if len(arguments) > 1 else '0'
        stop = self._new_name('end')
        self._emit(f'const {declaration(end.type, stop)} = {end.text};')
        loop = self._new_name('loop')
        self._emit(f'ikL_i {loop} = {self._lanes};')
        goes_on = f'{loop} &= ikL_all_i({counter}) < {stop}' if varies(end) else f'{counter} < {stop}'
        self._emit(f'for (int64_t {counter} = {start};; {counter}++) {{')
        self._emit(f'    {goes_on};' if varies(end) else f'    if (!({goes_on})) break;')
        self._turns(node, loop)

    def _while(self, node: ast.While) -> None:
        loop = self._new_name('loop')
        start = len(self._lines)
        self._emit(f'ikL_i {loop} = {self._lanes};')
        self._emit('for (;;) {')
        self._masks.append(loop)
        test = self.test(node.test)
        self._masks.pop()
        if test.type != 'B' and node not in self._masked_loops:
            del self._lines[start:]
            self._around.append(Loop(node, 0, self._region, False))
            super()._while(node)
            self._around.pop()
            return
        self._emit(f'    {loop} &= {self.coerce(test, "B").text};')
        self._turns(node, loop)

    def _turns(self, node: ast.For | ast.While, loop: str) -> None:
        """Write the rest of a loop that lanes leave one by one: mask of one turn, body, brace."""
        turn = self._new_name('turn')
        self._emit(f'    if (!ikL_any({loop})) break;')
        self._emit(f'    ikL_i {turn} = {loop};')
        self._around.append(Loop(node, len(self._masks), self._region + 1, True))
        with self._inside([loop, turn], node.body):
            self._block(node.body)
        self._around.pop()
        self._emit('}')

    def _over_lanes(self, node: ast.For, call: ast.Call) -> None:
        """Write the loop whose turns the lanes share out."""
        (count,) = map(self.value, call.args)
        assert isinstance(node.target, ast.Name)
        self.variables[node.target.id] = 'I'
        self._declared.add(node.target.id)
        name = self.c_name(node.target.id)
        self._emit(f'for (int64_t first_ = 0; first_ < {count.text}; first_ += LANES) {{')
        self._emit(f'    const ikL_i {name} = first_ + ikL_numbers;')
        self._emit(f'    ikL_i each_ = {name} < {count.text}, turn_ = each_;')
        self._around.append(Loop(node, 0, 0, True))
        self._masks = ['each_', 'turn_']
        self._depth += 1
        self._block(node.body)
        self._depth -= 1
        self._masks = []
        self._around.pop()
        self._emit('}')

    def _augassign(self, node: ast.AugAssign) -> None:
        target, value = self.value(node.target), self.value(node.value)
        if isinstance(target.type, ArrayType):
            raise UnsupportedError('an operator between arrays')
        self._store(node.target, self.operate(node.op, target, value))

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._store_name(target.id, value)
            return
        assert isinstance(target, ast.Subscript)
        array, kind = self.array(target.value)
        place = self.located(array, target)
        pointer, lanes = self.pointer(array), self._lanes
        element = kind.element
        if place.sizes:
            if element != 'F' or kind.sizes != tuple(size.known for size in place.sizes) or _is_apart(kind):
                raise UnsupportedError('a value for a part of an array')
            self._emit(f'ikL_fill({pointer}, {kind.count}, {self.coerce(value, "F").text}, {lanes});')
        elif place.varies or kind.scattered:
            at = f'{array.within(ATOM)}.at + {place.offset}' if kind.scattered else place.offset
            source = self.coerce(value, element.upper()).text
            base = f'(ikL_f *){pointer}' if kind.scattered and element == 'F' else pointer
            few = not kind.scattered and kind.rank == 1 and kind.sizes[0] is not None and element == 'F'
            name, size = ('ikL_put_few', f'{kind.sizes[0]}, ') if few else (f'ikL_put_{element}', '')
            self._emit(f'{name}({base}, {size}{at}, {source}, {lanes});')
        elif element != 'F':
            raise UnsupportedError('a value for an array that lanes share')
        else:
            text, entry = self.coerce(value, 'F').text, f'{pointer}[{place.offset}]'
            self._emit(f'{entry} = {f"ikL_pick_f({self._mask}, {text}, {entry})" if self._mask else text};')

    def _store_name(self, name: str, value: Value) -> None:
        is_own = self._region == 0 or any(name in own for own in self._own)
        if not is_own and not isinstance(value.type, str):
            raise UnsupportedError('an array or tuple for some lanes only')
        variable = self._declare(name, value.type if is_own else in_each(value.type))
        kind = self.variables[variable]
        text, place = self.coerce(value, kind).text, self.c_name(variable)
        if not is_own:
            assert isinstance(kind, str)
            text = f'{PICK[kind]}({self._mask}, {text}, {place})'
        self._emit(f'{place} = {text};')

    # Expressions

    def _name(self, node: ast.Name) -> Value:
        changed = self.program.replaced.get(node.id)
        return super()._name(node) if changed is None else self.literal(changed)

    def coerce(self, value: Value, kind: Type) -> Value:
        """Return a value as one of a type that holds it: a number becomes one of each lane."""
        if value.type == kind or not (isinstance(kind, str) and isinstance(value.type, str)):
            return super().coerce(value, kind)
        if kind.islower():
            if value.type.isupper():
                raise UnsupportedError('a value of each lane where one is wanted')
            return super().coerce(value, kind)
        if value.type.islower():
            return Value(kind, f'{SPREAD[kind]}({value.text})')
        if kind == 'F' and value.type == 'I':
            return Value('F', value.whole or f'ikL_real({value.text})')
        raise UnsupportedError(f'{value.type} as {kind}')

    def operate(self, op: ast.operator, a: Value, b: Value) -> Value:
        """Return a op b."""
        if not (varies(a) or varies(b)):
            return super().operate(op, a, b)
        kind = join(a.type, b.type)
        if kind == 'F' and isinstance(op, ast.Pow):
            return Value('F', f'ikL_pow({self.coerce(a, "F").text}, {self.coerce(b, "F").text}, {self._lanes})')
        if kind not in ('F', 'I') or type(op) not in IN_VECTORS or (kind == 'I' and isinstance(op, ast.Div)):
            raise UnsupportedError(f'{type(op).__name__} of values of each lane')
        if kind == 'F':
            a, b = (self.coerce(x, 'F') if x.type == 'I' else x for x in (a, b))
            a, b = (Value('f', f'(real)({x.text})') if x.type == 'i' else x for x in (a, b))
        return Value(kind, f'({a.within(ATOM)} {IN_VECTORS[type(op)]} {b.within(ATOM)})')

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        a = self.value(node.operand)
        if not varies(a):
            return super()._unaryop(node)
        return Value(a.type, f'{"~" if isinstance(node.op, ast.Not) else "-"}{a.within(ATOM)}', ATOM - 1)

    def _boolop(self, node: ast.BoolOp) -> Value:
        decides = isinstance(node.op, ast.Or)
        text = ''
        for item in node.values:
            with self._where(f'{"~" if decides else ""}({text})' if text else ''):
                part = self.value(item)
            if part.known == decides:
                return super()._boolop(node)
            if part.known is None:
                text += (f' {"|" if decides else "&"} ' if text else '') + self.coerce(part, 'B').within(ATOM)
                if not varies(part) and not text:
                    return super()._boolop(node)
        if all(not varies(self.value(item)) for item in node.values):
            return super()._boolop(node)
        return Value('B', f'({text})')

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.value(node.left), *map(self.value, node.comparators)]
        if not any(map(varies, values)):
            return super()._compare(node)
        texts = []
        for a, op, b in zip(values, node.ops, values[1:], strict=False):
            kind = in_each(join(a.type, b.type))
            symbol = COMPARISONS[type(op)][0]
            texts.append(f'(ikL_i)({self.coerce(a, kind).text} {symbol} {self.coerce(b, kind).text})')
        return Value('B', f'({" & ".join(texts)})')

    def test(self, node: ast.expr) -> Value:
        """Translate a condition."""
        value = self.value(node)
        return value if value.type == 'B' else super().test(node)

    def _ifexp(self, node: ast.IfExp) -> Value:
        test = self.test(node.test)
        if test.type != 'B':
            return super()._ifexp(node)
        with self._where(test.text):
            a = self.value(node.body)
        with self._where(f'~{test.text}'):
            b = self.value(node.orelse)
        kind = in_each(join(a.type, b.type))
        assert isinstance(kind, str)
        return Value(kind, f'{PICK[kind]}({test.text}, {self.coerce(a, kind).text}, {self.coerce(b, kind).text})')

    def _assign_each(self, targets: Sequence[ast.expr], source: ast.expr) -> None:
        if isinstance(source, ast.IfExp) and self.test(source.test).type == 'B':
            raise UnsupportedError('one of two tuples for each lane')
        super()._assign_each(targets, source)

    def _builtin(self, name: str, arguments: Sequence[Value]) -> Value:
        if not any(map(varies, arguments)):
            return super()._builtin(name, arguments)
        if name in ('min', 'max'):
            result = arguments[0]
            for other in arguments[1:]:
                kind = in_each(join(result.type, other.type))
                texts = ', '.join(self.coerce(value, kind).text for value in (result, other))
                result = Value(kind, f'ikL_{name}_{"f" if kind == "F" else "i"}({texts})')
            return result
        texts = ', '.join(self.coerce(argument, 'F').text for argument in arguments)
        if name in ('abs', 'sqrt'):
            return Value('F', f'ikL_{name}({texts})')
        if name in ('sin', 'cos', 'atan2'):
            return Value('F', f'ikL_{name}({texts}, {self._lanes})')
        if name in ROUNDED:
            whole = f'(ikL_{ROUNDED[name]}({texts}) + 0.0)'
            return Value('I', f'ikL_whole({whole})', whole=whole)
        if name == 'isnan':
            return Value('B', f'ikL_isnan({texts})')
        raise UnsupportedError(f'a call of {name} for each lane')

    def _kernel(self, target: FunctionType, arguments: Sequence[Value]) -> Value:
        kinds = [argument.type for argument in arguments]
        callee = self.program.function(target, kinds, bool(self._mask))
        self.callees.append(callee)
        texts = [self._mask] if callee.is_masked else []
        texts += [self.coerce(argument, want).text for argument, want in zip(arguments, callee.arguments, strict=True)]
        return Value(callee.returns, f'{callee.name}({", ".join(texts)})')

    # Memory

    def size(self, array: Value, axis: int) -> Value:
        """Return the size of an array along an axis."""
        assert isinstance(array.type, ArrayType)
        if array.type.scattered and array.type.sizes[axis] is None:
            return Value('i', 'no_size')
        return super().size(array, axis)

    def new_array(self, element: str, sizes: list[Value]) -> Value:
        """Return a new array on the stack, with an entry for each lane."""
        if element != 'f':
            raise UnsupportedError('an array of other than real numbers for each lane')
        return super().new_array('F', sizes)

    def _index(self, node: ast.expr, size: Value, whole: ast.Subscript) -> Value:
        index = self.value(node)
        return index if index.type == 'I' else super()._index(node, size, whole)

    def _span(self, item: ast.Slice, size: Value) -> tuple[Value, Value]:
        low = self.value(item.lower) if item.lower else None
        if low is not None and varies(low):
            if item.upper:
                raise UnsupportedError('a slice of each lane with an end')
            return low, Value('i', 'no_size')
        return super()._span(item, size)

    def _view(self, array: Value, offset: str, sizes: Sequence[Value], strides: Sequence[str]) -> Value:
        assert isinstance(array.type, ArrayType)
        view = super()._view(array, offset, sizes, strides)
        assert isinstance(view.type, ArrayType)
        kind = array.type
        is_new = 'no_size' in view.text or any(name in offset for name in self._vectors())
        if not (kind.scattered or is_new):
            return view
        at = f'{array.within(ATOM)}.at + {offset}' if kind.scattered else f'{SPREAD["I"]}(0) + {offset}'
        pointer = self.pointer(array) if kind.scattered else f'(void *){self.pointer(array)}'
        return Value(replace(view.type, scattered=True), f'(ikL_rows){{{pointer}, {at}}}')

    def _vectors(self) -> set[str]:
        return {self.c_name(name) for name, kind in self.variables.items() if kind == 'I'}

    def entry(self, array: Value, place: Place) -> Value:
        """Return an entry of an array, of another place for each lane if need be."""
        assert isinstance(array.type, ArrayType)
        kind = array.type
        if not (place.varies or kind.scattered):
            return super().entry(array, place)
        at = f'{array.within(ATOM)}.at + {place.offset}' if kind.scattered else place.offset
        pointer = f'({c_type(kind.element)} *){self.pointer(array)}' if kind.scattered else self.pointer(array)
        return Value(kind.element.upper(), f'ikL_get_{kind.element}({pointer}, {at}, {self._lanes})')

    def _unpacked(self, value: Value, count: int) -> list[Value]:
        if isinstance(value.type, ArrayType) and value.type.scattered:
            return [self.entry(value, Place(str(index), (), (), ())) for index in range(count)]
        return super()._unpacked(value, count)

    # The whole function

    @property
    def head(self) -> str:
        """The head of the function in C."""
        assert self.returns is not None
        texts = ['ikL_i live_'] if self.is_masked else []
        pairs = zip(self.parameters, self.arguments, strict=True)
        texts += [declaration(kind, self.c_name(name)) for name, kind in pairs]
        return f'IKL_FUNCTION {declaration(self.returns, self.name)}({", ".join(texts)})'

    @property
    def text(self) -> str:
        """The function in C."""
        lines = super().text.split('\n')
        start = lines.index('{') + 1
        first = ['    ikL_i live_ = ikL_everyone;'] if self._returns_early and not self.is_masked else []
        if self._returns_early and self._goodbye != 'return;':
            assert self.returns is not None
            first.append(f'    {declaration(self.returns, "result_")};')
            if not lines[-2].startswith('    return'):
                lines.insert(-1, f'    {self._goodbye}')
        return '\n'.join([*lines[:start], *first, *lines[start:]])


def _uses(nodes: Sequence[ast.AST]) -> Mapping[str, int]:
    """Return how often names appear."""
    found: dict[str, int] = {}
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Name):
                found[node.id] = found.get(node.id, 0) + 1
    return found


def _is_apart(kind: ArrayType) -> bool:
    """Whether rows of an array are not next to each other."""
    return kind.rank > 1 and kind.strides[-1] != kind.sizes[-1]


def _is_short(body: Sequence[ast.stmt]) -> bool:
    """Whether a body takes less than a branch around it: few assignments of numbers, without calls."""
    return len(body) <= SHORT and all(
        isinstance(statement, (ast.Assign, ast.AugAssign))
        and not any(isinstance(node, (ast.Call, ast.Subscript)) for node in ast.walk(statement))
        for statement in body
    )


class LaneProgram(Program):
    """Kernels for several lanes. replaced: constants of kernels that have other values here."""

    def __init__(self, replaced: Mapping[str, float]) -> None:
        super().__init__(keeps_sizes=True)
        self.replaced = replaced

    def function(self, kernel: FunctionType, arguments: Sequence[Type], is_masked: bool = False) -> LaneFunction:
        """Return a kernel for arguments of these types. Raises UnsupportedError."""
        key = kernel, tuple(arguments), is_masked
        if key not in self._functions:
            name = self._name(kernel).replace('ik_', 'ikL_', 1)
            given = self, kernel, definition(kernel), name, tuple(arguments)
            self._functions[key] = LaneFunction(*given, is_masked=is_masked)
        found = self._functions[key]
        assert isinstance(found, LaneFunction)
        return found


def is_for_lanes(kernel: FunctionType) -> bool:
    """Whether a kernel is translated for lanes too: it has a loop over each."""
    return 'each' in kernel.__code__.co_names


def lane_source(kernels: Mapping[str, FunctionType], scalars: Mapping[str, Function], main: Program) -> str:
    """Return the C of kernels for every number of lanes, and of functions that call the widest there is.

    The module of a kernel has REPLACED, as of LaneProgram, and SIZES, the sizes of arguments (None where they
    are known at run time only): for others, and without such vectors, the scalar function does the work. The first
    argument, lanes, is how many lanes there are at most; the result of the function is how many there were.
    """
    program = LaneProgram(
        {name: x for kernel in kernels.values() for name, x in kernel.__globals__['REPLACED'].items()}
    )
    functions, dispatchers = [], []
    for name, kernel in kernels.items():
        sizes, scalar = kernel.__globals__['SIZES'], scalars[name]
        kinds: list[Type] = []
        texts, checks = [], ['true']
        for parameter, kind in zip(scalar.parameters, scalar.arguments, strict=True):
            text = scalar.c_name(parameter)
            if isinstance(kind, ArrayType):
                known = sizes.get(parameter, (None,) * kind.rank)
                strides = tuple(None if None in known else size for size in known[1:])
                checks += [f'{text}.n{axis} == {size}' for axis, size in enumerate(known) if size is not None]
                checks += [f'{text}.s{axis} == {stride}' for axis, stride in enumerate(strides) if stride is not None]
                kind = replace(kind, sizes=known, strides=strides)
                text += '.p' if kind.is_static else ''
            kinds.append(kind)
            texts.append(text)
        functions.append(program.function(kernel, kinds))
        dispatchers.append(_dispatcher(scalar, functions[-1].name, texts, ' && '.join(checks)))
    for name, kind in program.structs.items():
        if not name.startswith('ikL_'):
            main.note_struct(kind)
    own = [struct(name, kind) for name, kind in program.structs.items() if name.startswith('ikL_')]
    body = '\n\n'.join([HEADER.read_text(encoding='utf-8'), *own, *(each.text for each in in_order(functions))])
    widths = [
        f'#undef LANES\n#undef IK_TARGET\n#define LANES {lanes}\n#define IK_TARGET "{target}"\n'
        + body.replace('ikL_', f'ik{lanes}_').replace('IKL_', f'IK{lanes}_')
        for lanes, target in TARGETS.items()
    ]
    start = '#if defined(__x86_64__)', '#include <cpuid.h>', '#include <immintrin.h>'
    return '\n'.join([*start, *widths, '#endif', *dispatchers])


def _dispatcher(scalar: Function, name: str, texts: Sequence[str], fits: str) -> str:
    """Return the function of C that calls the widest kernel for arguments that fit, or else the scalar one."""
    lines = [scalar.head.replace(scalar.name, f'{scalar.name}_wide'), '{', '#if defined(__x86_64__)']
    for lanes in TARGETS:
        given = ', '.join(['1', *texts[1:]])
        call = f'{name.replace("ikL_", f"ik{lanes}_")}({given}); return {lanes};'
        lines.append(f'    if ({texts[0]} >= {lanes} && ik{lanes}_supported() && {fits}) {{ {call} }}')
    given = ', '.join([*(['A'] if scalar.needs_arena else []), *map(scalar.c_name, scalar.parameters)])
    return '\n'.join([*lines, '#endif', f'    return {scalar.name}({given});', '}'])
