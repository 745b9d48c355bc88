# SPDX-License-Identifier: Apache-2.0
"""Files of users: YAML and JSON, checked against the fields that are allowed; and files written whole.

A Check gets the name of a value and the value, and returns what to use; it raises InputError with the name,
what is allowed and what was given. Checks of lists and mappings are built from those of their entries, which
get paths such as joints.elbow.id as names; an error in a mapping of a YAML file begins with its line.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from ik_node.checks import yaml_number
from ik_node.errors import InputError, escaped, join_names, only_files, path_text, quoted

LARGEST_FILE = 1 << 20  # bytes
DEEPEST = 10  # lists and mappings in each other

Check = Callable[[str, Any], Any]


class LineError(InputError):
    """An error that begins with its line."""


class Block(dict[str, Any]):
    """A mapping of a YAML file. line: where it begins."""

    line = 0


def read_file(path: str | os.PathLike[str], kind: str, check: Check, parse: Callable[[str], Any] | None = None) -> Any:
    """Return what check makes of the content of a file. kind: what the file is, for errors.

    parse: reads the text; None: as JSON for the suffix .json, else as YAML. Raises InputError; the cause is
    an OSError if the file cannot be opened.
    """
    file = Path(path).expanduser()
    shown = f'{kind} {path_text(file)}'
    parse = parse or (json.loads if file.suffix == '.json' else parse_yaml)
    try:
        with open(file, 'rb', opener=only_files) as stream:
            content = stream.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise InputError(f'it has more than {LARGEST_FILE} bytes')
        value = parse(content.decode())
    except OSError as error:
        raise InputError(f'cannot read {shown}: {error.strerror or error}') from error
    except (ValueError, RecursionError) as error:
        raise InputError(f'cannot read {shown}: {" ".join(str(error).split())}') from None
    try:
        return check('', value)
    except InputError as error:
        raise InputError(f'{shown}: {error}') from None


def parse_yaml(text: str) -> Any:
    """Return the content of YAML, its mappings as Block with text as keys.

    Raises InputError, also for keys given twice, and for what would fill the memory or the stack of the C
    library.
    """
    import yaml  # takes 20 ms, and most programs read no such file

    opening = (
        yaml.BlockSequenceStartToken,
        yaml.BlockMappingStartToken,
        yaml.FlowSequenceStartToken,
        yaml.FlowMappingStartToken,
    )
    closing = yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken
    depth = 0
    try:
        for token in yaml.scan(text, _loader()):
            if isinstance(token, yaml.AliasToken):
                raise InputError('it has aliases (*), with which a short file could fill the memory')
            depth += isinstance(token, opening) - isinstance(token, closing)
            if depth > DEEPEST:
                raise InputError(f'lists and mappings are nested deeper than {DEEPEST}')
        return yaml.load(text, _loader())
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # such as a number of 5,000 digits
        raise InputError(str(error)) from None
    except yaml.YAMLError as error:
        raise InputError(f'not YAML: {" ".join(str(error).split())}') from None


@cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):  # type: ignore[misc]
        def construct_block(self, node: yaml.MappingNode) -> Block:
            block = Block()
            block.line = node.start_mark.line + 1
            for key_node, value_node in node.value:
                line = key_node.start_mark.line + 1
                if not isinstance(key_node, yaml.ScalarNode):
                    raise LineError(f'line {line}: a key must be text')
                key = key_node.value  # also of 1 and "on", which YAML reads as a number and a boolean
                if key in block:
                    raise LineError(f'line {line}: the key {key!r} is given twice')
                block[key] = self.construct_object(value_node, deep=True)
            return block

    Loader.add_constructor('tag:yaml.org,2002:map', Loader.construct_block)
    return Loader


def wrong(name: str, allowed: str, value: object) -> InputError:
    """Return the error for a value. name: '' for the whole content."""
    return InputError(f'{name or "it"} must be {allowed}, got {escaped(repr(value))}')


def anything(name: str, value: Any) -> Any:  # noqa: ARG001
    """Check nothing."""
    return value


def text(name: str, value: Any) -> str:
    """Check that value is text."""
    if not isinstance(value, str):
        raise wrong(name, 'text', value)
    return value


def switch(name: str, value: Any) -> bool:
    """Check that value is true or false."""
    if not isinstance(value, bool):
        raise wrong(name, 'true or false', value)
    return value


def number(low: float = -math.inf, high: float = math.inf, *, above: bool = False) -> Check:
    """Return the check for a finite number from low to high; above: greater than low."""
    limit = f'greater than {low:g}' if above else f'of {low:g} or more' if low > -math.inf else ''
    allowed = f'a finite number {limit}'.strip()
    if high < math.inf:
        allowed = f'a number {limit}, at most {high:g}' if above else f'a number from {low:g} to {high:g}'

    def check(name: str, value: Any) -> float:
        read = yaml_number(value)
        if read is None or not math.isfinite(read) or not low <= read <= high or (above and read == low):
            raise wrong(name, allowed, value)
        return read

    return check


def whole_number(low: int = -(2**31), high: int = 2**31 - 1) -> Check:
    """Return the check for a whole number from low to high."""

    def check(name: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise wrong(name, f'a whole number from {low} to {high}', value)
        return value

    return check


def one_of(*choices: Any) -> Check:
    """Return the check for one of some values, all of them text or all numbers."""

    def check(name: str, value: Any) -> Any:
        if isinstance(value, bool) or value not in choices:
            raise wrong(name, ' or '.join(map(str, choices)), value)
        return value

    return check


def optional(check: Check) -> Check:
    """Return the check that lets None pass, too."""
    return lambda name, value: None if value is None else check(name, value)


def list_of(check: Check, size: int | None = None) -> Check:
    """Return the check for a list, which becomes a tuple. check: of each entry."""

    def checked(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or size not in (None, len(value)):
            raise wrong(name, 'a list' if size is None else f'a list of {size}', value)
        return tuple(check(f'{name}[{index}]', entry) for index, entry in enumerate(value))

    return checked


def mapping_of(check: Check) -> Check:
    """Return the check for a mapping of any names. check: of each entry."""

    def checked(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise wrong(name, 'a mapping of names to values', value)
        with located(value):
            return {key: check(_inner(name, key), entry) for key, entry in value.items()}

    return checked


def fields(checks: Mapping[str, Check], required: Iterable[str] = (), *, others: bool = False) -> Check:
    """Return the check for a mapping with keys of checks. others: it may have more, which are left out."""

    def checked(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise wrong(name, f'a mapping with {join_names(checks)}', value)
        with located(value):
            for key in value:
                if key not in checks and not others:
                    allowed = join_names(checks, key)
                    raise InputError(f'{name or "it"} has no {quoted(key)}; allowed: {allowed}')
            missing = [key for key in required if key not in value]
            if missing:
                raise InputError(f'{name or "it"} lacks {join_names(missing)}')
            return {key: checks[key](_inner(name, key), one) for key, one in value.items() if key in checks}

    return checked


@contextmanager
def located(value: Any) -> Iterator[None]:
    """Have errors begin with the line of a mapping from YAML, unless an inner one has its own."""
    try:
        yield
    except LineError:
        raise
    except InputError as error:
        line = getattr(value, 'line', 0)
        raise LineError(f'line {line}: {error}') if line else error from None


def _inner(name: str, key: str) -> str:
    return f'{name}.{escaped(key)}' if name else escaped(key)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return path with links followed, as Path.resolve, which fails for links in a circle before Python 3.13."""
    return Path(os.path.realpath(path))


@contextmanager
def whole_file(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Give a stream; what is written there replaces the file at the end of the block, unless the block fails.

    durable: after a power failure there is the old file or the new one. Raises OSError.
    """
    part = Path(path).with_name(f'.{secrets.token_hex(4)}.part')
    try:
        with part.open('xb') as stream:
            yield stream
        if durable:
            put_in_place(part, Path(path))
        else:
            part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def put_in_place(part: Path, path: Path) -> None:
    """Rename a file or folder that is finished, so that it is whole at path even after a power failure."""
    for file in (*part.rglob('*'), part) if part.is_dir() else (part,):
        _sync(file)
    part.replace(path)
    with suppress(OSError):  # some file systems cannot
        _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(path: str | os.PathLike[str], content: str | Callable[[IO[bytes]], object]) -> None:
    """Write a file, and folders to it, or leave what is there; it survives a power failure.

    content: text, or what writes it to a stream. Raises InputError, as for a full disk.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as stream:
            stream.write(content.encode()) if isinstance(content, str) else content(stream)
    except OSError as error:
        raise InputError(f'cannot write "{path_text(path)}": {error.strerror or error}') from None
