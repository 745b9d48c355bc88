# SPDX-License-Identifier: Apache-2.0
"""SerialTransport: a servo bus behind a serial port of this computer."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import select
import termios
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from ik_node.errors import InputError, path_text
from ik_node.extras import load
from ik_node.servos.bus.transport import Answer, Fault, PortError, Reply
from ik_node.steady import steady

from .packets import BROADCAST, Codec, Instruction, Status, check

TERMINALS = '/dev/pts/'  # emulated servos, whose program holds both ends

# Programs that open serial ports that are not meant for them, and how to stop them.
_INTRUDERS = {
    'ModemManager': 'it treats every new port as a modem; stop it: sudo systemctl disable --now ModemManager',
    'brltty': 'it takes this adapter for a Braille display; remove it: sudo apt remove brltty',
}


def ports() -> list[str]:
    """Return the paths of all serial adapters: those in /dev/serial/by-id if there are any."""
    by_id = sorted(map(str, Path('/dev/serial/by-id').glob('*')))
    return by_id or sorted(str(path) for kind in ('ttyACM*', 'ttyUSB*') for path in Path('/dev').glob(kind))


def explain(port: str, error: OSError) -> PortError:
    """Return the error for a port that could not be opened."""
    name = path_text(port)
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return PortError(f'{name} does not exist. {_present()}{_taken_by_brltty()}')
    if error.errno in (errno.EACCES, errno.EPERM):
        return PortError(f'no permission to open {name}. {_permission(port)}')
    if error.errno in (errno.EBUSY, errno.EAGAIN):
        return PortError(f'{name} is in use{_holders(port)}')
    if error.errno in (errno.ENOTTY, errno.EINVAL, errno.EISDIR):
        return PortError(f'{name} is not a serial port, or does not support this baud rate. {_present()}')
    return PortError(f'{name} cannot be opened: {error.strerror or error}. Plug the adapter in again')


def check_alone(port: str) -> None:
    """Raise PortError if another program has opened a port before, without a lock."""
    device = os.path.realpath(port)
    if device != os.devnull and not device.startswith(TERMINALS) and _holding(device):
        raise PortError(f'{path_text(port)} is in use{_holders(port)}')


def gone(port: str) -> PortError:
    """Return the error for an open port that has stopped working."""
    return PortError(f'{path_text(port)} is gone: the adapter was unplugged or reset. Plug it in and open it again')


def _present() -> str:
    found = ports()
    if not found:
        return 'No serial adapter is plugged in: connect its USB cable'
    return f'Plugged in: {", ".join(map(path_text, found))}'


def _permission(port: str) -> str:
    """Return how to get permission to open a port."""
    try:
        owner = grp.getgrgid(Path(port).stat().st_gid)
    except (OSError, KeyError):
        return 'Ask the administrator of this computer'
    if owner.gr_gid in os.getgroups():
        return f'Group {owner.gr_name} has no access either. Run: sudo chmod g+rw {path_text(port)}'
    user = os.environ.get('USER', '')
    if user and user in owner.gr_mem:
        return f'You will be in the group {owner.gr_name} after the next login: log out and in again'
    return f'Join its group, then log out and in again: sudo usermod -aG {owner.gr_name} {user or "$USER"}'


def _holders(port: str) -> str:
    """Return which other programs have a port open, and how to stop them."""
    holders = list(_holding(os.path.realpath(port)))
    if not holders:
        return ' by another program, perhaps ModemManager or brltty: sudo fuser -v ' + path_text(port)
    names = ', '.join(f'{name} (process {process})' for process, name in holders)
    remedies = [remedy for intruder, remedy in _INTRUDERS.items() if intruder in dict(holders).values()]
    return f' by {names}: ' + ('; '.join(remedies) or 'stop that first')


def _holding(device: str) -> list[tuple[int, str]]:
    """Return number and name of the other processes that have a device open, as far as permissions allow."""
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            if int(folder.name) != os.getpid() and any(
                os.path.realpath(handle) == device for handle in (folder / 'fd').iterdir()
            ):
                found.append((int(folder.name), (folder / 'comm').read_text(encoding='utf-8').strip()))
        except OSError:
            continue  # it belongs to somebody else, or has just ended
    return found


def _taken_by_brltty() -> str:
    """Return a remark where brltty runs: it makes CH340 adapters vanish again."""
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            if (folder / 'comm').read_text(encoding='utf-8').strip() == 'brltty':
                return f'. brltty is running: {_INTRUDERS["brltty"]}'
        except OSError:
            continue
    return ''


_MOST = 4096  # [bytes] read at once
_FLOOD = 0.1  # [s] after which bytes that never end are left alone
_SEND_TIME = 0.5  # [s] that an adapter may take for a packet; more, and it hangs


class SerialLine:
    """A serial port that nobody else can use meanwhile. Raises PortError, MissingError without pyserial."""

    def __init__(self, port: str, baud: int) -> None:
        serial = load('serial', 'a servo bus')
        self._port = port
        self._closed = False
        check_alone(port)
        try:
            self._serial = serial.Serial(port, baud, timeout=0, exclusive=True)
        except ValueError as error:
            raise InputError(f'the baud rate must be a positive integer, but is {baud}') from error
        except termios.error as error:  # the adapter has vanished meanwhile
            raise explain(port, OSError(*error.args)) from error
        except OSError as error:  # of which serial.SerialException is a kind
            raise explain(port, _cause(error)) from error
        self._handle: int = self._serial.fileno()
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._handle, termios.TIOCEXCL)  # also against programs that do not ask for a lock
        with contextlib.suppress(OSError, ValueError):
            self._serial.set_low_latency_mode(True)  # else FTDI adapters wait 16 ms before they deliver
        self._input = select.poll()
        self._input.register(self._handle, select.POLLIN)
        self._output = select.poll()
        self._output.register(self._handle, select.POLLOUT)

    def send(self, data: bytes) -> None:
        """Send data."""
        end = steady() + _SEND_TIME
        while data:
            try:
                self._check()
                data = data[os.write(self._handle, data) :]
            except BlockingIOError:
                if steady() > end:
                    raise gone(self._port) from None
                self._output.poll(10)
            except OSError as error:
                raise gone(self._port) from error

    def receive(self, deadline: float) -> bytes:
        """Return what comes next, b'' if nothing came until the deadline (monotonic)."""
        while True:
            # What came in time counts, even if this thread slept longer.
            rest = max(0.0, deadline - steady())
            self._check()
            if self._input.poll(rest * 1000):
                try:
                    data = os.read(self._handle, _MOST)
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise gone(self._port) from error
                if not data:
                    raise gone(self._port)
                return data
            if rest == 0.0:
                return b''

    def rest(self, until: float = 0.0) -> bytes:
        """Return what has come and what comes until a time (monotonic)."""
        end = max(until, steady() + _FLOOD)
        found = b''
        while (data := self.receive(until)) and steady() < end:
            found += data
        return found

    def close(self) -> None:
        """Close the port."""
        self._closed = True
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._handle, termios.TIOCNXCL)
        with contextlib.suppress(OSError, termios.error):
            self._serial.close()

    def _check(self) -> None:
        if self._closed:
            raise PortError(f'{self._port} is closed')


def _cause(error: OSError) -> OSError:
    """Return the error of the system behind one of pyserial, of which some keep only the text."""
    details = error.__context__.args if error.errno is None and error.__context__ else ()
    return OSError(*details) if details and isinstance(details[0], int) else error


# PendingReplies: answers that servos may still give to requests of the past.
#
# An answer says which servo gave it and how long it is, but not to which request. So a request must ask
# for a size that no outstanding answer of this servo has: the size then tells a late answer from the
# expected one.

LATEST = 0.3  # [s] after its request no answer comes any more
TWICE = 0.02  # [s] after a late answer in which it may come a second time


class PendingReplies:
    """Answers that may still come, by id and size [bytes]; times are monotonic [s]."""

    def __init__(self) -> None:
        self._until: dict[tuple[int, int], float] = {}
        self._latest: dict[int, int] = {}  # size of the latest answer, by id

    def add(self, id: int, size: int, until: float) -> None:
        """Note that an answer may come until a time."""
        self._until[id, size] = max(until, self._until.get((id, size), until))

    def note_expected(self, id: int, size: int) -> None:
        """Note that the expected answer came."""
        self._until.pop((id, size), None)
        self._latest[id] = size

    def note_late(self, id: int, size: int, now: float) -> bool:
        """Note that an answer came that was no longer expected; return whether it was outstanding."""
        known = (id, size) in self._until
        if known:
            self._until[id, size] = min(now + TWICE, self._until[id, size])
        return known

    def has(self, id: int, size: int, now: float) -> bool:
        """Return whether such an answer may still come."""
        return self._until.get((id, size), now) > now

    def was_latest(self, id: int, size: int) -> bool:
        """Return whether the latest answer of a servo had this size."""
        return self._latest.get(id) == size

    def best(self, ids: Iterable[int], sizes: Iterable[int], now: float) -> int:
        """Return the size that is outstanding of the fewest servos.

        Of several it is one that the latest answers did not have: where two servos have the same id, the
        second answer must not be taken for that to the next request.
        """
        candidates = list(ids)

        def ambiguities(size: int) -> tuple[int, int]:
            return (
                sum(self.has(id, size, now) for id in candidates),
                sum(self.was_latest(id, size) for id in candidates),
            )

        return min(sizes, key=ambiguities)

    def last(self) -> float:
        """Return when no answer can come any more."""
        return max(self._until.values(), default=0.0)

    def clear(self) -> None:
        """Forget all answers."""
        self._until.clear()


_SIZES = 4  # that a read may ask for: so many answers of a servo can be outstanding
_APART = 2  # [bytes]: a late answer that lacks a byte has no other size of that read
_WRITE_TIME = 0.1  # [s] that an acknowledgement may take: a servo first writes to its EEPROM
_SECOND_TIME = 0.002  # [s] after an answer in which a second servo with the same id would answer
_OVERHEAD = 16  # [bytes] of a packet besides its data, at most
_BITS = 10  # per byte on the wire


class SerialTransport:
    """The bus at a serial port; see Transport.

    port: path of the device. baud: [1/s]. codec: its protocol. timeout: [s] after which a
    servo is taken for silent. What adapters echo is ignored.

    A read of a servo with outstanding answers requests a few bytes more, so that sizes tell answers apart.
    A servo for which no size is left is SILENT for a while without being asked, so it does not slow down the
    others. A write waits while an acknowledgement is outstanding. Nothing is sent twice.
    """

    def __init__(self, port: str, baud: int, codec: Codec, timeout: float = 0.02) -> None:
        self._codec = codec
        self._baud = baud
        self._timeout = timeout
        self._outstanding = PendingReplies()
        # Servos after a missing one may keep silent in a sync read: it comes last in the next one.
        self._suspected: dict[int, int] = {}  # rank, by id
        self._line = SerialLine(port, baud)

    def ping(self, id: int) -> Reply:
        """Ask a servo for its id: unlike the answer to a ping, that to a read can have another size."""
        reply = self.read(id, self._codec.ID_ADDRESS, 1)
        return reply if isinstance(reply, Fault) or reply.data[0] == id else Fault.FOREIGN

    def read(self, id: int, address: int, size: int) -> Reply:
        """Read size bytes from an address on."""
        check('the id of a servo', id, self._codec.LARGEST_ID)
        self._take_late()
        length = self._outstanding.best([id], _sizes(size), steady())
        if self._outstanding.has(id, length, steady()):
            return Fault.SILENT
        instruction = self._codec.read(id, address, length)
        return _cut(self._request(instruction, [id], length, self._timeout), size)[id]

    def write(self, id: int, address: int, data: bytes) -> Reply:
        """Write data to an address, and wait for the acknowledgement."""
        check('the id of a servo', id, self._codec.LARGEST_ID)
        self._take_late()
        if self._outstanding.has(id, 0, steady()):
            self.drain()
        instruction = self._codec.write(id, address, data)
        return self._request(instruction, [id], 0, max(self._timeout, _WRITE_TIME))[id]

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Reply]:
        """Read size bytes from an address of each servo; a reply per id, in this order."""
        self._take_late()
        now = steady()
        ids = list(dict.fromkeys(ids))
        length = self._outstanding.best(ids, _sizes(size), now)
        free = [id for id in ids if not self._outstanding.has(id, length, now)]
        free.sort(key=lambda id: self._suspected.get(id, 0))
        replies: dict[int, Reply] = dict.fromkeys(ids, Fault.SILENT)
        if free:
            instruction = self._codec.sync_read(free, address, length)
            replies.update(_cut(self._request(instruction, free, length, self._timeout), size))
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

    def _take_late(self, until: float = 0.0) -> None:
        """Note answers that came too late, or to no request."""
        for status in self._codec.parser(Status).feed(self._line.rest(until)):
            self._outstanding.note_late(status.id, len(status.data), steady())

    def _request(self, instruction: Instruction, ids: Collection[int], size: int, timeout: float) -> dict[int, Reply]:
        """Send an instruction; return the replies of servos that are asked for size bytes."""
        request = self._codec.encode(instruction)
        if any(self._outstanding.was_latest(id, size) for id in ids):
            self._take_late(steady() + _SECOND_TIME)
        # In Feetech's protocol an echo looks like an answer. One that looks like it is SILENT.
        echo = next(iter(self._codec.parser(Status).feed(request)), None)
        expected = _Replies(ids, size, echo, self._outstanding)
        try:
            self._line.send(request)
        finally:  # Ctrl-C may come after it was sent
            until = steady() + timeout + LATEST
            for id in ids:
                self._outstanding.add(id, size, until)
        on_the_wire = _BITS * (len(request) + len(ids) * (size + _OVERHEAD)) / self._baud
        deadline = steady() + timeout + on_the_wire
        parser = self._codec.parser(Status)
        over = False
        while expected.missing - parser.suspects and not over:
            over = steady() > deadline  # then once more: what came in time counts
            for status in parser.feed(self._line.receive(deadline)):
                expected.take(status)
        for status in parser.finish() if over else ():
            expected.take(status)
        return expected.replies(parser.junk, parser.suspects)


class _Replies:
    """The answers that a request awaits: sorts what comes into these, late ones and foreign ones."""

    def __init__(self, ids: Collection[int], size: int, echo: Status | None, outstanding: PendingReplies) -> None:
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
            self._outstanding.note_expected(status.id, size)
            self._replies[status.id] = Answer(status.data, status.error)
            self._arrived.append(status.id)
            self.missing.remove(status.id)
        elif status.id == BROADCAST or self._outstanding.note_late(status.id, size, steady()):
            return
        elif status.id in self.missing:
            self._replies[status.id] = Fault.SHORT
        elif status.id in self._ids:  # two answers of one id: one is that of another servo
            self._replies[status.id] = Fault.FOREIGN
        elif status.id not in self._ids:
            self._foreign = True

    def replies(self, junk: int, suspects: Collection[int]) -> dict[int, Reply]:
        """Return a reply per id, once no more is expected."""
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
        """Reject answers that did not come in the order of the request: one has a wrong id."""
        order = list(self._ids)
        ranks = [order.index(id) for id in self._arrived]
        for number, rank in enumerate(ranks):
            if any(before > rank for before in ranks[:number]) or any(after < rank for after in ranks[number + 1 :]):
                self._replies[self._arrived[number]] = Fault.FOREIGN


def _sizes(size: int) -> range:
    return range(size, size + _SIZES * _APART, _APART)


def _cut(replies: Mapping[int, Reply], size: int) -> dict[int, Reply]:
    return {
        id: Answer(reply.data[:size], reply.error) if isinstance(reply, Answer) else reply
        for id, reply in replies.items()
    }
