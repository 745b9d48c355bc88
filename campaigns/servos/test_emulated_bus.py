# SPDX-License-Identifier: Apache-2.0
"""The emulated bus, judged by the clients of others: Feetech's, ROBOTIS' and rustypot."""

from __future__ import annotations

import contextlib
import time

import pytest

from campaigns.servos.emulated_bus import EmulatedBus

BAUD = 1_000_000
PATIENCE = 0.5  # [s] for an answer, on a busy computer
IDS = [1, 2, 3, 4, 5, 6]


@pytest.fixture
def bus():
    with EmulatedBus('so101') as bus:
        yield bus


@pytest.fixture
def omx():
    with EmulatedBus('omx_f') as bus:
        yield bus


@pytest.fixture
def scservo():
    return pytest.importorskip('scservo_sdk')


@pytest.fixture
def dynamixel():
    return pytest.importorskip('dynamixel_sdk')


@pytest.fixture
def rustypot():
    return pytest.importorskip('rustypot')


@contextlib.contextmanager
def opened(sdk, path):
    """A port that the client of a manufacturer has opened, with a time-out that a busy computer keeps."""
    port = sdk.PortHandler(path)
    assert port.openPort()
    assert port.setBaudRate(BAUD)
    port.setPacketTimeout = lambda _: port.setPacketTimeoutMillis(1000 * PATIENCE)
    yield port
    port.closePort()


@pytest.fixture
def feetech(bus, scservo):
    with opened(scservo, bus.port) as port:
        yield port, scservo.PacketHandler(0)


@pytest.fixture
def robotis(omx, dynamixel):
    with opened(dynamixel, omx.port) as port:
        yield port, dynamixel.PacketHandler(2.0)


def until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_feetechs_client_finds_the_servos_and_their_model(feetech, scservo):
    port, packets = feetech
    for id in IDS:
        model, result, error = packets.ping(port, id)
        assert (model, result, error) == (777, scservo.COMM_SUCCESS, 0)
    assert packets.ping(port, 9)[1] == scservo.COMM_RX_TIMEOUT


def test_feetechs_client_moves_a_joint(bus, feetech, scservo):
    port, packets = feetech
    assert packets.write1ByteTxRx(port, 3, 40, 1) == (scservo.COMM_SUCCESS, 0)
    assert packets.write2ByteTxRx(port, 3, 42, 2300) == (scservo.COMM_SUCCESS, 0)
    until(lambda: packets.read2ByteTxRx(port, 3, 56)[0] == 2300)
    assert bus.state()[3]['actual'] == pytest.approx(2300, abs=4)  # but for the play of the gears
    assert bus.log('goals')[-1][1:] == (3, 2300)


def test_feetechs_client_reads_and_writes_all_at_once(bus, feetech, scservo):
    port, packets = feetech
    reader = scservo.GroupSyncRead(port, packets, 56, 2)
    writer = scservo.GroupSyncWrite(port, packets, 42, 2)
    for id in IDS:
        assert reader.addParam(id)
        assert writer.addParam(id, [0x10, 0x08])
    assert reader.txRxPacket() == scservo.COMM_SUCCESS
    assert [reader.getData(id, 56, 2) for id in IDS] == [2048] * 6
    assert writer.txPacket() == scservo.COMM_SUCCESS
    until(lambda: all(state['goal'] == 0x810 for state in bus.state().values()))


def test_the_memory_survives_the_power_only_if_it_was_unlocked(bus, feetech, scservo):
    port, packets = feetech
    packets.write1ByteTxRx(port, 1, 21, 16)  # locked: P
    packets.write1ByteTxRx(port, 1, 55, 0)
    packets.write1ByteTxRx(port, 1, 22, 7)  # D
    bus.call('power', on=False)
    assert packets.ping(port, 1)[1] == scservo.COMM_RX_TIMEOUT
    bus.call('power', on=True)
    assert packets.read1ByteTxRx(port, 1, 21)[0] == 32
    assert packets.read1ByteTxRx(port, 1, 22)[0] == 7
    assert packets.read1ByteTxRx(port, 1, 40)[0] == 0
    assert packets.read1ByteTxRx(port, 1, 55)[0] == 1


