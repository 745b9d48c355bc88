# SPDX-License-Identifier: Apache-2.0
"""Protocol 2.0 of Dynamixel servos: instructions and statuses to bytes and back.

A packet is FF FF FD 00 id length (2) code data crc (2), low bytes first, with length = data + 3; a status has
the code 55 and begins its data with the error byte. FF FF FD in code and data gets another FD (stuffing),
which counts in length and CRC. Source: ROBOTIS e-Manual, protocol 2.0.
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

LARGEST_ID = 252
ID_ADDRESS = 7  # register in which a servo keeps its id
REBOOT = 0x08  # restarts a servo, which ends a shutdown; the servo answers before
MOST_DATA = 1024  # [bytes] in one packet, with stuffing; the buffers of the servos are no larger
ALERT = 0x80  # bit of the error byte: a condition, see the register hardware error status

_HEADER = b'\xff\xff\xfd\x00'
_STATUS = 0x55
_STUFFED = b'\xff\xff\xfd'


def encode(packet: Instruction | Status) -> bytes:
    """Return the bytes of a packet; raises InputError if it fits into none."""
    if isinstance(packet, Status):
        code, data = _STATUS, _byte('the error byte', packet.error) + packet.data
    else:
        code, data = packet.code, packet.parameters
    body = _byte('an instruction', code) + data
    body = body.replace(_STUFFED, _STUFFED + b'\xfd')
    check('the number of data bytes', len(body), MOST_DATA)
    frame = _HEADER + _byte('the id of a packet', packet.id) + (len(body) + 2).to_bytes(2, 'little') + body
    return frame + crc(frame).to_bytes(2, 'little')


def read(id: int, address: int, size: int) -> Instruction:
    """Return the instruction that asks a servo for size bytes from an address on."""
    check('the id of a servo', id, LARGEST_ID)
    return Instruction(id, READ, _span(address, size))


def write(id: int, address: int, data: bytes) -> Instruction:
    """Return the instruction that writes data to an address of a servo, or with BROADCAST of all servos."""
    return Instruction(id, WRITE, _span(address, len(data))[:2] + data)


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


def crc(data: bytes) -> int:
    """Return the CRC-16 of data: polynomial 0x8005, from 0 on, highest bit first."""
    value = 0
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _CRC[value >> 8 ^ byte]
    return value


class Parser(StreamParser[PacketT]):
    """Finds packets of one kind; the echo of an instruction never gets through at the port."""

    header = _HEADER

    def _end(self, found: bytearray) -> int | None:
        if len(found) < 7:
            return None
        length = int.from_bytes(found[5:7], 'little')
        return length + 7 if found[4] <= BROADCAST and 3 <= length <= MOST_DATA + 2 else 0

    def _packet(self, frame: bytes) -> Instruction | Status | None:
        if crc(frame[:-2]) != int.from_bytes(frame[-2:], 'little'):
            self.suspects.add(frame[4])
            return None
        body = frame[7:-2].replace(_STUFFED + b'\xfd', _STUFFED)
        if body[0] != _STATUS:
            return Instruction(frame[4], body[0], body[1:])
        return Status(frame[4], body[1], body[2:]) if len(body) > 1 else None


def _crc_of_byte(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = value << 1 ^ (0x8005 if value & 0x8000 else 0)
        value &= 0xFFFF
    return value


_CRC = tuple(map(_crc_of_byte, range(256)))


def _byte(what: str, value: int) -> bytes:
    """Return a byte of a packet; raises InputError if the value is none."""
    check(what, value, BROADCAST if 'id' in what.split() else 0xFF)
    return bytes((value,))


def _span(address: int, size: int) -> bytes:
    """Return address and size as a read has them; raises InputError for a span outside the registers."""
    check('an address', address, 0xFFFF)
    if not 1 <= size <= min(0x10000 - address, MOST_DATA):
        raise InputError(f'{size} bytes from address {address} on are outside the registers')
    return address.to_bytes(2, 'little') + size.to_bytes(2, 'little')
