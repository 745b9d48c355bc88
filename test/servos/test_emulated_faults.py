# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the emulated bus: each fault, byte by byte, and the end of its process."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rig import emulated
from virtual_time import VirtualLine
from waiting import wait_for

from ik_node.servos.bus.feetech import feetech
from ik_node.servos.bus.packets import BROADCAST, PING, Instruction, Status

serial = pytest.importorskip('serial')

BAUD = 1_000_000
TIOCGEXCL = 0x80045440
READ = feetech.encode(feetech.read(1, 56, 2))
ANSWER = feetech.encode(Status(1, 0, (2048).to_bytes(2, 'little')))
ALL = feetech.encode(feetech.sync_read([1, 2, 3], 56, 2))


@pytest.fixture
def bus():
    with emulated() as bus:
        yield bus


@pytest.fixture
def port(bus):
    return VirtualLine(bus, BAUD)


def listened(port: VirtualLine) -> bytes:
    """What comes in the next 0.2 s."""
    end, found = port._clock.now + 0.2, b''
    while piece := port.receive(end):
        found += piece
    return found


def heard(port: VirtualLine, sent: bytes) -> bytes:
    port.send(sent)
    return listened(port)


def statuses(data: bytes) -> list[tuple[int, int]]:
    parser = feetech.parser(Status)
    found = parser.feed(data)
    return [(status.id, int.from_bytes(status.data, 'little')) for status in found]


@pytest.mark.parametrize(
    ('fault', 'answer'),
    [
        (None, ANSWER),
        ({'kind': 'echo'}, READ + ANSWER),
        ({'kind': 'short'}, feetech.encode(Status(1, 0, b'\x00'))),
        ({'kind': 'foreign'}, feetech.encode(Status(2, 0, b'\x00\x08'))),
        ({'kind': 'wrong', 'ticks': 512}, feetech.encode(Status(1, 0, b'\x00\x0a'))),
        ({'kind': 'status', 'bits': 0x24}, feetech.encode(Status(1, 0x24, b'\x00\x08'))),
        ({'kind': 'lost', 'count': 1}, b''),
    ],
)
def test_faults_change_the_answer(bus, port, fault, answer):
    bus.faults(*([fault] if fault else []))
    assert heard(port, READ) == answer
    assert sum(count for _, _, count in bus.call('hits')) == (fault is not None)


def test_junk_comes_before_the_answer_and_damage_is_one_bit(bus, port):
    bus.faults({'kind': 'junk'})
    assert ANSWER == heard(port, READ)[-len(ANSWER) :] != heard(port, READ)
    bus.faults({'kind': 'corrupt'})
    assert sum((a ^ b).bit_count() for a, b in zip(heard(port, READ), ANSWER, strict=True)) == 1


def test_a_late_answer_comes_after_the_answer_to_a_later_instruction(bus, port):
    bus.faults({'kind': 'late', 'delay': 0.1, 'count': 1})
    port.send(READ)
    port.send(feetech.encode(feetech.read(2, 56, 1)))
    assert listened(port) == feetech.encode(Status(2, 0, b'\x00')) + ANSWER


def test_pieces_of_an_answer_are_not_mixed_with_those_of_the_next_servo(bus, port):
    bus.faults({'kind': 'split', 'delay': 0.02, 'id': 1}, {'kind': 'late', 'delay': 0.05, 'id': 2})
    assert statuses(heard(port, ALL)) == [(1, 2048), (2, 2048), (3, 2048)]


def test_a_missing_servo_is_skipped_or_silences_those_after_it(bus, port):
    bus.faults({'kind': 'missing', 'id': 2})
    assert statuses(heard(port, ALL)) == [(1, 2048), (3, 2048)]
    bus.faults({'kind': 'missing', 'id': 2}, {'kind': 'silence'})
    assert statuses(heard(port, ALL)) == [(1, 2048)]


def test_the_answers_of_two_servos_with_one_id_collide(bus, port):
    bus.call('put', id=2, address=5, size=1, value=1)
    ping = feetech.encode(Instruction(1, PING))
    assert heard(port, ping) == feetech.encode(Status(1))  # both say the same
    bus.call('put', id=1, address=63, size=1, value=0x55)
    warm = feetech.encode(feetech.read(1, 63, 1))
    one, other = (feetech.encode(Status(1, 0, bytes((degrees,)))) for degrees in (0x55, 30))
    assert heard(port, warm) == bytes(a & b for a, b in zip(one, other, strict=True))
    assert statuses(heard(port, feetech.encode(feetech.sync_read([1, 3], 63, 1)))) == [(3, 30)]


def test_servos_do_not_hear_a_line_of_another_speed(bus):
    assert heard(VirtualLine(bus, 57_600), READ) == b''
    assert heard(VirtualLine(bus, BAUD), READ) == ANSWER


def test_no_instruction_ends_the_bus(bus, port):
    codes, ids = (0x01, 0x02, 0x03, 0x04, 0x06, 0x82, 0x83, 0xFF), (1, BROADCAST)
    for id, code, parameters in itertools.product(ids, codes, (b'', b'\x38', b'\xff' * 200)):
        heard(port, feetech.encode(Instruction(id, code, parameters)))
    assert heard(port, READ) == ANSWER
    assert bus.call('get', id=1, address=0, size=1) == 3  # the version of the firmware is not writable


def test_no_supply_but_a_wrong_one_and_alarms_are_in_every_answer_and_in_the_status_register(bus, port):
    status = feetech.encode(feetech.read(1, 62, 4))
    bus.call('volts', volts=15.0)
    assert heard(port, status) == feetech.encode(Status(1, 1, bytes((150, 30, 0, 1))))
    bus.call('volts', volts=7.0, id=1)
    bus.call('alarms', bits=0x04, id=1)
    assert heard(port, status) == feetech.encode(Status(1, 4, bytes((70, 30, 0, 4))))
    assert heard(port, feetech.encode(feetech.read(2, 62, 1)))[4] == 1


def test_the_bus_knows_how_far_each_joint_has_been(bus, port):
    heard(port, feetech.encode(feetech.write(3, 40, b'\x01')))
    for goal in (2200, 1900, 2048):
        heard(port, feetech.encode(feetech.write(3, 42, goal.to_bytes(2, 'little'))))
    state = bus.state()[3]
    assert state['lowest'] == pytest.approx(1900, abs=4)
    assert state['highest'] == pytest.approx(2200, abs=4)
    bus.call('watch')
    assert bus.state()[3]['highest'] == pytest.approx(2048, abs=8)
    with pytest.raises(LookupError, match='9'):
        bus.call('motor', id=9, actual=0.0)


@pytest.mark.slow
def test_the_program_frees_its_port_and_removes_it_when_it_is_told_to_end():
    command = [sys.executable, '-m', 'ik_node.servos.emulator', 'so101']
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as program:
        path = Path(program.stdout.readline().strip())
        with serial.Serial(str(path), BAUD) as port:
            fcntl.ioctl(port.fileno(), termios.TIOCEXCL)  # by a driver that was killed

        def is_free() -> bool:
            with contextlib.suppress(serial.SerialException), serial.Serial(str(path), BAUD) as again:
                return not struct.unpack('=i', fcntl.ioctl(again.fileno(), TIOCGEXCL, bytes(4)))[0]
            return False

        wait_for(is_free, 'the port', 20.0)  # root can open it even while it is locked
        program.send_signal(signal.SIGTERM)
        assert program.wait(20.0) == 0
    assert not path.parent.exists()
