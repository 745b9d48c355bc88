# SPDX-License-Identifier: Apache-2.0
"""Setups: what the nodes of a campaign are started with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from faults.extras import FollowJointTrajectory, TFMessage
from faults.robots import ROBOTS, SHARING

ACTION = 'follow_joint_trajectory'

# By name: the parameter output, the topics of samples, and that of the feedback.
OUTPUTS: dict[str, tuple[str, tuple[str, ...], str | None]] = {
    'joint_commands': ('joint_states', ('joint_commands',), 'joint_states'),
    'picture': ('joint_states', ('joint_states',), None),
    'position_commands': ('position_commands', ('position_commands',), 'joint_states'),
    'position_commands, picture': (
        'position_commands joint_states',
        ('position_commands', 'joint_states'),
        'measured_joint_states',
    ),
    'joint_trajectory': ('joint_trajectory', ('joint_trajectory',), 'joint_states'),
    'joint_trajectory, picture': (
        'joint_trajectory joint_states',
        ('joint_trajectory', 'joint_states'),
        'measured_joint_states',
    ),
}
SHARES = (0.3, 0.1, 0.1, 0.1, 0.25, 0.15)  # of OUTPUTS
# The same, of the action.
ACTIONS: dict[str, tuple[str, tuple[str, ...], str | None]] = {
    ACTION: (ACTION, (ACTION,), 'joint_states'),
    f'{ACTION}, picture': (f'{ACTION} joint_states', (ACTION, 'joint_states'), 'measured_joint_states'),
}


@dataclass(frozen=True)
class Setup:
    """What a node is started with.

    output: one of OUTPUTS or ACTIONS. simulated: the time. stamped: the feedback. frames: goals may be in
    frames that only tf2 knows.
    """

    robot: str
    output: str
    simulated: bool
    stamped: bool = False
    frames: bool = False

    def __str__(self) -> str:
        extras = ((self.simulated, 'simulated time'), (self.stamped, 'stamped'), (self.frames, 'tf2'))
        return ', '.join([self.robot, self.output, *(what for there, what in extras if there)])


def generator(seed: int, *numbers: int) -> np.random.Generator:
    """Return what a run, or its node, is drawn from."""
    return np.random.default_rng([seed, *numbers])


def setup_of(seed: int, session: int, more: bool = False) -> Setup:
    """Return the setup of a session: RUNS runs in a row. more: with what of EXTRAS there is."""
    rng = generator(seed, 0, session)
    outputs, name = list(OUTPUTS), str(rng.choice(ROBOTS))
    output = outputs[int(rng.choice(len(outputs), p=SHARES))]
    if name in SHARING:  # one controller moves the joints of all tools: a list of them has no known order
        output = output.replace('position_commands', 'joint_trajectory')
    setup = Setup(name, output, bool(rng.random() < 0.3), bool(rng.random() < 0.7))
    return extended(setup, generator(seed, 2, session)) if more else setup


def extended(setup: Setup, rng: np.random.Generator) -> Setup:
    """Return a setup with the action and with tf2, where they are installed, in three of four cases each."""
    action, frames = rng.random(2) < 0.75
    if FollowJointTrajectory is not None and action:
        setup = replace(setup, output=list(ACTIONS)[int(rng.random() < 0.3)])
    return replace(setup, frames=bool(TFMessage is not None and frames))
