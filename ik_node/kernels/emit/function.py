# SPDX-License-Identifier: Apache-2.0
"""One kernel for one set of argument types, as a function of C."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence, Set
from types import FunctionType
from typing import Any

from .expressions import COMPARE, Expressions, UnsupportedError, Value, is_shape
from .types import VOID, ArrayType, TupleType, Type, c_type, declaration, dynamic, join, static

# Words of C and C++, and what runtime.h calls its own: variables of these names get another one.
WORDS = (
    'auto bool break case char const continue default do double else enum extern false float for goto if '
    'inline int long real register restrict return short signed sizeof static struct switch true typedef '
    'union unsigned void volatile while A NAN INFINITY y0 y1 yn j0 j1 jn '
    'alignas alignof and and_eq asm bitand bitor catch class compl concept consteval constexpr constinit const_cast '
    'co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace new noexcept '
    'not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert '
    'static_cast template this thread_local throw try typeid typename using virtual wchar_t xor xor_eq'
)
RESERVED = frozenset(WORDS.split())
WORD, STORED = re.compile(r'\w+'), re.compile(r'(?m)^ *(\w+) = ')
PURE = re.compile(r' *(\w+) = [^()]*;')  # calls nothing
IN_PLACE = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*', ast.Div: '/', ast.RShift: '>>'}


class Function(Expressions):
    """Translates the statements of a kernel, again and again until no variable changes its type any more.

    A variable has one type, the widest of all values that it is given: in `x = 0` followed by `x = 0.5 * y`
    it is real from the beginning. So the first pass may be wrong about the statements before the one that
    widens a variable, the next one is right about these, and types only ever get wider.
    """

    def __init__(
        self,
        program: Any,  # a Program
        source: FunctionType,
        tree: ast.FunctionDef,
        name: str,
        arguments: tuple[Type, ...],
    ) -> None:
        self.program, self.scope, self.tree, self.name = program, source.__globals__, tree, name
        self.arguments = arguments
        self.parameters = [argument.arg for argument in tree.args.args]
        self.variables = dict(zip(self.parameters, arguments, strict=True))
        self.returns: Type | None = None
        self.needs_arena = False  # it, or what it calls, takes scratch memory from the arena
        self.allocates = False  # it does so itself
        self.is_entry = False
        self._counters = _counters(tree)
        self._once = _stored_once(tree) - set(self.parameters)
        while True:
            before = self._found()
            self._translate()
            if before == self._found():
                break
        if self.returns is None:
            self.returns = VOID
        if self._buffers and isinstance(self.returns, TupleType) and self.returns.holds_arrays:
            raise UnsupportedError('arrays as results, whose memory may end with the function', self.place(tree))
        if isinstance(self.returns, TupleType) and self.returns.parts:
            program.note_struct(self.returns)

    def _found(self) -> Any:
        """Return what is known of the function: it is translated until this stays the same."""
        return dict(self.variables), self.returns, self.needs_arena

    def _translate(self) -> None:
        self.constants: dict[str, Any] = {}
        self.current: dict[str, str] = {}
        self.callees: list[Any] = []
        self._lines: list[str] = []
        self._buffers: list[str] = []  # declarations of arrays on the stack
        self._depth, self._serial, self._loops = 1, 0, 0
        self.allocates = False
        self._block(self.tree.body)

    # Names and memory

    def c_name(self, name: str) -> str:
        """Return the name of a variable in C."""
        return f'{name}_' if name in RESERVED else name

    def place(self, node: ast.AST) -> str:
        """Return file, line and text of a construct, for messages."""
        file = str(self.scope['__file__']).rpartition('kernels/')[2]
        return f'{file}:{getattr(node, "lineno", 0)}: {ast.unparse(node).splitlines()[0]}'

    def _new_name(self, stem: str) -> str:
        self._serial += 1
        return f'{stem}_{self._serial}'

    def _declare(self, name: str, kind: Type) -> str:
        """Note that a name gets a value of a type; return its variable in C.

        A name of Python may hold a number first and an array later: in C these are two variables.
        """
        variable, number = name, 1
        while variable in self.variables and _family(self.variables[variable]) != _family(kind):
            number += 1
            variable = f'{name}_{number}_'
        self.variables[variable] = join(self.variables.get(variable), kind)
        self.current[name] = variable
        return variable

    def new_array(self, element: str, sizes: list[Value]) -> Value:
        """Return a new array: on the stack where that is wanted and its size known, else from the arena."""
        if self.program.keeps_sizes:
            known = [size.known for size in sizes]
            if None not in known:
                if self._loops:  # each round needs one of its own, as what the last one made may still be in use
                    raise UnsupportedError('an array that is made in a loop')
                kind = static(element, known)
                name = self._new_name('space')
                self._buffers.append(f'{c_type(element)} {name}[{max(kind.count, 1)}];')
                return Value(kind, name)
            raise UnsupportedError('an array whose size is not known')
        self.needs_arena = self.allocates = True
        texts = ', '.join(size.text for size in sizes)
        return Value(dynamic(element, len(sizes)), f'ik_new_{element}{len(sizes)}(A, {texts})')

    # Statements

    def _emit(self, text: str) -> None:
        self._lines.append('    ' * self._depth + text)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            method = getattr(self, f'_{type(statement).__name__.lower()}', None)
            try:
                if method is None:
                    raise UnsupportedError(type(statement).__name__)
                method(statement)
            except (UnsupportedError, TypeError) as error:
                if isinstance(error, UnsupportedError) and error.place:
                    raise
                raise UnsupportedError(str(error), self.place(statement)) from error
            if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
                break  # what follows is never reached, and may have no types

    def _body(self, head: str, statements: Sequence[ast.stmt], first: Sequence[str] = ()) -> None:
        """Write a head and the statements below it; the caller closes the brace."""
        self._emit(f'{head} {{')
        self._depth += 1
        for line in first:
            self._emit(line)
        self._block(statements)
        self._depth -= 1

    def _loop(self, head: str, statements: Sequence[ast.stmt], first: Sequence[str] = ()) -> None:
        """Write a loop."""
        self._loops += 1
        self._body(head, statements, first)
        self._loops -= 1
        self._emit('}')

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._emit(f'{self.value(node.value).text};')

    def _pass(self, node: ast.Pass) -> None: ...

    def _break(self, node: ast.Break) -> None:  # noqa: ARG002
        self._emit('break;')

    def _continue(self, node: ast.Continue) -> None:  # noqa: ARG002
        self._emit('continue;')

    def _if(self, node: ast.If) -> None:
        test = self.test(node.test)
        if test.known is not None:
            self._block(node.body if test.known else node.orelse)
            return
        self._body(f'if ({test.text})', node.body)
        if node.orelse:
            self._body('} else', node.orelse)
        self._emit('}')

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise UnsupportedError('else of a loop')
        self._loop(f'while ({self.test(node.test).text})', node.body)

    def _return(self, node: ast.Return) -> None:
        text, kind = '', join(self.returns, VOID) if node.value is None else VOID
        if node.value is not None:
            value = self.value(node.value)
            kind = join(self.returns, value.type)
            if isinstance(kind, ArrayType):
                raise UnsupportedError('an array as the only result')
            text = self.coerce(value, kind).text
        self.returns = kind
        if self.allocates and not (isinstance(kind, TupleType) and kind.holds_arrays):
            if text:  # the value may be read from memory that is given back
                self._emit(f'const {declaration(kind, "result_")} = {text};')
                text = 'result_'
            self._emit('ik_release(A, mark_);')
        self._emit(f'return {text};' if text else 'return;')

    # Loops

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise UnsupportedError('else of a loop')
        if _is_range(node.iter):
            assert isinstance(node.iter, ast.Call)
            self._over_range(node, node.iter)
        elif isinstance(node.iter, ast.Tuple):
            self._over_tuple(node, [self.value(item) for item in node.iter.elts])
        else:
            row = self.value(node.iter)
            if not isinstance(row.type, TupleType):
                raise UnsupportedError('a loop over other than range or a tuple')
            self._over_tuple(node, self._unpacked(row, len(row.type.parts)))

    def _over_range(self, node: ast.For, call: ast.Call) -> None:
        """Write a loop over range: its end is fixed before it begins, and the body may change the counter."""
        arguments = [self.value(argument) for argument in call.args]
        start = arguments[0] if len(arguments) > 1 else self.literal(0)
        end_index = min(len(arguments) - 1, 1)
        end, step = arguments[end_index], arguments[2] if len(arguments) > 2 else self.literal(1)
        if step.known == 0:
            raise UnsupportedError('a step of 0')
        if not isinstance(node.target, ast.Name):
            raise UnsupportedError('a counter that is no name')
        name = node.target.id
        if name != '_':
            self._declare(name, 'i')
        own = name in self._counters  # used in this loop only: C's counter itself
        counter = self.c_name(name) if own else self._new_name('k' if name == '_' else name)
        first = f'int64_t {counter} = {start.text}'
        stop = end.within(COMPARE + 1)
        if not _is_fixed(call.args[end_index], [node.target, *node.body]):
            stop = self._new_name('end')
            first += f', {stop} = {end.text}'
        up, down, by = f'{counter} < {stop}', f'{counter} > {stop}', step.text
        if step.known is None:
            by = self._new_name('step')
            first += f', {by} = {step.text}'
            condition = f'{by} > 0 ? {up} : {down}'
        else:
            condition = up if step.known > 0 else down
        move = {'1': f'{counter}++', '-1': f'{counter}--'}.get(by, f'{counter} += {by}')
        head = f'for ({first}; {condition}; {move})'
        copied = () if own or name == '_' else (f'{self.c_name(name)} = {counter};',)
        self._loop(head, node.body, copied)

    def _over_tuple(self, node: ast.For, values: Sequence[Value]) -> None:
        """Write a loop over the values of a tuple, all of which Python works out before it."""
        kind = values[0].type
        for value in values[1:]:
            kind = join(kind, value.type)
        names = [node.target] if isinstance(node.target, ast.Name) else getattr(node.target, 'elts', [])
        parts: Sequence[Type] = (kind,)
        if len(names) > 1:
            if not isinstance(kind, TupleType):
                raise UnsupportedError('unpacking of other than a tuple')
            parts = kind.parts
        if isinstance(kind, TupleType):
            self.program.note_struct(kind)
        table, counter = self._new_name('each'), self._new_name('k')
        texts = ', '.join(self.member(value, kind) for value in values)
        # Known values cannot be folded inside the loop: texts of tuples with known parts are still written.
        self._emit(f'{declaration(kind, f"{table}[{len(values)}]")} = {{{texts}}};')
        copied: list[str] = []
        for index, (name, part) in enumerate(zip(names, parts, strict=True)):
            assert isinstance(name, ast.Name)
            variable = self._declare(name.id, part)
            member = f'.e{index}' if len(names) > 1 else ''
            copied.append(f'{self.c_name(variable)} = {table}[{counter}]{member};')
        self._loop(f'for (int {counter} = 0; {counter} < {len(values)}; {counter}++)', node.body, copied)

    # Assignments

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            value = self._kept(self.value(node.value))
            for target in node.targets:
                self._store(target, value)
            return
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            self._assign_each(target.elts, node.value)
            return
        value = self.value(node.value)
        if isinstance(target, ast.Name) and target.id in self._once and isinstance(value.known, (bool, int)):
            self.constants[target.id] = value.known
            self._declare(target.id, value.type)
            return
        self._store(target, value)

    def _augassign(self, node: ast.AugAssign) -> None:
        target, value = self.value(node.target), self.value(node.value)
        if isinstance(target.type, ArrayType):
            raise UnsupportedError('an operator between arrays')
        result = self.operate(node.op, target, value)
        if isinstance(node.target, ast.Name):
            self._declare(node.target.id, result.type)
        symbol = IN_PLACE.get(type(node.op))
        # C converts to the type of the target, which is the one of the result, or wider.
        if symbol is None or result.known is not None or result.type == 'c' or value.whole:
            self._emit(f'{target.text} = {result.text};')
        elif symbol in '+-' and result.type == 'i' and value.known == 1:
            self._emit(f'{target.text}{symbol * 2};')
        else:
            self._emit(f'{target.text} {symbol}= {value.text};')

    def _assign_each(self, targets: Sequence[ast.expr], source: ast.expr) -> None:
        if isinstance(source, ast.IfExp):  # each branch by itself: their tuples may differ in type
            test = self.test(source.test)
            if test.known is not None:
                self._assign_each(targets, source.body if test.known else source.orelse)
                return
            for head, branch in ((f'if ({test.text})', source.body), ('} else', source.orelse)):
                self._emit(f'{head} {{')
                self._depth += 1
                self._assign_each(targets, branch)
                self._depth -= 1
            self._emit('}')
            return
        if isinstance(source, ast.Tuple):
            values = [self.value(item) for item in source.elts]
            # Python works out all values before it stores the first one.
            if any(_may_read(item, targets[:index]) for index, item in enumerate(source.elts)):
                values = [self._kept(value) for value in values]
        else:
            values = self._unpacked(self.value(source), len(targets))
        for target, value in zip(targets, values, strict=True):
            if not (isinstance(target, ast.Name) and target.id == '_'):
                self._store(target, value)

    def _unpacked(self, value: Value, count: int) -> list[Value]:
        if isinstance(value.type, ArrayType):
            row = self._kept(value)  # the first target may be an index in it
            return [Value(value.type.element, f'{self.pointer(row)}[{index}]') for index in range(count)]
        if not isinstance(value.type, TupleType):
            raise UnsupportedError('unpacking of a number')
        if value.known is not None:
            return [self.literal(part) for part in value.known]
        name = self._kept(value).text
        return [Value(part, f'{name}.e{index}') for index, part in enumerate(value.type.parts)]

    def _kept(self, value: Value) -> Value:
        """Return a value as it is now, whatever is stored afterwards."""
        if value.known is not None:
            return value
        name = self._new_name('new')
        constant = '' if isinstance(value.type, ArrayType) else 'const '
        self._emit(f'{constant}{declaration(value.type, name)} = {value.text};')
        return Value(value.type, name)

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            variable = self._declare(target.id, value.type)
            self._emit(f'{self.c_name(variable)} = {self.coerce(value, self.variables[variable]).text};')
            return
        place = self.value(target)
        if isinstance(place.type, ArrayType):
            if isinstance(value.type, ArrayType):
                raise UnsupportedError('an array as the new value of another one')
            self._emit(f'{self.filled(place, value.text)};')
        else:
            self._emit(f'{place.text} = {self.coerce(value, place.type).text};')

    # The whole function

    @property
    def head(self) -> str:
        """The head of the function in C."""
        assert self.returns is not None
        texts = ['ik_arena *A'] if self.needs_arena else []
        pairs = zip(self.parameters, self.arguments, strict=True)
        texts += [declaration(kind, self.c_name(name)) for name, kind in pairs]
        # setjmp, around entries that take memory, must not meet their variables.
        apart = '__attribute__((noinline)) ' if self.is_entry and self.needs_arena else ''
        return f'static {apart}{declaration(self.returns, self.name)}({", ".join(texts) or "void"})'

    @property
    def text(self) -> str:
        """The function in C, with the docstring of the kernel as its comment."""
        doc = (ast.get_docstring(self.tree) or '').replace('*/', '* /')
        comment = '\n * '.join(line.rstrip() for line in doc.split('\n'))
        lines = [f'/* {comment} */', self.head, '{']
        hidden = {*self.parameters, *self._counters, *self.constants, '_'}
        kinds = {self.c_name(name): kind for name, kind in self.variables.items() if name not in hidden}
        body, read = _without_unread(self._lines, kinds.keys())
        words = set(WORD.findall('\n'.join(body)))
        by_type: dict[str, list[str]] = {}
        for name, kind in kinds.items():
            if name in words:
                by_type.setdefault(c_type(kind), []).append(name)
        for text, names in by_type.items():
            star = text.endswith('*')
            lines.append(f'    {text}{"" if star else " "}{(", *" if star else ", ").join(names)};')
        lines += [f'    {buffer}' for buffer in self._buffers]
        # what only dead branches read, so that no compiler warns
        names = [name for name in (*map(self.c_name, self.parameters), *(kinds.keys() & words)) if name not in read]
        lines += [f'    (void){name};' for name in sorted(names)]
        gives_back = self.allocates and not (isinstance(self.returns, TupleType) and self.returns.holds_arrays)
        if gives_back:
            lines.append('    const ik_mark mark_ = ik_here(A);')
        lines += body
        if gives_back and not isinstance(self.tree.body[-1], ast.Return):
            lines.append('    ik_release(A, mark_);')
        return '\n'.join([*lines, '}'])


def _without_unread(lines: list[str], variables: Set[str]) -> tuple[list[str], set[str]]:
    """Return lines of C without what is stored in variables that are not read, and the words that are read."""
    while True:
        read = set(WORD.findall(STORED.sub('', '\n'.join(lines))))
        unread = variables - read
        kept = [line for line in lines if not ((found := PURE.fullmatch(line)) and found[1] in unread)]
        if len(kept) == len(lines):
            return lines, read
        lines = kept


def _family(kind: Type) -> Any:
    """Return what types of one variable in C have in common."""
    return (kind.element, kind.rank, kind.scattered) if isinstance(kind, ArrayType) else isinstance(kind, TupleType)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ('range', 'each')


def _stored(nodes: Sequence[ast.AST]) -> list[str]:
    """Return the names that are given a value, as often as that happens."""
    walked = [node for root in nodes for node in ast.walk(root)]
    return [node.id for node in walked if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _loop_names(tree: ast.AST) -> set[str]:
    return set(_stored([node.target for node in ast.walk(tree) if isinstance(node, ast.For)]))


def _stored_once(tree: ast.FunctionDef) -> set[str]:
    """Return the names that are given a value at one place that is not a loop's: they may be constants."""
    names = _stored([tree])
    in_loops = {name for node in ast.walk(tree) if isinstance(node, ast.AugAssign) for name in _stored([node])}
    return {name for name in names if names.count(name) == 1} - _loop_names(tree) - in_loops


