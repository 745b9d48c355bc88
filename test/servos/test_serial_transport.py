# SPDX-License-Identifier: Apache-2.0
"""SerialTransport against buses whose answers are late, doubled, damaged, foreign or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_bus import ScriptedBus, answers, asked
from virtual_time import virtual_time

from ik_node.errors import InputError
from ik_node.servos.bus.dynamixel import dynamixel
from ik_node.servos.bus.feetech import feetech
from ik_node.servos.bus.packets import BROADCAST, READ, SYNC_WRITE, WRITE, Status
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Answer, Fault, PortError

TIMEOUT = 0.25  # [s]; tests that need many time-outs have shorter ones, and try again
pytestmark = pytest.mark.parametrize('codec', [feetech, dynamixel], ids=['feetech', 'dynamixel'])


def script_of(codec, script):
    return script or (lambda number, instruction: answers(codec, number, instruction))


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.fixture
def bus(codec, clock):
    """Return a function that starts a bus with a script on a virtual clock, and a transport for it."""

    def start(script=None, timeout=TIMEOUT):
        scripted = ScriptedBus(codec, script_of(codec, script), clock)
        transport = SerialTransport(scripted.port, 1_000_000, codec, timeout)
        scripted.line = transport._line
        return scripted, transport

    return start


def first(reply):
    """Return the number of the request that a reply says it answers; a fault as it is."""
    return reply.data[0] if isinstance(reply, Answer) else reply


def until(call, wanted):
    """Call until the result is wanted; return it."""
    for _ in range(1000):
        if wanted(result := call()):
            return result
    raise AssertionError(result)


def test_reads_and_writes(bus):
    scripted, transport = bus()
    assert transport.read(3, 56, 15) == Answer(bytes(15))
    assert transport.write(3, 40, b'\x01') == Answer(b'')
    assert transport.sync_read([1, 2, 3], 56, 15) == dict.fromkeys([1, 2, 3], Answer(bytes([2, *bytes(14)])))
    transport.sync_write(42, {1: b'ab', 2: b'cd'})
    assert list(transport.sync_read([2, 2, 1], 56, 15)) == [2, 1]
    assert [instruction.code for instruction in scripted.instructions][3] == SYNC_WRITE
    assert transport.sync_read([], 56, 15) == {}
    transport.sync_write(42, {})
    assert len(scripted.instructions) == 5


def test_a_ping_tells_a_servo_by_its_id(codec, bus):
    def script(_, instruction):
        size = asked(codec, instruction)[1]
        return codec.encode(Status(instruction.id, 0, bytes([7, *bytes(size)])[:size]))

    _, transport = bus(script)
    assert isinstance(transport.ping(7), Answer)
    assert transport.ping(8) is Fault.FOREIGN


def test_error_bytes_are_no_failures(codec, bus):
    def script(_, instruction):
        return codec.encode(Status(instruction.id, 0x21, bytes(asked(codec, instruction)[1])))

    _, transport = bus(script)
    assert transport.read(3, 56, 4) == Answer(bytes(4), 0x21)
    assert transport.write(3, 40, b'\x00') == Answer(b'', 0x21)


def test_nothing_is_sent_twice_and_a_silent_servo_costs_no_more_time(bus):
    """Four answers may be outstanding; then the servo counts as silent without being asked."""
    scripted, transport = bus(lambda *_: b'', timeout=0.01)
    for _ in range(8):
        assert transport.read(3, 56, 15) is Fault.SILENT
    assert len(scripted.instructions) == 4
    transport.drain()
    assert transport.read(3, 56, 15) is Fault.SILENT
    assert len(scripted.instructions) == 5
    assert transport.write(3, 40, b'\x01') is Fault.SILENT
    assert [what.code for what in scripted.instructions] == [READ] * 5 + [WRITE]


@pytest.mark.parametrize('size', [1, 2, 15])
@pytest.mark.parametrize('together', [False, True])
def test_a_late_answer_is_not_taken_for_that_to_the_next_read(codec, bus, size, together):
    """The late answer comes just before that to the next request."""
    late = []

    def script(number, what):
        late.append(answers(codec, number, what))
        return b'' if number == 0 else late[0] + late[number] if number == 1 else late[number]

    _, transport = bus(script)
    ids = [1, 2, 3] if together else [3]
    for expected in (Fault.SILENT, 1, 2):
        replies = transport.sync_read(ids, 56, size) if together else {3: transport.read(3, 56, size)}
        assert set(map(first, replies.values())) == {expected}


def test_a_late_answer_alone_is_a_fault(codec, bus):
    """The answer to the second request never comes; the first comes in its place."""
    late = []

    def script(number, what):
        late.append(answers(codec, number, what))
        return late[number - 1] if number % 2 else b''

    _, transport = bus(script)
    assert transport.sync_read([1], 56, 15) == {1: Fault.SILENT}
    assert transport.sync_read([1], 56, 15) == {1: Fault.SILENT}


def test_an_answer_that_lay_there_for_long_is_not_taken_for_another(codec, bus):
    """As after this process was stopped: the answer came, and is no longer outstanding by the clock."""
    late = []

    def script(number, what):
        late.append(answers(codec, number, what))
        return late[number] if number else b''

    scripted, transport = bus(script)
    assert transport.sync_read([3], 56, 15) == {3: Fault.SILENT}
    scripted.send(late[0])
    transport._outstanding.clear()
    assert first(transport.sync_read([3], 56, 15)[3]) == 1


def test_a_late_acknowledgement_is_not_taken_for_another(codec, bus, clock):
    """The second write waits until the acknowledgement of the first can come no more."""
    scripted, transport = bus(lambda number, what: b'' if number == 0 else answers(codec, number, what))
    start = clock.now
    assert transport.write(3, 40, b'\x01') is Fault.SILENT
    clock.at(clock.now + 0.05, lambda: scripted.send(codec.encode(Status(3))))
    assert transport.write(3, 40, b'\x00') == Answer(b'')
    assert clock.now - start > 0.3


def test_a_doubled_answer_is_not_taken_for_that_to_the_next_request(codec, bus):
    """Two servos with the same id: the second answer comes after the next request."""
    second = []

    def script(number, what):
        held = b''.join(second)
        second[:] = [answers(codec, number, what)]
        return held + second[0]

    _, transport = bus(script)
    for number in range(5):
        assert first(transport.read(3, 56, 15)) == number
    for number in range(5, 10):
        assert first(transport.sync_read([3], 56, 15)[3]) == number


def test_a_servo_that_owes_answers_is_left_out_and_hides_no_other(codec, bus):
    """The third servo is silent: the others are read in every cycle, it only now and then."""

    def script(_, what):
        ids, size = asked(codec, what)
        return b''.join(codec.encode(Status(id, 0, bytes(size))) for id in ids if id != 3)

    scripted, transport = bus(script, timeout=0.01)
    good = {1: Answer(bytes(15)), 2: Answer(bytes(15)), 3: Fault.SILENT, 4: Answer(bytes(15))}
    for _ in range(5):
        assert until(lambda: transport.sync_read([1, 2, 3, 4], 56, 15), good.__eq__)
    until(
        lambda: transport.sync_read([1, 2, 3, 4], 56, 15),
        lambda _: asked(codec, scripted.instructions[-1])[0] == [1, 2, 4],
    )


def test_a_missing_servo_after_which_all_are_silent_hides_no_other(codec, bus):
    """Two are missing: each is asked last once it was the first without an answer."""

    def script(_, what):
        ids, size = asked(codec, what)
        there = next((n for n, id in enumerate(ids) if id in (2, 4)), len(ids))
        return b''.join(codec.encode(Status(id, 0, bytes(size))) for id in ids[:there])

    _, transport = bus(script, timeout=0.1)
    replies = until(
        lambda: transport.sync_read([1, 2, 3, 4, 5], 56, 15),
        lambda replies: [id for id, reply in replies.items() if isinstance(reply, Answer)] == [1, 3, 5],
    )
    assert list(replies) == [1, 2, 3, 4, 5]


def test_a_late_answer_that_came_blocks_nothing(codec, bus, clock):
    """All sizes are outstanding until the late answers have come, and their seconds would have."""
    late = []

    def script(number, what):
        late.append(answers(codec, number, what))
        return late[number] if number > 3 else b''

    scripted, transport = bus(script, timeout=0.01)
    for _ in range(5):
        assert transport.read(3, 56, 15) is Fault.SILENT
    assert len(scripted.instructions) == 4
    scripted.send(b''.join(late))
    assert transport.read(3, 56, 15) is Fault.SILENT
    assert transport._outstanding.last() - clock.now < 0.03
    clock.sleep(0.03)
    assert first(transport.read(3, 56, 15)) == len(late) - 1


def test_junk_split_bytes_and_echo_do_no_harm(codec, bus):
    def script(number, what):
        return codec.encode(what) + b'\x00\xff\x13' + answers(codec, number, what)

    _, transport = bus(script)
    assert first(transport.read(3, 56, 2)) == 0
    assert transport.write(3, 42, b'ab') == Answer(b'')
    transport.sync_write(42, {1: b'ab', 2: b'cd'})
    assert set(map(first, transport.sync_read([1, 2], 56, 15).values())) == {3}


def test_an_echo_is_no_answer(codec, bus):
    """Of Feetech, the echo of a read of two bytes looks like an answer with an error."""
    _, transport = bus(lambda _, what: codec.encode(what), timeout=0.01)
    for size in (1, 2, 3, 15):
        assert transport.read(2, 56, size) is Fault.SILENT
    assert transport.ping(4) is Fault.SILENT
    assert transport.write(3, 42, b'ab') is Fault.SILENT
    assert transport.sync_read([1, 2], 56, 2) == {1: Fault.SILENT, 2: Fault.SILENT}


def test_an_echo_does_not_pay_an_answer_that_is_outstanding(codec, bus):
    """Nothing may take the echo of a read for the late answer of two bytes of the sync read before."""
    late = []

    def script(number, what):
        late.append(answers(codec, number, what))
        return (b'', codec.encode(what), late[0])[number] + (late[number] if number else b'')

    _, transport = bus(script)
    assert transport.sync_read([3], 56, 2) == {3: Fault.SILENT}
    assert first(transport.read(3, 56, 4)) == 1
    assert first(transport.sync_read([3], 56, 2)[3]) == 2


@pytest.mark.parametrize(
    ('damage', 'fault'),
    [
        (lambda codec, id, size: codec.encode(Status(id, 0, bytes(size)))[:-1] + b'\x55', Fault.CORRUPT),
        (lambda codec, id, size: codec.encode(Status(id, 0, bytes(size)))[:-1], Fault.CORRUPT),
        (lambda codec, id, size: codec.encode(Status(id, 0, bytes(max(size - 1, 0)))), Fault.SHORT),
        (lambda codec, id, size: codec.encode(Status(id, 0, bytes(size + 8))), Fault.SHORT),
        (lambda codec, id, size: codec.encode(Status(id + 1, 0, bytes(size))), Fault.FOREIGN),
        (lambda codec, _, size: codec.encode(Status(BROADCAST, 0, bytes(size))), Fault.SILENT),
        (lambda *_: b'\xff' * 3000, Fault.CORRUPT),
    ],
)
def test_what_is_no_answer_is_a_fault(codec, bus, damage, fault):
    def script(_, what):
        return b''.join(damage(codec, id, asked(codec, what)[1]) for id in asked(codec, what)[0])

    _, transport = bus(script, timeout=0.1)
    for call in (lambda: transport.read(3, 56, 15), lambda: transport.sync_read([3], 56, 15)[3]):
        assert until(call, lambda reply: reply is fault) is fault
        transport.drain()


def test_a_damaged_answer_hides_no_other(codec, bus):
    def script(_, what):
        parts = [codec.encode(Status(id, 0, bytes(asked(codec, what)[1]))) for id in asked(codec, what)[0]]
        parts[1] = parts[1][:-1] + b'\x55'
        return b''.join(parts)

    _, transport = bus(script)
    good = Answer(bytes(15))
    assert transport.sync_read([1, 2, 3], 56, 15) == {1: good, 2: Fault.CORRUPT, 3: good}


@pytest.mark.parametrize(
    ('answering', 'replies'),
    [
        ([(2, 1), (2, 2), (3, 3)], {1: Fault.SILENT, 2: Fault.FOREIGN, 3: 3}),  # servo 1 answers as servo 2
        ([(2, 1), (3, 3)], {1: Fault.SILENT, 2: Fault.FOREIGN, 3: 3}),  # and the answer of 2 is lost
        ([(3, 1), (2, 2), (4, 4)], {1: Fault.SILENT, 2: Fault.FOREIGN, 3: Fault.FOREIGN, 4: 4}),
    ],
)
def test_answers_under_a_wrong_id_are_none(codec, bus, answering, replies):
    """answering: ids and data of the answers that come."""

    def script(_, what):
        size = asked(codec, what)[1]
        return b''.join(codec.encode(Status(id, 0, bytes([data] * size))) for id, data in answering)

    _, transport = bus(script, timeout=0.1)
    found = transport.sync_read(list(replies), 56, 4)
    assert {id: first(reply) for id, reply in found.items()} == replies


def test_bytes_without_end_are_a_fault(bus, clock, monkeypatch):
    """A device that never stops sending: every request comes to an end."""
    _, transport = bus(lambda *_: b'', timeout=0.01)

    def receive(_):
        clock.sleep(0.001)
        return b'\xff\xff\x03\x00'

    monkeypatch.setattr(transport._line, 'receive', receive)
    assert isinstance(transport.read(3, 56, 15), Fault)
    transport.drain()
    assert isinstance(transport.write(3, 40, b'\x01'), Fault)


@pytest.mark.slow
@given(
    pieces=st.lists(st.binary(max_size=12) | st.sampled_from(['good', 'cut', 'damaged', 'late', 'other']), max_size=6)
)
def test_whatever_comes_only_right_answers_get_through(codec, pieces):
    """Good answers among anything: what gets through answers this request, and its servo."""
    late = []

    def script(number, what):
        good = answers(codec, number, what)
        known = {
            'good': good,
            'cut': good[:-1],
            'damaged': good[:10] + b'\x13' + good[11:],
            'late': late[-1] if late else b'',
            'other': codec.encode(Status(99, 0, bytes(asked(codec, what)[1]))),
        }
        late.append(good)
        return b''.join(known.get(piece, piece) for piece in pieces) if number % 2 else b''

    with virtual_time() as clock:
        scripted = ScriptedBus(codec, script, clock)
        transport = SerialTransport(scripted.port, 1_000_000, codec, 0.002)
        for _ in range(4):
            reply = transport.sync_read([3], 56, 15)[3]
            assert isinstance(reply, Fault) or reply == Answer(bytes([len(late) - 1, *bytes(14)]))


def test_what_fits_into_no_packet_is_rejected_before_it_is_sent(bus):
    scripted, transport = bus()
    for wrong in (
        lambda: transport.read(254, 56, 2),
        lambda: transport.read(1, 56, 0),
        lambda: transport.write(254, 56, b'a'),
        lambda: transport.sync_read([1, 300], 56, 2),
        lambda: transport.sync_write(42, {1: b'a', 2: b'ab'}),
        lambda: transport.ping(-1),
    ):
        with pytest.raises(InputError):
            wrong()
    assert scripted.instructions == []
    assert first(transport.read(1, 56, 4)) == 0


def test_an_unplugged_port_is_said_to_be_gone_and_stays_so(bus):
    scripted, transport = bus()
    scripted.unplug()
    for call in (
        lambda: transport.read(1, 56, 2),
        lambda: transport.sync_read([1], 56, 2),
        lambda: transport.sync_write(42, {1: b'a'}),
        lambda: transport.write(1, 42, b'a'),
        lambda: transport.ping(1),
        transport.drain,
    ):
        with pytest.raises(PortError, match=r'is gone: .*Plug it in'):
            call()
