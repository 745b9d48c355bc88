# SPDX-License-Identifier: Apache-2.0
"""The text that defines a message type, as an MCAP file with the profile ros2 carries it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from ik_node.errors import IkError

LINE = 80 * '='  # between the text of a type and those of the types that it uses


class RecordingError(IkError):
    """A recording cannot be written or read; the message says which and why."""


def message_class(name: str) -> Any:
    """Return the class of a message type such as sensor_msgs/msg/JointState. Raises RecordingError."""
    package, _, short = name.partition('/msg/')
    try:
        return getattr(import_module(f'{package}.msg'), short)
    except (ImportError, AttributeError, ValueError):
        raise RecordingError(f'the message type {name!r} is not installed') from None


def definition(name: str) -> str:
    """Return the text of a message type, and behind lines of = those of all types within it.

    Raises RecordingError.
    """
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop(0)
        if current in found:
            continue
        message = message_class(current)
        found[current] = _text(current)
        types = message.get_fields_and_field_types().values()
        waiting += [f'{package}/msg/{short}' for kind in types for package, short in _within(kind)]
    others = (
        f'\n{LINE}\nMSG: {key.replace("/msg/", "/")}\n{text}' for key, text in found.items() if key != name
    )
    return found[name] + ''.join(others)


def _within(kind: str) -> list[tuple[str, str]]:
    """Return package and name of the message type in the type of a field, such as sequence<a/B>."""
    return re.findall(r'(\w+)/(\w+)', kind)


def _text(name: str) -> str:
    """Return the .msg file of a type: in the share folder beside which its Python package is installed."""
    package, _, short = name.partition('/msg/')
    module = import_module(package).__file__ or ''
    for folder in Path(module).parents:
        path = folder / 'share' / package / 'msg' / f'{short}.msg'
        if path.is_file():
            return path.read_text(encoding='utf-8')
    raise RecordingError(f'the definition {short}.msg of {package} is not installed')
