# SPDX-License-Identifier: Apache-2.0
"""LinkLengths: a xacro file whose arguments NAME_length set the lengths of links."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from ik_node.checks import positive
from ik_node.errors import FileError, InputError, join_names, path_text

from .description import load_description

SUFFIX = '_length'
_XACRO = '{http://www.ros.org/wiki/xacro}'


@dataclass(frozen=True)
class LinkLengths:
    """Lengths [m] by name, such as upper_arm, and the file and further arguments that they belong to."""

    path: str
    arguments: Mapping[str, str]
    values: Mapping[str, float]

    @classmethod
    def read(cls, path: str | os.PathLike[str], arguments: Mapping[str, str] | None = None) -> LinkLengths:
        """Read the lengths that a file has with these xacro arguments; none if it declares none.

        Only declarations with a number as their default count. Raises FileError for a file that is not XML.
        """
        given = dict(arguments or {})
        values = {}
        for name, default in _declared(Path(path), set()).items():
            try:
                value = float(given.get(name, default))
            except ValueError:
                continue
            if name.endswith(SUFFIX) and 0.0 < value < float('inf'):
                values[name.removesuffix(SUFFIX)] = value
        return cls(os.fspath(path), given, values)

    def changed(self, **lengths: float) -> LinkLengths:
        """Return these lengths with some changed [m]. Raises InputError for others and values not above 0."""
        unknown = lengths.keys() - self.values.keys()
        if unknown:
            raise InputError(f'there is no length {min(unknown)!r}; lengths: {join_names(self.values)}')
        values = {name: positive(name, value) for name, value in lengths.items()}
        arguments = {f'{name}{SUFFIX}': f'{value:.9g}' for name, value in values.items()}
        return LinkLengths(self.path, {**self.arguments, **arguments}, {**self.values, **values})

    def description(self) -> str:
        """Return the URDF text with these lengths. Raises IkError as load_description."""
        return load_description(self.path, self.arguments)


def _declared(path: Path, known: set[Path]) -> dict[str, str]:
    """Return the arguments that a file and those that it includes declare, with their defaults.

    known: files not to read again. Included files with computed names are not followed.
    """
    try:
        root = etree.parse(os.fspath(path), etree.XMLParser(resolve_entities=False)).getroot()
    except (OSError, etree.XMLSyntaxError) as error:
        raise FileError(f'{path_text(path)}: {error}') from None
    known.add(path)
    found: dict[str, str] = {}
    for element in root.iterfind(f'{_XACRO}*'):
        if element.tag == f'{_XACRO}arg':
            found[element.get('name', '')] = element.get('default', '')
        elif element.tag == f'{_XACRO}include':
            file = path.parent / element.get('filename', '')
            if file.is_file() and file not in known:
                found |= _declared(file, known)
    return found
