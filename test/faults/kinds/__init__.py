# SPDX-License-Identifier: Apache-2.0
"""Kinds of faults: one row each. A kind draws a plan; it must lift what it disturbs by the end of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from faults.actions import Draw, Plan
from faults.kinds import clock, controller, everything, feedback, frames, garbage, process, requests
from faults.setups import ACTIONS, Setup


def always(_: Setup) -> bool:
    """Every setup has this."""
    return True


def measured(setup: Setup) -> bool:
    """Whether there is feedback."""
    return setup.output != 'picture'


def simulated(setup: Setup) -> bool:
    """Whether the time is simulated."""
    return setup.simulated


def answers(setup: Setup) -> bool:
    """Whether controllers answer: they offer the action."""
    return setup.output in ACTIONS


def in_frames(setup: Setup) -> bool:
    """Whether goals may be in frames that only tf2 knows."""
    return setup.frames


@dataclass(frozen=True)
class Kind:
    """A kind of fault. share: how often it is chosen, beside the others."""

    plan: Callable[[Draw], Plan]
    applies: Callable[[Setup], bool] = always
    share: float = 1.0


KINDS: dict[str, Kind] = {
    'killed': Kind(process.killed, share=0.7),
    'interrupted': Kind(process.interrupted, share=0.4),
    'terminated': Kind(process.terminated, share=0.4),
    'process stalls': Kind(process.stalls),
    'goals at 1 kHz': Kind(requests.flood),
    'two publishers': Kind(requests.two_publishers),
    'garbage in goals': Kind(garbage.goals, share=1.5),
    'garbage in teleoperation': Kind(garbage.teleoperation, share=1.5),
    'garbage in descriptions': Kind(garbage.descriptions),
    'garbage in parameters': Kind(garbage.parameters),
    'garbage in feedback': Kind(garbage.measurements, measured, 1.5),
    'garbage in /clock': Kind(garbage.clock, simulated, 1.5),
    'garbage on every topic': Kind(everything.inputs, share=1.5),
    'garbage in every service': Kind(everything.requests, share=1.5),
    'feedback lost': Kind(feedback.lost, measured),
    'feedback delayed': Kind(feedback.delayed, measured),
    'feedback reordered': Kind(feedback.reordered, measured),
    'feedback doubled': Kind(feedback.doubled, measured),
    'feedback partial': Kind(feedback.partial, measured),
    'feedback beyond limits': Kind(feedback.beyond_limits, measured),
    'joints stuck': Kind(feedback.stuck, measured),
    'clock jumps': Kind(clock.jumps, simulated, 2.0),
    'clock stands or races': Kind(clock.runs_off, simulated),
    'parameters changed': Kind(requests.parameters, share=1.5),
    'another description': Kind(requests.another_description),
    'stop': Kind(requests.stop, share=2.5),
    'lifecycle': Kind(requests.lifecycle),
    'controller rejects': Kind(controller.rejects, answers, 4.0),
    'controller aborts': Kind(controller.aborts, answers, 4.0),
    'controller answers late': Kind(controller.answers_late, answers, 4.0),
    'controller never answers': Kind(controller.never_answers, answers, 4.0),
    'controller answers twice': Kind(controller.answers_twice, answers, 4.0),
    'controller says garbage': Kind(controller.says_garbage, answers, 4.0),
    'controller told to cancel by others': Kind(controller.cancelled_by_others, answers, 4.0),
    'controller goes away': Kind(controller.goes_away, answers, 4.0),
    'frames of tf2': Kind(frames.good, in_frames, 4.0),
    'frames of tf2 with garbage': Kind(frames.garbage, in_frames, 6.0),
    'frames of tf2 jump': Kind(frames.jumps, in_frames, 4.0),
    'frames of tf2 in a loop': Kind(frames.loops, in_frames, 4.0),
    'frames of tf2 missing': Kind(frames.missing, in_frames, 4.0),
    'frames of tf2 old': Kind(frames.old, in_frames, 4.0),
    'frames of tf2 ahead': Kind(frames.ahead, in_frames, 6.0),
}
