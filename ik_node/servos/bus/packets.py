# SPDX-License-Identifier: Apache-2.0
"""Packets: what the protocols of Feetech and Dynamixel share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

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


PacketT = TypeVar('PacketT', bound=Instruction | Status)


class StreamParser(ABC, Generic[PacketT]):
    """Finds packets of one kind that begin with a header: Status at the port, Instruction in a servo.

    After a header without a packet the search goes on at the next byte, so that damage hides no packet
    behind it.
    junk: bytes skipped so far that belong to no packet. suspects: ids in packets with a wrong checksum.
    """

    header: ClassVar[bytes]

    def __init__(self, kind: type[PacketT]) -> None:
        self._kind = kind
        self._bytes = bytearray()
        self.junk = 0
        self.suspects: set[int] = set()

    def feed(self, data: bytes) -> list[PacketT]:
        """Return the packets that data complete."""
        self._bytes += data
        packets: list[PacketT] = []
        while self._bytes and self._find_header():
            end = self._end(self._bytes)
            if end is None or end > len(self._bytes):
                break
            packet = self._packet(bytes(self._bytes[:end])) if end else None
            if packet is None:
                self._skip(1)
            else:
                if isinstance(packet, self._kind):
                    packets.append(packet)
                del self._bytes[:end]
        return packets

    def finish(self) -> list[PacketT]:
        """Give up the packet that is not complete; return the packets that its bytes contain."""
        packets: list[PacketT] = []
        while self._bytes:
            self._skip(1)
            packets += self.feed(b'')
        return packets

    @abstractmethod
    def _end(self, found: bytearray) -> int | None:
        """Return where the packet ends that begins with found; None: more is needed, 0: not a packet."""

    @abstractmethod
    def _packet(self, frame: bytes) -> Instruction | Status | None:
        """Return the packet of these bytes, None if it is damaged."""

    def _find_header(self) -> bool:
        """Skip what cannot begin a packet; return whether a whole header is left."""
        start = self._bytes.find(self.header)
        if start >= 0:
            self._skip(start)
            return True
        parts = (self.header[:length] for length in range(len(self.header) - 1, 0, -1))
        self._skip(len(self._bytes) - next((len(part) for part in parts if self._bytes.endswith(part)), 0))
        return False

    def _skip(self, count: int) -> None:
        self.junk += count
        del self._bytes[:count]


class Codec(ABC):
    """A protocol: its instructions and statuses, to bytes and back. All raise InputError for wrong arguments.

    ID_ADDRESS: register in which a servo keeps its id. MAX_DATA [bytes]: in one packet. WORD [bytes]: size of
    addresses and sizes in a packet.
    """

    LARGEST_ID: ClassVar[int]
    ID_ADDRESS: ClassVar[int]
    MAX_DATA: ClassVar[int]
    WORD: ClassVar[int]

    @abstractmethod
    def encode(self, packet: Instruction | Status) -> bytes:
        """Return the bytes of a packet."""

    @abstractmethod
    def parser(self, kind: type[PacketT]) -> StreamParser[PacketT]:
        """Return a parser for packets of a kind, Status or Instruction."""

    def read(self, id: int, address: int, size: int) -> Instruction:
        """Return the instruction that asks a servo for size bytes from an address on."""
        check('the id of a servo', id, self.LARGEST_ID)
        return Instruction(id, READ, self._span(address, size))

    def write(self, id: int, address: int, data: bytes) -> Instruction:
        """Return the instruction that writes data to an address of a servo, with BROADCAST of all servos."""
        return Instruction(id, WRITE, self._span(address, len(data))[: self.WORD] + data)

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> Instruction:
        """Return the instruction that asks servos for size bytes from an address; they answer in order."""
        for id in ids:
            check('the id of a servo', id, self.LARGEST_ID)
        return Instruction(BROADCAST, SYNC_READ, self._span(address, size) + bytes(ids))

    def sync_write(self, address: int, data: Mapping[int, bytes]) -> Instruction:
        """Return the instruction that writes data of one size to an address of servos; none answers."""
        sizes = {len(part) for part in data.values()}
        if len(sizes) != 1:
            raise InputError(f'all servos of a sync write must get the same number of bytes, not {sorted(sizes)}')
        for id in data:
            check('the id of a servo', id, self.LARGEST_ID)
        parts = b''.join(bytes((id,)) + part for id, part in data.items())
        return Instruction(BROADCAST, SYNC_WRITE, self._span(address, *sizes) + parts)

    def _span(self, address: int, size: int) -> bytes:
        """Return address and size as bytes; raises InputError for a span outside the registers."""
        end = 1 << 8 * self.WORD
        check('an address', address, end - 1)
        if not 1 <= size <= min(end - address, self.MAX_DATA):
            raise InputError(f'{size} bytes from address {address} on are outside the registers')
        return address.to_bytes(self.WORD, 'little') + size.to_bytes(self.WORD, 'little')
