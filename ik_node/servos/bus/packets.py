# SPDX-License-Identifier: Apache-2.0
"""Packets: what the protocols of Feetech and Dynamixel share, free of their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ik_node.errors import InputError

PING = 0x01
READ = 0x02
WRITE = 0x03
SYNC_READ = 0x82
SYNC_WRITE = 0x83
BROADCAST = 0xFE  # the id that all servos listen to; none answers, except to PING


@dataclass(frozen=True)
class Instruction:
    """What a servo is asked to do: its id or BROADCAST, the code of the instruction, its parameters."""

    id: int
    code: int
    parameters: bytes = b''


@dataclass(frozen=True)
class Status:
    """The answer of a servo: its id, its error byte and the data that were asked for."""

    id: int
    error: int = 0
    data: bytes = b''


def check(what: str, value: int, largest: int) -> None:
    """Raise InputError unless value is in 0 to largest."""
    if not 0 <= value <= largest:
        raise InputError(f'{what} must be 0 to {largest}, but is {value}')


def common_size(data: Mapping[int, bytes]) -> int:
    """Return the size that all data of a sync write have [bytes]; raises InputError if they differ."""
    sizes = {len(part) for part in data.values()}
    if len(sizes) != 1:
        raise InputError(f'all servos of a sync write must get the same number of bytes, not {sorted(sizes)}')
    return sizes.pop()
