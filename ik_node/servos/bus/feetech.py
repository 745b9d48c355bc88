# SPDX-License-Identifier: Apache-2.0
"""The protocol of Feetech's STS servos: instructions and statuses to bytes and back.

Both are FF FF id length x data checksum, where x is the code of an instruction or the error byte of a status:
the reader must know which of the two it expects. length = data + 2; the checksum is the inverted sum of all
bytes between header and checksum. Source: Feetech's protocol manual.
"""

from __future__ import annotations

from .packets import BROADCAST, Codec, Instruction, PacketT, Status, StreamParser, check

_HEADER = b'\xff\xff'


class Feetech(Codec):
    """The protocol of Feetech's STS servos."""

    LARGEST_ID = 253
    ID_ADDRESS = 5
    MAX_DATA = 253
    WORD = 1

    def encode(self, packet: Instruction | Status) -> bytes:
        if isinstance(packet, Instruction):
            code, data = packet.code, packet.parameters
        else:
            code, data = packet.error, packet.data
        check('the id of a packet', packet.id, BROADCAST)
        check('instruction or error byte', code, 0xFF)
        check('the number of data bytes', len(data), self.MAX_DATA)
        body = bytes((packet.id, len(data) + 2, code)) + data
        return _HEADER + body + bytes((_checksum(body),))

    def parser(self, kind: type[PacketT]) -> StreamParser[PacketT]:
        return FeetechParser(kind)


class FeetechParser(StreamParser[PacketT]):
    """Finds packets: takes all of them for the kind that is expected."""

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
    return ~sum(body) & 0xFF


feetech = Feetech()
