# SPDX-License-Identifier: Apache-2.0
"""Threads that meet at the worst moment: each test stops one there and runs the other one meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from control_harness import SETTINGS, Asked, Rig, arm_model
from small_arm import arm_urdf

import ik_node
from ik_node.control.controller import SLOW, VOID, Inbox
from ik_node.control.locks import LockOrderError, OrderedLock, Rank
from ik_node.control.models import ArmModel
from ik_node.control.requests import HomeRequest
from ik_node.control.states import State
from ik_node.steady import steady

LONG = 10.0  # [s] in which a thread ends that nothing holds up


def with_tools(model: ArmModel, *names: str) -> ArmModel:
    """The same arm, whose tool has several names, so that requests do not replace each other."""
    return replace(model, tools=dict.fromkeys(names, model.first))


def elsewhere(act: Callable[[], object]) -> None:
    """Do something in another thread, to its end."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive()


class Broken:
    """A request that fails where no request should."""

    def __init__(self, where):
        self.where = where

        self.tool, self.source, self.moves, self.arrival = 'broken', 'test', True, steady()

    def resolve(self, _):
        if self.where == 'reading':
            raise ZeroDivisionError('made up')
        return 5  # no goal at all: looking at it fails


@pytest.mark.parametrize('where', ['reading', 'solving'])
def test_a_request_that_fails_unexpectedly_is_reported_and_drops_no_other(model, where):
    rig, broken = Rig(with_tools(model, 'other', 'broken', 'good')), Broken(where)
    before, after = Asked({'nose': 7.0}, tool='other'), Asked({'yaw': 0.2}, tool='good')
    with pytest.raises((ZeroDivisionError, AttributeError, TypeError)):
        rig.controller.submit(before, broken, after)
    told = {report.request.tool: report for report in rig.reports if report.request is not None}
    assert 'unexpected error, please report it' in told['broken'].message
    assert {tool: report.status for tool, report in told.items()} == {
        'other': 'rejected',
        'broken': 'rejected',
        'good': 'solved',
    }


def test_no_report_overtakes_another_and_the_last_one_is_the_newest(model):
    """A thread that delivers the first report is held up in the receiver while the next one is made."""
    rig, heard = Rig(model), []
    inside, go_on = threading.Event(), threading.Event()

    def hear(report):
        if not inside.is_set():
            inside.set()
            assert go_on.wait(LONG)
        heard.append(report.message)

    rig.controller._reports._receive = hear
    first = threading.Thread(target=rig.controller.submit, args=(Asked({'yaw': 0.3}),))
    first.start()
    assert inside.wait(LONG)
    elsewhere(rig.controller.stop)
    assert not heard
    go_on.set()
    first.join(LONG)
    assert [text.split(':')[0] for text in heard] == ['solved', 'test ended before the arm arrived']


def test_a_receiver_that_raises_or_asks_again_loses_no_report_and_keeps_their_order(model):
    rig, heard = Rig(with_tools(model, '', 'other')), []

    def hear(report):
        heard.append((report.number, report.phase))
        if len(heard) == 1:
            rig.controller.submit(Asked({'yaw': 0.2}), Asked({'nose': 1.0}, tool='other'))
            heard.append('returned')
            raise ValueError('made up')

    rig.controller._reports._receive = hear
    with pytest.raises(ValueError, match='made up'):
        rig.controller.submit(Asked({'yaw': 0.1}))
    assert heard == [(1, 'moving'), 'returned', (2, 'moving'), (3, 'rejected')]


def held_up(thing, name):
    """Have the next call of a method wait before it begins; return the events 'it is there' and 'go on'."""
    there, go_on, act = threading.Event(), threading.Event(), getattr(thing, name)

    def waits(*arguments):
        setattr(thing, name, act)
        there.set()
        go_on.wait(0.5)  # where the other thread has to wait for this one, nobody sets it
        return act(*arguments)

    setattr(thing, name, waits)
    return there, go_on


def in_order(rig, act):
    """Run act while a sample is decided but not out; return what happened in which order."""
    rig.go(yaw=1.0)
    rig.tick(3)
    happened = []
    rig.output.take = lambda _: happened.append('sample')
    rig.output.halted = lambda _: happened.append('halted')
    there, go_on = held_up(rig.controller._outputs, 'emit')
    ticking = threading.Thread(target=rig.tick)
    ticking.start()
    assert there.wait(LONG)

    def acts():
        act()
        happened.append('returned')
        go_on.set()

    acting = threading.Thread(target=acts)
    acting.start()
    acting.join(LONG)
    ticking.join(LONG)
    return happened


@pytest.mark.slow
@pytest.mark.parametrize('end', ['stop', 'deactivate', 'halt'])
def test_no_sample_that_was_decided_before_a_stop_goes_out_after_it(model, end):
    rig = Rig(model)
    halted = ['halted'] if end == 'halt' else []
    assert in_order(rig, getattr(rig.controller, end)) == ['sample', *halted, 'returned']
    assert end != 'halt' or rig.tick() is None


def test_a_sample_of_a_motion_that_a_measurement_has_ended_does_not_go_out(real):
    """The fault comes between the decision and the output."""
    real.go(yaw=1.0)
    real.measure_all()
    real.tick(2)
    out = len(real.output.samples)
    lock = real.controller._lock

    class Between:
        def __enter__(self):
            return lock.__enter__()

        def __exit__(self, *error):
            lock.__exit__(*error)
            if real.controller._lock is self:
                real.controller._lock = lock
                elsewhere(lambda: real.controller.on_measured({'yaw': -2.5}, real.time))

    real.controller._lock = Between()
    assert real.tick() is None
    assert real.state is State.FAULTED
    assert len(real.output.samples) == out