def test_the_homing_offset_has_its_sign_in_bit_11(feetech):
    port, packets = feetech
    packets.write2ByteTxRx(port, 2, 31, 100 | 1 << 11)
    assert packets.read2ByteTxRx(port, 2, 56)[0] == 2148
    packets.write1ByteTxRx(port, 2, 40, 128)
    assert packets.read2ByteTxRx(port, 2, 56)[0] == 2048


def test_a_goal_is_clamped_to_the_range_and_does_nothing_without_torque(bus, feetech):
    port, packets = feetech
    packets.write2ByteTxRx(port, 4, 42, 4000)
    time.sleep(0.1)
    assert bus.state()[4]['actual'] == 2048
    packets.write1ByteTxRx(port, 4, 40, 1)
    until(lambda: bus.state()[4]['velocity'] == 0 and bus.state()[4]['actual'] > 3000)
    high = packets.read2ByteTxRx(port, 4, 11)[0]
    assert packets.read2ByteTxRx(port, 4, 56)[0] == pytest.approx(high, abs=4)


def test_a_blocked_servo_is_overloaded_after_two_seconds_and_says_so(bus, feetech):
    port, packets = feetech
    bus.call('motor', id=3, blocked=[2000.0, 2100.0])
    packets.write1ByteTxRx(port, 3, 40, 1)
    packets.write2ByteTxRx(port, 3, 42, 2600)
    until(lambda: packets.read2ByteTxRx(port, 3, 56)[2] == 0x20)
    until(lambda: packets.read2ByteTxRx(port, 3, 60)[0] & 0x3FF == 200)  # the protective torque
    packets.write1ByteTxRx(port, 3, 40, 0)
    assert packets.read2ByteTxRx(port, 3, 56)[2] == 0


def test_rustypot_reads_writes_and_sees_faults(bus, rustypot):
    arm = rustypot.Sts3215PyController(bus.port, BAUD, PATIENCE)
    assert arm.sync_read_raw_present_position(IDS) == [2048] * 6
    arm.sync_write_goal_speed(IDS, [0.0] * 6)
    arm.write_torque_enable(2, True)
    arm.write_raw_goal_position(2, 1900)
    until(lambda: arm.read_raw_present_position(2)[0] == 1900)
    bus.faults({'kind': 'missing', 'id': 2})
    with pytest.raises(RuntimeError, match='2'):
        arm.sync_read_raw_present_position(IDS)
    bus.faults({'kind': 'corrupt', 'id': 2})
    with pytest.raises(RuntimeError):
        arm.read_raw_present_position(2)
    bus.faults()
    time.sleep(0.05)
    assert arm.sync_read_raw_present_position(IDS)[1] == 1900


def test_an_unplugged_adapter_is_noticed_and_comes_back_under_its_name(bus, scservo):
    port = scservo.PortHandler(bus.port)
    assert port.openPort()
    bus.call('plug', on=False)
    with pytest.raises(OSError, match=r'rror|disconnected'):
        port.ser.read(1)
    bus.call('plug', on=True)
    again = scservo.PortHandler(bus.port)
    assert again.openPort()
    again.setBaudRate(BAUD)
    assert scservo.PacketHandler(0).ping(again, 1)[1] == scservo.COMM_SUCCESS
    again.closePort()


def test_robotis_client_moves_a_joint_and_reads_all(robotis, dynamixel):
    port, packets = robotis
    model, result, error = packets.ping(port, 12)
    assert (model, result, error) == (1060, dynamixel.COMM_SUCCESS, 0)
    assert sorted(packets.broadcastPing(port)[0]) == [11, 12, 13, 14, 15, 16]
    assert packets.write1ByteTxRx(port, 12, 64, 1) == (dynamixel.COMM_SUCCESS, 0)
    assert packets.write4ByteTxRx(port, 12, 116, 2200) == (dynamixel.COMM_SUCCESS, 0)
    until(lambda: packets.read4ByteTxRx(port, 12, 132)[0] == 2200)
    reader = dynamixel.GroupSyncRead(port, packets, 132, 4)
    for id in (11, 12, 13):
        assert reader.addParam(id)
    assert reader.txRxPacket() == dynamixel.COMM_SUCCESS
    assert reader.getData(12, 132, 4) == 2200


