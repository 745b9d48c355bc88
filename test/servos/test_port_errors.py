# SPDX-License-Identifier: Apache-2.0
"""What people are told whose port cannot be opened."""

import errno
import os
import pty
import subprocess
import sys
import termios
import tty

import pytest

from ik_node.errors import InputError
from ik_node.servos.bus import serial_transport
from ik_node.servos.bus.serial_transport import SerialLine, explain
from ik_node.servos.bus.transport import PortError
from ik_node.steady import steady

BAUD = 1_000_000


@pytest.fixture
def port():
    """Return the path of a terminal."""
    handles = pty.openpty()
    tty.setraw(handles[1])
    yield os.ttyname(handles[1])
    for handle in handles:
        os.close(handle)


def test_a_port_has_one_user_and_names_it(port):
    line = SerialLine(port, BAUD)
    with pytest.raises(PortError, match='is in use'):
        SerialLine(port, BAUD)
    program = (
        'import sys, serial; port = serial.Serial(sys.argv[1], exclusive=True); '
        'print("open", flush=True); sys.stdin.read()'
    )
    line.close()
    with subprocess.Popen(
        [sys.executable, '-c', program, port], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b'open\n'
        with pytest.raises(PortError, match=rf'is in use by python.* \(process {other.pid}\): stop that'):
            SerialLine(port, BAUD)
    SerialLine(port, BAUD).close()


def test_a_port_that_does_not_exist(tmp_path):
    with pytest.raises(PortError, match=r'ttyACM7 does not exist\. (No serial adapter|Plugged in)'):
        SerialLine(str(tmp_path / 'ttyACM7'), BAUD)


def test_what_is_no_serial_port(tmp_path):
    (tmp_path / 'file').write_text('')
    for path in (tmp_path / 'file', tmp_path):
        with pytest.raises(PortError, match='is not a serial port'):
            SerialLine(str(path), BAUD)


def test_a_wrong_baud_rate(port):
    with pytest.raises(InputError, match='baud'):
        SerialLine(port, -1)


def test_no_permission_names_the_group(tmp_path, monkeypatch):
    port = tmp_path / 'ttyACM0'
    port.write_text('')
    monkeypatch.setenv('USER', 'somebody')
    monkeypatch.setattr(os, 'getgroups', list)
    error = explain(str(port), PermissionError(errno.EACCES, 'Permission denied'))
    assert 'sudo usermod -aG ' in str(error)
    assert 'somebody' in str(error)


@pytest.mark.parametrize(('name', 'remedy'), [('ModemManager', 'systemctl'), ('brltty', 'apt remove brltty')])
def test_programs_that_take_ports_are_named_with_a_remedy(monkeypatch, name, remedy):
    monkeypatch.setattr(serial_transport, '_holding', lambda _: [(42, name)])
    error = explain('/dev/ttyACM0', BlockingIOError(errno.EAGAIN, 'busy'))
    assert f'in use by {name} (process 42): ' in str(error)
    assert remedy in str(error)


def test_a_line_carries_bytes_until_it_is_closed_or_unplugged():
    terminal, inner = pty.openpty()
    tty.setraw(inner)
    line = SerialLine(os.ttyname(inner), BAUD)
    line.send(b'to')
    assert os.read(terminal, 9) == b'to'
    os.write(terminal, b'from')
    assert line.receive(steady() + 20.0) == b'from'
    assert line.receive(steady()) == b''
    os.close(inner)
    os.close(terminal)
    with pytest.raises(PortError, match='is gone'):
        line.receive(steady() + 20.0)
    line.close()
    line.close()
    with pytest.raises(PortError, match='is closed'):
        line.send(b'to')


def test_an_adapter_that_vanishes_while_it_is_opened_is_gone(port, monkeypatch):
    def vanish(*_):
        raise termios.error(errno.EIO, 'Input/output error')  # pyserial lets it through: it is no OSError

    monkeypatch.setattr(termios, 'tcflush', vanish)
    with pytest.raises(PortError):
        SerialLine(port, BAUD)