class Interrupted(Asked):
    """A request that takes its time: meanwhile the arm is stopped, and resumed."""

    def resolve(self, _):
        self.rig.controller.stop()
        self.rig.settle()
        self.rig.controller.resume()
        self.rig.tick()
        return self.what


def test_goals_from_before_a_stop_do_not_move_the_arm_after_a_resume(model):
    """The others were taken from the inbox together with the one that takes its time."""
    rig, first = Rig(with_tools(model, '', 'other', 'another')), Interrupted({'yaw': 1.0})
    first.rig = rig
    others = Asked({'yaw': 0.5}, tool='other'), HomeRequest(tool='another')
    rig.controller.submit(first, *others)
    rig.tick(50)
    assert (rig.state, rig.position('yaw')) == (State.HOLDING, 0.0)
    told = {id(report.request): report for report in rig.reports if report.request is not None}
    assert [told[id(one)].status for one in (first, *others)] == ['rejected'] * 3
    assert all(VOID in told[id(one)].message for one in others)
    assert rig.go(yaw=0.1).status == 'solved'


def ends_hand_guiding(rig):
    rig.controller.guide(True, rig.time)
    rig.controller.guide(False, rig.time)


def ends_a_fault(rig):
    rig.controller.fault('made up')
    rig.controller.resume()


def pauses(rig):
    rig.controller.deactivate()
    rig.controller.activate()


@pytest.mark.parametrize('act', [ends_hand_guiding, ends_a_fault, pauses])
def test_a_goal_from_before_the_arm_was_given_back_is_void(real, act):
    real.measure_all()
    request = Asked({'yaw': 1.0})
    act(real)
    real.measure_all()
    real.settle()
    assert real.state is State.HOLDING
    real.controller.submit(request)
    assert VOID in real.reports[-1].message
    assert real.go(yaw=1.0).status == 'solved'


def test_a_wrong_order_of_locks_raises():
    outer, inner, twin = OrderedLock(Rank.OUTPUT), OrderedLock(Rank.REPORT_QUEUE), OrderedLock(Rank.OUTPUT)
    with outer, inner, outer, inner:
        pass
    with inner, pytest.raises(LockOrderError, match='OUTPUT is taken under REPORT_QUEUE'):
        outer.acquire()
    with outer, pytest.raises(LockOrderError, match='OUTPUT is taken under OUTPUT'):
        twin.acquire()
    elsewhere(outer.acquire)  # nothing is held any more


def test_every_lock_of_a_running_arm_has_a_rank():
    """Locks of threading in these folders would escape the check; events wait for nobody."""
    package = Path(ik_node.__file__).parent
    for path in sorted((*package.glob('control/**/*.py'), *package.glob('ros/**/*.py'))):
        if path.name != 'locks.py':
            for word in ('threading.Lock(', 'threading.RLock(', 'threading.Condition()'):
                assert word not in path.read_text(), f'{path.name}: use ordered_lock instead of {word})'


@pytest.mark.slow
def test_another_arm_takes_over_after_the_last_setpoint_of_the_one_before(model, monkeypatch):
    """Else the arm is told to go on, and no command says that it rests."""
    rig, done = Rig(model), []
    other = arm_model(arm_urdf().replace('finger', 'jaw'), SETTINGS)
    emit = rig.controller._outputs.emit
    replacing = threading.Thread(target=lambda: done.append(rig.controller.configure(other, SETTINGS)))

    def meanwhile(setpoint, stand):
        if not setpoint.velocities.any():
            replacing.start()
            replacing.join(0.2)
            assert not done
        return emit(setpoint, stand)

    rig.go(yaw=0.5)
    rig.tick(20)
    assert not rig.controller.configure(other, SETTINGS)
    monkeypatch.setattr(rig.controller._outputs, 'emit', meanwhile)
    while not replacing.ident:
        rig.tick()
    replacing.join(LONG)
    assert done == [True]


def test_a_worker_that_takes_long_is_mentioned_until_it_comes_back(monkeypatch):
    now, inbox = [0.0], Inbox()
    monkeypatch.setattr(steady, 'read', lambda: now[0])
    for asked in (False, True):
        inbox.put(HomeRequest()) if asked else inbox.put_change()
        inbox.take(None)
        now[0] += 1.1 * SLOW
        assert bool(inbox.slow) is asked  # no request waits for a change
    inbox.take(0.0)
    assert inbox.slow == ''


def test_an_error_while_a_goal_is_taken_over_stops_the_arm(model, monkeypatch):
    rig = Rig(model)
    monkeypatch.setattr(type(rig.controller._tracker), 'begin', lambda *_: 1 / 0)
    request = Asked({'yaw': 1.0})
    with pytest.raises(ZeroDivisionError):
        rig.controller.submit(request)
    rig.settle()
    assert abs(rig.position('yaw')) < 1e-3
    assert [report.status for report in rig.reports if report.request is request] == ['rejected']


@pytest.mark.slow
def test_outputs_are_halted_once_the_sample_under_way_is_out_and_no_other_follows(model):
    rig = Rig(model)
    assert in_order(rig, rig.controller.halt) == ['sample', 'halted', 'returned']
    assert rig.tick() is None
