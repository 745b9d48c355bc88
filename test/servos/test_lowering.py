# SPDX-License-Identifier: Apache-2.0
"""An arm that is released: it is lowered, never with more torque than before, and is not held again."""

from __future__ import annotations

import pytest
from rig import TORQUE_ENABLE, TORQUE_LIMIT, driven, emulated, rig, started

from ik_node.servos.arm.snapshot import ArmState
from ik_node.servos.arm.survey import ArmError

__all__ = ['rig']


def test_torque_off_never_raises_the_torque():
    with driven() as rig:
        rig.switch_on()
        rig.clock.sleep(0.1)
        before, limits = rig.bus.call('get', id=2, **TORQUE_LIMIT), rig.torque_limits(20, 0.05)
        rig.arm.set_torque(False)
        assert before < 400
        assert max(limits) <= before + 10


def test_a_release_that_failed_is_over_once_all_servos_say_that_they_have_no_torque(rig):
    rig.bus.call('power', id=4, on=False)
    rig.until(ArmState.FAULTED)
    with pytest.raises(ArmError, match=r'no answer from servo 4 \(wrist_flex\), whose torque may still'):
        rig.arm.set_torque(False)
    snapshot = rig.arm.snapshot
    assert snapshot.state is ArmState.PASSIVE
    assert snapshot.powered == {'wrist_flex'}
    assert snapshot.reason.startswith('torque may still be on in servo 4 (wrist_flex): support the arm')
    with pytest.raises(ArmError, match=r'this driver does not hold the arm: .*torque may still be on in'):
        rig.arm.hold()
    rig.bus.call('power', id=4, on=True)
    rig.wait(lambda: rig.arm.snapshot.powered == frozenset())
    rig.wait(lambda: rig.arm.snapshot.reason == '')
    assert rig.arm.snapshot.state is ArmState.PASSIVE


@pytest.mark.parametrize('hears', [False, True])
def test_a_release_that_is_repeated_never_raises_the_torque(rig, hears):
    rig.load_shoulder()
    rig.bus.faults({'kind': 'corrupt', 'id': 2} if hears else {'kind': 'missing', 'id': 4})
    rig.until(ArmState.FAULTED)
    with pytest.raises(ArmError, match='no answer from servo'):
        rig.arm.set_torque(False)
    if not hears:
        rig.bus.call('put', id=2, address=TORQUE_ENABLE, size=1, value=1)
    before, limits = rig.bus.call('get', id=2, **TORQUE_LIMIT), rig.torque_limits(28, 0.1)
    with pytest.raises(ArmError, match='no answer from servo'):
        rig.arm.set_torque(False)
    assert max(limits) <= before < 100


def test_a_release_of_servos_that_are_weak_already_begins_with_what_they_have(rig):
    rig.bus.call('power', id=3, on=False)
    rig.bus.call('power', id=3, on=True)
    rig.until(ArmState.FAULTED)
    rig.bus.call('put', id=2, value=300, **TORQUE_LIMIT)
    limits = rig.torque_limits(28, 0.1)
    rig.arm.set_torque(False)
    assert 200 < max(limits) <= 300


@pytest.mark.parametrize('asked', ['before', 'while', 'held again'])
@pytest.mark.parametrize('lost', ['plug', 'power line'])
def test_an_arm_that_was_to_be_released_is_not_held_again(rig, lost, asked):
    def release():
        with pytest.raises(ArmError):
            rig.arm.set_torque(False)

    if asked == 'before':
        rig.clock.at(rig.clock.now + 1.0, lambda: lose(rig, lost))
        release()
    else:
        lose(rig, lost)
        rig.until(ArmState.CLOSED, ArmState.SILENT)
        release()
    if asked == 'held again':
        with pytest.raises(ArmError):
            rig.arm.hold()
    rig.until(ArmState.CLOSED, ArmState.SILENT)
    rig.clock.sleep(2.0)
    before = rig.bus.call('get', id=2, **TORQUE_LIMIT)
    rig.bus.call('plug', on=True)
    rig.bus.faults()
    rig.until(ArmState.HOLDING if asked == 'held again' else ArmState.PASSIVE)
    if asked == 'held again':
        return
    if not (asked == 'before' and lost == 'power line'):  # each servo was switched off, unheard
        assert 'torque may still be on in servo 1 (shoulder_pan), ' in rig.arm.snapshot.reason
    assert rig.bus.call('get', id=2, **TORQUE_LIMIT) <= before
    rig.arm.set_torque(False)
    assert not any(state['torque'] for state in rig.bus.state().values())
    assert rig.arm.snapshot.reason == ''


def lose(rig, what):
    """Lose the adapter, or the answers of all servos."""
    if what == 'plug':
        rig.bus.call('plug', on=False)
    else:
        rig.bus.faults({'kind': 'missing'})


def test_servos_that_still_have_torque_are_lowered_slowly_too(rig):
    rig.bus.call('power', id=3, on=False)
    rig.bus.call('power', id=3, on=True)
    rig.until(ArmState.FAULTED)
    rig.bus.call('plug', on=False)
    rig.until(ArmState.CLOSED)
    rig.bus.call('plug', on=True)
    rig.until(ArmState.PASSIVE)
    assert 'torque is on in' in rig.arm.snapshot.reason
    before = rig.clock.monotonic()
    rig.arm.set_torque(False)
    assert rig.clock.monotonic() - before > 2.0
    assert not any(state['torque'] for state in rig.bus.state().values())


def test_an_arm_found_with_torque_outside_its_limits_can_be_released():
    with emulated() as bus:
        for id in range(1, 7):
            bus.call('put', id=id, address=40, size=1, value=1)
        bus.call('motor', id=3, blocked=[2000.0, 2100.0])
        bus.call('put', id=3, address=9, size=2, value=2300, keep=True)
        with started(bus) as rig:
            rig.until(ArmState.PASSIVE)
            assert 'servo 3 (elbow_flex) is at' in rig.arm.snapshot.reason
            with pytest.raises(ArmError, match='passive'):
                rig.arm.command({'elbow_flex': 0.5})
            rig.arm.set_torque(False)
            assert not any(state['torque'] for state in bus.state().values())
