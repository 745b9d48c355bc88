# SPDX-License-Identifier: Apache-2.0
"""SerialTransport: a servo bus behind a serial port of this computer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ik_node.servos.bus.outstanding import LATEST, Outstanding
from ik_node.servos.bus.packets import BROADCAST, Instruction, Status, check
from ik_node.servos.bus.protocol import Codec
from ik_node.servos.bus.serial_line import SerialLine
from ik_node.servos.bus.transport import Answer, Fault, Reply
from ik_node.steady import steady

_SIZES = 4  # that a read may ask for: so many answers of a servo can be outstanding
_APART = 2  # [bytes]: a late answer that lacks a byte has no other size of that read
_WRITE_TIME = 0.1  # [s] that an acknowledgement may take: a servo first writes to its EEPROM
_SECOND_TIME = 0.002  # [s] after an answer in which a second servo with the same id would answer
_OVERHEAD = 16  # [bytes] of a packet besides its data, at most
_BITS = 10  # per byte on the wire


class SerialTransport:
    """The bus at a serial port; see Transport.

    port: path of the device. baud: [1/s]. codec: the module feetech or dynamixel. timeout: [s] after which a
    servo is taken for silent. What adapters echo is ignored.

    A read of a servo with outstanding answers asks for a few bytes more, so that their sizes tell them apart.
    A servo for which no size is left is SILENT for a while without being asked, so it does not slow down the
    others. A write waits while an acknowledgement is outstanding. Nothing is sent twice.
    """

    def __init__(self, port: str, baud: int, codec: Codec, timeout: float = 0.02) -> None:
        self._codec = codec
        self._baud = baud
        self._timeout = timeout
        self._outstanding = Outstanding()
        # Servos after a missing one may keep silent in a sync read: it is asked last the next time.
        self._suspected: dict[int, int] = {}  # rank, by id
        self._line = SerialLine(port, baud)

    def ping(self, id: int) -> Reply:
        """Ask a servo for its id: unlike the answer to a ping, that to a read can have another size."""
        reply = self.read(id, self._codec.ID_ADDRESS, 1)
        return reply if isinstance(reply, Fault) or reply.data[0] == id else Fault.FOREIGN

    def read(self, id: int, address: int, size: int) -> Reply:
        """Read size bytes from an address on."""
        check('the id of a servo', id, self._codec.LARGEST_ID)
        self._settle()
        asked = self._outstanding.best([id], _sizes(size), steady())
        if self._outstanding.has(id, asked, steady()):
            return Fault.SILENT
        instruction = self._codec.read(id, address, asked)
        return _cut(self._ask(instruction, [id], asked, self._timeout), size)[id]

    def write(self, id: int, address: int, data: bytes) -> Reply:
        """Write data to an address, and wait for the acknowledgement."""
        check('the id of a servo', id, self._codec.LARGEST_ID)
        self._settle()
        if self._outstanding.has(id, 0, steady()):
            self.drain()
        instruction = self._codec.write(id, address, data)
        return self._ask(instruction, [id], 0, max(self._timeout, _WRITE_TIME))[id]

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Reply]:
        """Read size bytes from an address of each servo; a reply per id, in this order."""
        self._settle()
        now = steady()
        ids = list(dict.fromkeys(ids))
        asked = self._outstanding.best(ids, _sizes(size), now)
        free = [id for id in ids if not self._outstanding.has(id, asked, now)]
        free.sort(key=lambda id: self._suspected.get(id, 0))
        replies: dict[int, Reply] = dict.fromkeys(ids, Fault.SILENT)
        if free:
            instruction = self._codec.sync_read(free, address, asked)
            replies.update(_cut(self._ask(instruction, free, asked, self._timeout), size))
            missing = [id for id in free if isinstance(replies[id], Fault)]
            if missing:
                self._suspected[missing[0]] = max(self._suspected.values(), default=0) + 1
        return replies

    def sync_write(self, address: int, data: Mapping[int, bytes]) -> None:
        """Write data of one size to an address of several servos, by id; no servo acknowledges that."""
        if data:
            self._line.send(self._codec.encode(self._codec.sync_write(address, data)))

    def drain(self) -> None:
        """Wait out and discard what may still come."""
        self._line.rest(max(self._outstanding.last(), steady() + self._timeout))
        self._outstanding.clear()

    def close(self) -> None:
        """Close the port; every other method then raises PortError."""
        self._line.close()

    def _settle(self, until: float = 0.0) -> None:
        """Take note of what has come unasked, or too late."""
        for status in self._codec.Parser(Status).feed(self._line.rest(until)):
            self._outstanding.came_late(status.id, len(status.data), steady())

    def _ask(
        self, instruction: Instruction, ids: Collection[int], size: int, timeout: float
    ) -> dict[int, Reply]:
        """Send an instruction; return the replies of servos that are asked for size bytes."""
        request = self._codec.encode(instruction)
        if any(self._outstanding.was_latest(id, size) for id in ids):
            self._settle(steady() + _SECOND_TIME)
        # In Feetech's protocol an echo looks like an answer. One that looks like it is SILENT.
        echo = next(iter(self._codec.Parser(Status).feed(request)), None)
        awaited = _Awaited(ids, size, echo, self._outstanding)
        try:
            self._line.send(request)
        finally:  # Ctrl-C may come after it was sent
            until = steady() + timeout + LATEST
            for id in ids:
                self._outstanding.add(id, size, until)
        on_the_wire = _BITS * (len(request) + len(ids) * (size + _OVERHEAD)) / self._baud
        deadline = steady() + timeout + on_the_wire
        parser = self._codec.Parser(Status)
        over = False
        while awaited.missing - parser.suspects and not over:
            over = steady() > deadline  # then once more: what came in time counts
            for status in parser.feed(self._line.receive(deadline)):
                awaited.take(status)
        for status in parser.finish() if over else ():
            awaited.take(status)
        return awaited.replies(parser.junk, parser.suspects)


class _Awaited:
    """The answers that a request awaits: sorts what comes into these, late ones and foreign ones."""

    def __init__(
        self, ids: Collection[int], size: int, echo: Status | None, outstanding: Outstanding
    ) -> None:
        self._ids = ids
        self._size = size
        self._echo = echo
        self._outstanding = outstanding
        self._replies: dict[int, Reply] = {}
        self._foreign = False
        self._arrived: list[int] = []
        self.missing = set(ids)

    def take(self, status: Status) -> None:
        """Sort in a status; one from BROADCAST is the echo of a sync write before."""
        if status == self._echo:
            self._echo = None
            return
        size = len(status.data)
        if status.id in self.missing and size == self._size:
            self._outstanding.taken(status.id, size)
            self._replies[status.id] = Answer(status.data, status.error)
            self._arrived.append(status.id)
            self.missing.remove(status.id)
        elif status.id == BROADCAST or self._outstanding.came_late(status.id, size, steady()):
            return
        elif status.id in self.missing:
            self._replies[status.id] = Fault.SHORT
        elif status.id in self._ids:  # two answers of one id: one is that of another servo
            self._replies[status.id] = Fault.FOREIGN
        elif status.id not in self._ids:
            self._foreign = True

    def replies(self, junk: int, suspects: Collection[int]) -> dict[int, Reply]:
        """Return a reply per id, once no more is awaited."""
        self._reject_unordered()
        self._reject_after_gaps(suspects)
        for id in self.missing:
            if id in suspects or (junk and len(self.missing) == 1):
                self._replies[id] = Fault.CORRUPT
            elif id not in self._replies:
                self._replies[id] = Fault.FOREIGN if self._foreign else Fault.SILENT
        return {id: self._replies[id] for id in self._ids}

    def _reject_after_gaps(self, suspects: Collection[int]) -> None:
        """Reject the first answer after a servo of which nothing came: it may be its own, with a wrong id."""
        gap = False
        for id in self._ids:
            if id in self.missing:
                gap |= id not in suspects and id not in self._replies
            elif gap:
                self._replies[id], gap = Fault.FOREIGN, False

    def _reject_unordered(self) -> None:
        """Reject answers that did not come in the order in which servos were asked: one has a wrong id."""
        order = list(self._ids)
        places = [order.index(id) for id in self._arrived]
        for number, place in enumerate(places):
            if any(before > place for before in places[:number]) or any(
                after < place for after in places[number + 1 :]
            ):
                self._replies[self._arrived[number]] = Fault.FOREIGN


def _sizes(size: int) -> range:
    """Return the sizes that a read of size bytes may ask for."""
    return range(size, size + _SIZES * _APART, _APART)


def _cut(replies: Mapping[int, Reply], size: int) -> dict[int, Reply]:
    """Return replies with the size that was wanted."""
    return {
        id: Answer(reply.data[:size], reply.error) if isinstance(reply, Answer) else reply
        for id, reply in replies.items()
    }
