"""MovingArm: the arm that a node has at the moment, and where its joints are and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.control.arm_model import ArmModel
from ik_node.control.motion import JointMotion
from ik_node.control.settings import ArmSettings

Vector = NDArray[np.float64]
SAG = 0.05, 0.005  # rad, m: so far a hinge or a slide may hang below where it is held


@dataclass(frozen=True, eq=False)
class ArmState:
    """A moment of an arm: position and target (n,) of its variables, and whether it moves.

    since: when it became this robot (time.perf_counter).
    """

    model: ArmModel
    position: Vector
    target: Vector
    moving: bool
    since: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions and velocities (m,) of all joints called names.

    arrival: when the goal came that this is the first sample of (time.perf_counter), else None.
    """

    names: tuple[str, ...]
    positions: Vector
    velocities: Vector
    arrival: float | None


class MovingArm:
    """Safe to use from several threads. settings: the limits of motion are among them."""

    def __init__(self, settings: ArmSettings) -> None:
        self._lock = threading.Lock()
        self._settings = settings
        self._model: ArmModel | None = None
        self._motion: JointMotion | None = None
        self._placed = False  # the arm is where it was once measured or sent
        self._leads = False  # a goal is pursued: until a stop the arm is where it was sent
        self._since = 0.0
        self._stopped = 0.0
        self._arrival: float | None = None

    @property
    def model(self) -> ArmModel | None:
        """The arm; None as long as there is none."""
        return self._model

    @property
    def state(self) -> ArmState | None:
        """The arm at this moment."""
        with self._lock:
            if self._model is None or self._motion is None:
                return None
            motion = self._motion
            return ArmState(self._model, motion.position, motion.target.copy(), motion.moving, self._since)

    def stop(self) -> None:
        """Come to rest, there to follow what is measured; goals that came before are void."""
        with self._lock:
            self._leads = False
            self._stopped = time.perf_counter()
            if self._motion is not None:
                self._motion.stop()

    def replace(self, model: ArmModel, wait: Callable[[], bool]) -> None:
        """Stop, and be another arm: joints of the same name keep their places, the others go to its home.

        wait is called while the old arm comes to rest, again and again; True gives up.
        """
        self.stop()
        places = model.joints.named(model.home)
        while (state := self.state) is not None and state.moving:
            if wait():
                return
        if state is not None:
            places.update(state.model.joints.named(state.position))
        motion = JointMotion(model.joints.lower, model.joints.upper, model.joints.filled(places))
        with self._lock:
            model.limit(motion, self._settings)
            self._model, self._motion = model, motion
            self._placed = False
            self._since = time.perf_counter()

    def change(self, model: ArmModel) -> None:
        """Take another model of the same robot, and go on."""
        with self._lock:
            self._model = model

    def limit(self, settings: ArmSettings) -> None:
        """Take the limits of motion from settings."""
        with self._lock:
            self._settings = settings
            if self._model is not None and self._motion is not None:
                self._model.limit(self._motion, settings)

    def measured(self, places: Mapping[str, float]) -> None:
        """Be where the real joints are said to be; void from a goal on until a stop has come to rest.

        Once placed, an arm stays where it is held while no joint is off by more than SAG: driven to where
        its weight has drawn it, it would sink on and on.
        """
        with self._lock:
            if self._model is None or self._motion is None or self._leads:
                return
            if self._motion.moving:  # braking stays smooth
                return
            joints, held = self._model.joints, self._motion.position
            position = joints.filled({**joints.named(held), **places})
            if not self._placed or (np.abs(position - held) > np.where(joints.prismatic, *SAG[::-1])).any():
                self._motion.reset(position)
            self._placed = True

    def go_to(self, target: Vector, model: ArmModel, arrival: float) -> None:
        """Head for target (n,) of model, unless a stop or another robot has come since arrival."""
        with self._lock:
            if self._model is None or self._motion is None or self._model.robot is not model.robot:
                return
            if arrival > self._stopped:
                self._motion.go_to(target)
                self._arrival = arrival
                self._leads = self._placed = True

    def step(self, dt: float) -> Sample | None:
        """Move for dt [s]; return where all joints are then."""
        with self._lock:
            if self._model is None or self._motion is None:
                return None
            joints = self._model.joints
            position, velocity = self._motion.step(dt)
            arrival, self._arrival = self._arrival, None
        return Sample(joints.names, *joints.expand(position, velocity), arrival)
