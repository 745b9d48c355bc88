# SPDX-License-Identifier: Apache-2.0
"""SerialLine: the bytes of a serial port, without busy waiting."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import termios

from ik_node.errors import InputError
from ik_node.extras import load
from ik_node.servos.bus.port_errors import check_alone, explain, gone
from ik_node.servos.bus.transport import PortError
from ik_node.steady import steady

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
