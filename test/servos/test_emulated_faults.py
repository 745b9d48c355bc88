# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the emulated bus: each fault, byte by byte, and the ends of its process."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from emulated_bus import EmulatedBus
from rig import emulated
from virtual_time import VirtualLine
from waiting import wait_for

from ik_node.servos.bus import feetech
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
    parser = feetech.Parser(Status)
    found = parser.feed(data)
    return [(status.id, int.from_bytes(status.data, 'little')) for status in found]


def test_without_faults_the_answer_is_that_of_the_manual(port):
    assert heard(port, READ) == ANSWER


def test_faults_change_the_answer_byte_by_byte(bus, port):
    bus.faults({'kind': 'echo'})
    assert heard(port, READ) == READ + ANSWER
    bus.faults({'kind': 'junk'})
    assert heard(port, READ).endswith(ANSWER)
    assert len(heard(port, READ)) > len(ANSWER)
    bus.faults({'kind': 'corrupt'})
    damaged = heard(port, READ)
    assert sum((a ^ b).bit_count() for a, b in zip(damaged, ANSWER, strict=True)) == 1
    bus.faults({'kind': 'short'})
    assert heard(port, READ) == feetech.encode(Status(1, 0, b'\x00'))
    bus.faults({'kind': 'foreign'})
    assert heard(port, READ) == feetech.encode(Status(2, 0, b'\x00\x08'))
    bus.faults({'kind': 'wrong', 'ticks': 512})
    assert heard(port, READ) == feetech.encode(Status(1, 0, b'\x00\x0a'))
    assert bus.log('answered')[-1][1:] == (1, 2048)
    bus.faults({'kind': 'status', 'bits': 0x24})
    assert heard(port, READ) == feetech.encode(Status(1, 0x24, b'\x00\x08'))
    bus.faults({'kind': 'lost', 'count': 1})
    assert heard(port, READ) == b''
    assert heard(port, READ) == ANSWER
    hits = bus.call('hits')
    assert sum(count for _, _, count in hits) == 1 + 2 + 5 + 1
    assert ['read 56', 'lost', 1] in hits


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


def test_an_arm_with_too_little_torque_for_its_gears_stays_where_it_is(bus, port):
    heard(port, feetech.encode(feetech.write(3, 48, b'\x14\x00')))
    heard(port, feetech.encode(feetech.write(3, 42, (2500).to_bytes(2, 'little'))))
    heard(port, feetech.encode(feetech.write(3, 40, b'\x01')))
    assert bus.state()[3]['actual'] == 2048


def test_a_driver_that_was_killed_does_not_lock_the_port():
    with EmulatedBus() as bus:
        with serial.Serial(bus.port, BAUD) as port:
            fcntl.ioctl(port.fileno(), termios.TIOCEXCL)

        def is_free() -> bool:
            with contextlib.suppress(serial.SerialException), serial.Serial(bus.port, BAUD) as again:
                return not struct.unpack('=i', fcntl.ioctl(again.fileno(), TIOCGEXCL, bytes(4)))[0]
            return False

        wait_for(is_free, 'the port', 5.0)  # root can open it even while it is locked


def test_the_process_ends_with_its_client():
    bus = EmulatedBus()
    folder = Path(bus.port).parent
    bus.close()
    assert bus._process.returncode == 0
    assert not folder.exists()


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_the_program_removes_its_port_when_it_is_told_to_end(number):
    program = _program()
    port = Path(program.stdout.readline().strip())
    assert port.exists()
    program.send_signal(number)
    assert program.wait(10.0) == 0
    assert not port.parent.exists()
    program.stdout.close()


def test_the_program_ends_with_the_one_that_started_it():
    script = (
        'import subprocess, sys, time\n'
        'subprocess.Popen([sys.executable, "-m", "ik_node.sim.bus", "so101"], stdin=subprocess.DEVNULL)\n'
        'time.sleep(60)\n'
    )
    parent = subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    port = Path(parent.stdout.readline().strip())
    assert port.exists()
    parent.kill()
    parent.wait()
    assert parent.stdout.read() == ''  # until the program has ended too
    parent.stdout.close()
    assert not os.path.lexists(port)


def _program():
    return subprocess.Popen(
        [sys.executable, '-m', 'ik_node.sim.bus', 'so101'],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
