# SPDX-License-Identifier: Apache-2.0
"""Protocol 2.0 of Dynamixel servos: instructions and statuses to bytes and back.

A packet is FF FF FD 00 id length (2) code data crc (2), low bytes first, with length = data + 3; a status has
the code 55 and begins its data with the error byte. FF FF FD in code and data gets another FD (stuffing),
which counts in length and CRC. Source: ROBOTIS e-Manual, protocol 2.0.
"""

from __future__ import annotations

from .packets import BROADCAST, Codec, Instruction, PacketT, Status, StreamParser, check

REBOOT = 0x08  # restarts a servo, which ends a shutdown; the servo answers before
ALERT = 0x80  # bit of the error byte: a condition, see the register hardware error status

_HEADER = b'\xff\xff\xfd\x00'
_STATUS = 0x55
_STUFFED = b'\xff\xff\xfd'


class Dynamixel(Codec):
    """Protocol 2.0 of Dynamixel servos."""

    LARGEST_ID = 252
    ID_ADDRESS = 7
    MAX_DATA = 1024  # with stuffing; the buffers of the servos are no larger
    WORD = 2

    def encode(self, packet: Instruction | Status) -> bytes:
        check('the id of a packet', packet.id, BROADCAST)
        if isinstance(packet, Status):
            check('the error byte', packet.error, 0xFF)
            body = bytes((_STATUS, packet.error)) + packet.data
        else:
            check('an instruction', packet.code, 0xFF)
            body = bytes((packet.code,)) + packet.parameters
        body = body.replace(_STUFFED, _STUFFED + b'\xfd')
        check('the number of data bytes', len(body), self.MAX_DATA)
        frame = _HEADER + bytes((packet.id,)) + (len(body) + 2).to_bytes(2, 'little') + body
        return frame + crc(frame).to_bytes(2, 'little')

    def parser(self, kind: type[PacketT]) -> StreamParser[PacketT]:
        return DynamixelParser(kind)


class DynamixelParser(StreamParser[PacketT]):
    """Finds packets of one kind; the echo of an instruction never gets through at the port."""

    header = _HEADER

    def _end(self, found: bytearray) -> int | None:
        if len(found) < 7:
            return None
        length = int.from_bytes(found[5:7], 'little')
        return length + 7 if found[4] <= BROADCAST and 3 <= length <= Dynamixel.MAX_DATA + 2 else 0

    def _packet(self, frame: bytes) -> Instruction | Status | None:
        if crc(frame[:-2]) != int.from_bytes(frame[-2:], 'little'):
            self.suspects.add(frame[4])
            return None
        body = frame[7:-2].replace(_STUFFED + b'\xfd', _STUFFED)
        if body[0] != _STATUS:
            return Instruction(frame[4], body[0], body[1:])
        return Status(frame[4], body[1], body[2:]) if len(body) > 1 else None


def crc(data: bytes) -> int:
    """Return the CRC-16 of data: polynomial 0x8005, from 0 on, highest bit first."""
    value = 0
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _CRC[value >> 8 ^ byte]
    return value


def _crc_of_byte(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = value << 1 ^ (0x8005 if value & 0x8000 else 0)
        value &= 0xFFFF
    return value


_CRC = tuple(map(_crc_of_byte, range(256)))

dynamixel = Dynamixel()