def test_the_memory_of_dynamixel_is_locked_by_torque(robotis):
    port, packets = robotis
    packets.write1ByteTxRx(port, 12, 64, 1)
    assert packets.write1ByteTxRx(port, 12, 11, 4)[1] & 0x7F == 7
    packets.write1ByteTxRx(port, 12, 64, 0)
    assert packets.write1ByteTxRx(port, 12, 11, 4)[1] == 0


def test_dynamixels_watchdog_stops_it_where_it_is_without_another_instruction(omx, robotis):
    port, packets = robotis
    packets.write4ByteTxRx(port, 12, 112, 20)
    packets.write1ByteTxRx(port, 12, 64, 1)
    packets.write1ByteTxRx(port, 12, 98, 2)
    packets.write4ByteTxRx(port, 12, 116, 3000)
    until(lambda: omx.state()[12]['goal'] != 3000)
    stopped = omx.state()[12]
    assert stopped['torque']
    assert 2048 <= stopped['goal'] < 2200
    assert packets.write4ByteTxRx(port, 12, 116, 2200)[1] & 0x7F == 4
    packets.write1ByteTxRx(port, 12, 98, 0)
    assert packets.write4ByteTxRx(port, 12, 116, 2100)[1] == 0


def test_an_overloaded_dynamixel_needs_a_reboot(omx, robotis):
    port, packets = robotis
    omx.call('motor', id=13, blocked=[2000.0, 2100.0])
    packets.write1ByteTxRx(port, 13, 64, 1)
    packets.write4ByteTxRx(port, 13, 116, 2600)
    until(lambda: packets.read1ByteTxRx(port, 13, 70)[0] == 0x20)
    assert packets.read4ByteTxRx(port, 13, 132)[2] & 0x80
    assert packets.read1ByteTxRx(port, 13, 64)[0] == 0
    assert packets.write1ByteTxRx(port, 13, 64, 1)[1] & 0x7F == 7
    packets.reboot(port, 13)
    assert packets.write1ByteTxRx(port, 13, 64, 1)[1] == 0


def test_goals_within_a_longer_write_obey_the_limits_too(omx, robotis):
    port, packets = robotis
    block = [0] * 8 + list((4095).to_bytes(4, 'little'))  # profile acceleration, profile velocity, goal
    assert packets.writeTxRx(port, 12, 108, len(block), block)[1] & 0x7F == 6
    packets.writeTxRx(port, 12, 108, len(block), [0] * 8 + [0x34, 8, 0, 0])
    assert omx.state()[12]['goal'] == 2100
    assert packets.write1ByteTxRx(port, 12, 70, 0)[1] & 0x7F == 7  # the hardware error cannot be written


def test_dynamixels_torque_is_limited_by_its_goal_pwm(omx, robotis):
    port, packets = robotis
    assert packets.read2ByteTxRx(port, 12, 100)[0] == 885
    packets.write2ByteTxRx(port, 12, 100, 177)
    omx.call('motor', id=12, blocked=[2000.0, 2100.0])
    packets.write1ByteTxRx(port, 12, 64, 1)
    packets.write4ByteTxRx(port, 12, 116, 2600)
    until(lambda: packets.read2ByteTxRx(port, 12, 126)[0] == 200)


def test_a_dynamixel_forgets_its_turns_with_the_power(omx, robotis):
    port, packets = robotis
    omx.call('motor', id=11, actual=-10.0, low=-9000.0)
    assert packets.read4ByteTxRx(port, 11, 132)[0] == 2**32 - 10
    omx.call('power', on=False)
    omx.call('power', on=True)
    assert packets.read4ByteTxRx(port, 11, 132)[0] == 4086


def test_a_timed_profile_takes_the_time_that_it_has_in_milliseconds(omx, robotis):
    port, packets = robotis
    packets.write1ByteTxRx(port, 12, 10, 4)
    packets.write4ByteTxRx(port, 12, 112, 10_000)
    packets.write1ByteTxRx(port, 12, 64, 1)
    packets.write4ByteTxRx(port, 12, 116, 3048)
    until(lambda: omx.state()[12]['velocity'] > 0)
    assert omx.state()[12]['velocity'] == pytest.approx(100.0)  # [ticks/s]


def test_the_bytes_of_a_header_are_stuffed(omx, robotis, rustypot):
    port, packets = robotis
    packets.write4ByteTxRx(port, 12, 112, 0x00FDFFFF)
    assert packets.read4ByteTxRx(port, 12, 112)[0] == 0x00FDFFFF
    arm = rustypot.Xl430PyController(omx.port, BAUD, PATIENCE)
    assert arm.read_profile_velocity(12) is not None


