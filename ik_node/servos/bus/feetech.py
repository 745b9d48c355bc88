# SPDX-License-Identifier: Apache-2.0
"""The protocol of Feetech's STS servos: instructions and statuses to bytes and back.

Both are FF FF id length x data checksum, where x is the code of an instruction or the error byte of a status:
the reader must know which of the two it expects. length = data + 2; the checksum is the inverted sum of all
bytes between header and checksum. Source: Feetech's protocol manual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ik_node.errors import InputError

from .packets import (
    BROADCAST,
    READ,
    SYNC_READ,
    SYNC_WRITE,
    WRITE,
    Instruction,
    PacketT,
    Status,
    StreamParser,
    check,
    common_size,
)

LARGEST_ID = 253
ID_ADDRESS = 5  # register in which a servo keeps its id
MOST_DATA = 253  # [bytes] in one packet

_HEADER = b'\xff\xff'


def encode(packet: Instruction | Status) -> bytes:
    """Return the bytes of a packet; raises InputError if it fits into none."""
    code, data = _contents(packet)
    check('the id of a packet', packet.id, BROADCAST)
    check('instruction or error byte', code, 0xFF)
    check('the number of data bytes', len(data), MOST_DATA)
    body = bytes((packet.id, len(data) + 2, code)) + data
    return _HEADER + body + bytes((_checksum(body),))


def read(id: int, address: int, size: int) -> Instruction:
    """Return the instruction that asks a servo for size bytes from an address on."""
    check('the id of a servo', id, LARGEST_ID)
    return Instruction(id, READ, _span(address, size))


def write(id: int, address: int, data: bytes) -> Instruction:
    """Return the instruction that writes data to an address of a servo, or with BROADCAST of all servos."""
    _span(address, len(data))
    return Instruction(id, WRITE, bytes((address,)) + data)


def sync_read(ids: Sequence[int], address: int, size: int) -> Instruction:
    """Return the instruction that asks servos for size bytes from an address; they answer in this order."""
    for id in ids:
        check('the id of a servo', id, LARGEST_ID)
    return Instruction(BROADCAST, SYNC_READ, _span(address, size) + bytes(ids))


def sync_write(address: int, data: Mapping[int, bytes]) -> Instruction:
    """Return the instruction that writes data of one size to an address of several servos; none answers."""
    for id in data:
        check('the id of a servo', id, LARGEST_ID)
    head = _span(address, common_size(data))
    return Instruction(
        BROADCAST, SYNC_WRITE, head + b''.join(bytes((id,)) + part for id, part in data.items())
    )


class Parser(StreamParser[PacketT]):
    """Finds packets: takes all of them for the kind that is wanted."""

    header = _HEADER

    def _end(self, found: bytearray) -> int | None:
        if len(found) < 4:
            return None
        return found[3] + 4 if found[2] <= BROADCAST and found[3] >= 2 else 0

    def _packet(self, frame: bytes) -> Instruction | Status | None:
        if _checksum(frame[2:-1]) != frame[-1]:
            self.suspects.add(frame[2])
            return None
        return self._kind(frame[2], frame[4], frame[5:-1])


def _checksum(body: bytes) -> int:
    """Return the checksum of what is between header and checksum."""
    return ~sum(body) & 0xFF


def _contents(packet: Instruction | Status) -> tuple[int, bytes]:
    """Return the code of an instruction or the error byte of a status, and the data."""
    if isinstance(packet, Instruction):
        return packet.code, packet.parameters
    return packet.error, packet.data


def _span(address: int, size: int) -> bytes:
    """Return address and size as a read has them; raises InputError for a span outside the registers."""
    check('an address', address, 0xFF)
    if not 1 <= size <= 0x100 - address or size > MOST_DATA:
        raise InputError(f'{size} bytes from address {address} on are outside the registers')
    return bytes((address, size))
