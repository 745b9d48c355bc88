# SPDX-License-Identifier: Apache-2.0
"""Codec: what the modules of both protocols, feetech and dynamixel, share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ik_node.servos.bus.packets import Instruction, Status
from ik_node.servos.bus.stream_parser import PacketT, StreamParser


class Codec(Protocol):
    """A protocol: its instructions, to bytes and back. All raise InputError for wrong arguments."""

    LARGEST_ID: int
    ID_ADDRESS: int

    def encode(self, packet: Instruction | Status) -> bytes:
        """Return the bytes of a packet."""

    def read(self, id: int, address: int, size: int) -> Instruction:
        """Return the instruction that asks a servo for size bytes from an address on."""

    def write(self, id: int, address: int, data: bytes) -> Instruction:
        """Return the instruction that writes data to an address of a servo."""

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> Instruction:
        """Return the instruction that asks servos for size bytes from an address on."""

    def sync_write(self, address: int, data: Mapping[int, bytes]) -> Instruction:
        """Return the instruction that writes data of one size to an address of several servos."""

    def Parser(self, kind: type[PacketT]) -> StreamParser[PacketT]:  # noqa: N802
        """Return a parser for packets of a kind, Status or Instruction."""