def test_rustypot_finds_moves_and_restarts_dynamixels(omx, rustypot):
    arm = rustypot.Xl430PyController(omx.port, BAUD, PATIENCE)
    assert arm.broadcast_scan() == {11: 1060, 12: 1060, 13: 1060, 14: 1200, 15: 1200, 16: 1200}
    arm.sync_write_torque_enable([11, 12], [True, True])
    arm.sync_write_goal_position([11, 12], [2200, 1900])
    until(lambda: arm.sync_read_present_position([11, 12]) == [2200, 1900])
    arm.reboot(12)
    assert [state['torque'] for state in omx.state().values()] == [True] + [False] * 5


def test_rustypot_finds_sts_servos(bus, rustypot):
    arm = rustypot.Sts3215PyController(bus.port, BAUD, PATIENCE)
    assert sorted(arm.broadcast_scan()) == IDS
    assert len(arm.sync_read_raw_data_with_error(IDS, 56, 15)) == 6


@pytest.mark.parametrize(('phase', 'count', 'speed'), [(0x0C, 100, 100.0), (0x08, 2, 100.0), (0x04, 0, 0.0)])
def test_the_phase_says_what_a_goal_speed_means(bus, feetech, phase, count, speed):
    port, packets = feetech
    packets.write1ByteTxRx(port, 3, 18, phase)
    packets.write2ByteTxRx(port, 3, 46, count)
    packets.write1ByteTxRx(port, 3, 40, 1)
    packets.write2ByteTxRx(port, 3, 42, 3000)
    assert packets.read2ByteTxRx(port, 3, 58)[0] == speed
    assert bus.state()[3]['velocity'] == speed


def test_an_acceleration_limits_how_the_speed_grows(bus, feetech):
    port, packets = feetech
    packets.write1ByteTxRx(port, 3, 41, 1)  # 100 ticks/s^2
    packets.write1ByteTxRx(port, 3, 40, 1)
    begin = time.monotonic()
    packets.write2ByteTxRx(port, 3, 42, 3000)
    until(lambda: bus.state()[3]['velocity'] > 20.0)
    assert bus.state()[3]['velocity'] <= 100.0 * (time.monotonic() - begin) + 1.0


def test_the_gears_have_play(bus, feetech):
    port, packets = feetech
    packets.write1ByteTxRx(port, 3, 40, 1)
    gaps = []
    for goal in (2300, 2100):
        packets.write2ByteTxRx(port, 3, 42, goal)
        until(lambda goal=goal: packets.read2ByteTxRx(port, 3, 56)[0] == goal)
        gaps.append(bus.state()[3]['actual'] - goal)
    assert abs(gaps[0] - gaps[1]) == pytest.approx(6.0, abs=1.0)


def test_a_servo_never_goes_across_the_step_from_4095_to_0(bus, feetech):
    port, packets = feetech
    bus.call('motor', id=5, actual=4090.0)
    packets.write1ByteTxRx(port, 5, 40, 1)
    packets.write2ByteTxRx(port, 5, 42, 10)
    until(lambda: bus.state()[5]['actual'] < 4000.0)
    assert bus.state()[5]['highest'] <= 4090.0


def test_a_goal_of_before_the_torque_is_approached_at_once(bus, feetech):
    port, packets = feetech
    bus.call('put', id=3, address=42, size=2, value=1500)
    assert bus.state()[3]['actual'] == 2048
    packets.write1ByteTxRx(port, 3, 40, 1)
    until(lambda: packets.read2ByteTxRx(port, 3, 56)[0] == 1500)


def test_a_dip_of_the_supply_takes_the_torque_and_what_was_not_kept(bus, feetech):
    port, packets = feetech
    packets.write1ByteTxRx(port, 2, 40, 1)
    packets.write2ByteTxRx(port, 2, 48, 300)
    bus.call('motor', id=2, weight=0.3)
    bus.call('power', on=False, id=2)
    bus.call('power', on=True, id=2)
    assert packets.read1ByteTxRx(port, 2, 40)[0] == 0
    assert packets.read2ByteTxRx(port, 2, 48)[0] == 1000
    until(lambda: bus.state()[2]['actual'] > 3150)  # it falls to its stop