def _counters(tree: ast.FunctionDef) -> set[str]:
    """Return the names that only count: set by loops over range, and read and kept inside these alone."""
    outside: set[str] = set()

    def visit(node: ast.AST, counting: frozenset[str]) -> None:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and _is_range(node.iter):
            visit(node.iter, counting)
            if node.target.id in counting:  # a loop over the same name within
                outside.add(node.target.id)
            for statement in node.body:
                visit(statement, counting | {node.target.id})
            return
        if isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or node.id not in counting):
            outside.add(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child, counting)

    for statement in tree.body:
        visit(statement, frozenset())
    return _loop_names(tree) - outside - {argument.arg for argument in tree.args.args}


def _is_fixed(end: ast.expr, body: Sequence[ast.AST]) -> bool:
    """Whether the end of a loop is the same whenever it is worked out: sizes, numbers, names that stay."""
    changed = set(_stored(body))
    for node in ast.walk(end):
        if isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in changed):
            return False
        if isinstance(node, ast.Subscript) and not is_shape(node):
            return False
    return True


def _may_read(item: ast.expr, stored: Sequence[ast.expr]) -> bool:
    """Whether an expression may depend on what was just stored."""
    names = {target.id for target in stored if isinstance(target, ast.Name)}
    arrays = any(isinstance(target, ast.Subscript) for target in stored)
    for node in ast.walk(item):
        if isinstance(node, ast.Name) and node.id in names:
            return True
        if arrays and (isinstance(node, ast.Call) or (isinstance(node, ast.Subscript) and not is_shape(node))):
            return True
    return False
