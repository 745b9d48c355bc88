# SPDX-License-Identifier: Apache-2.0
"""ServoArm: an arm of servos on one bus, from a closed port to following commands.

One thread owns the port. Everybody else leaves commands and requests, and reads snapshots.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer

from ik_node.errors import IkError, InputError, join_names
from ik_node.servos.arm.survey import ArmError, ServoSurvey, memories, read, survey
from ik_node.servos.bus.transport import PortError, Transport
from ik_node.servos.calibration.profile import ArmProfile
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.calibration.zeros import ArmCalibration
from ik_node.steady import steady

from .cycle import HELD, ArmOptions, ServoLoop
from .goals import Torques
from .snapshot import POWERED, ArmSnapshot, ArmState, Commands, Counts

RETRY = 1.0  # [s] from one attempt to open the port, or to find the servos, to the next
PATIENCE = 15.0  # [s] for a request
RATE_WINDOW = 100  # cycles over which their rate is measured
Request = Callable[[ServoLoop], None]


class ServoArm:
    """One arm; safe to call from several threads.

    Requests return when they are done, and raise ArmError with the reason if they fail; ask_... return what
    will be so. calibration: None before the servos were found.
    """

    def __init__(
        self,
        open_port: Callable[[], Transport],
        profile: ArmProfile,
        calibrate: Callable[[Mapping[str, Recorded]], ArmCalibration],
        options: ArmOptions | None = None,
        changed: Callable[[ArmSnapshot], None] = lambda _: None,
        torques: Torques | None = None,
        factors: MutableMapping[str, float] | None = None,
    ) -> None:
        """open_port: raises PortError if it cannot. calibrate: returns the calibration for what the servos
        have stored, raises InputError. changed: called with every snapshot, in the thread of the arm.
        torques: of gravity at positions, by joint, to compensate the sag; None not to. factors: what was
        and is learned of it, see Sag; calibrate may fill them.
        """
        self._open, self.profile, self._calibrate = open_port, profile, calibrate
        self._options, self._changed = options or ArmOptions(), changed
        self._commands = Commands(profile.names)
        self._requests: deque[tuple[Request, Future[None]]] = deque()
        self._snapshot = ArmSnapshot(steady(), ArmState.CLOSED, 'not started')
        self._ending, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name='servos', daemon=True)
        self.calibration: ArmCalibration | None = None
        self._transport: Transport | None = None
        self._cycle: ServoLoop | None = None
        self._state, self._reason = ArmState.CLOSED, ''  # without a cycle
        self._ticks: Mapping[str, int] = {}  # measured without a zero
        self._counts = Counts()
        self._torques, self.factors = torques, {} if factors is None else factors
        self._powered: frozenset[str] = frozenset()  # what the last cycle knew outlasts it
        self._times: deque[float] = deque(maxlen=RATE_WINDOW)

    # Of any thread

    def start(self) -> None:
        """Start the thread, which does what step() does once."""
        self._thread.start()

    def stop(self, release: bool = False) -> None:
        """End the steps. The arm holds its pose; release: it is lowered slowly, and without torque then.

        Raises ArmError, once they have ended, if torque is to be released and stays on somewhere.
        """
        reason = ''
        if release and not self._ended:
            try:
                self.set_torque(False)
            except ArmError as error:
                reason = str(error)
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)
        else:
            self._end()
        if reason and self._powered:
            left = [name for name in self.profile.names if name in self._powered]
            raise ArmError(f'{reason}; {join_names(left)} may still have torque: support the arm')

    @property
    def snapshot(self) -> ArmSnapshot:
        """The arm as it was in the last cycle."""
        return self._snapshot

    def command(self, positions: Mapping[str, float]) -> None:
        """Go to positions [rad or m], by joint; joints that are not named keep theirs.

        Raises InputError for numbers that are not finite, and if no joint of the arm is named; ArmError while
        the arm takes no commands.
        """
        own, now = self._commands.checked(positions), self._snapshot
        if now.state not in POWERED or self._commands.latched:
            reason = now.reason or (HELD if self._commands.latched else '')
            raise ArmError(f'the arm is {now.state.value}{f": {reason}" if reason else ""}')
        self._commands.put(own)

    def drop_commands(self) -> None:
        """Forget the positions that were commanded: from the next cycle on the arm holds."""
        self._commands.clear()

    def set_torque(self, on: bool) -> None:
        """Switch the torque on, where the arm is, or off, slowly: support the arm."""
        _wait(self.ask_torque(on))

    def ask_torque(self, on: bool) -> Future[None]:
        """Ask for what set_torque does."""
        asked = self._commands.asked if on else self._commands.lower()
        return self._ask(lambda arm: arm.switch_on(asked) if on else arm.switch_off(self._publish, asked))

    def latch(self) -> None:
        """Take no commands until clear, from the next cycle on; returns at once."""
        self._commands.latch()

    def hold(self) -> None:
        """Hold the arm where it is, and take no commands until clear; it also ends a lowering.

        While the servos do not answer it raises ArmError, but counts all the same once they do.
        """
        _wait(self.ask_hold())

    def ask_hold(self) -> Future[None]:
        """Ask for what hold does."""
        self._commands.latch()
        held: Future[None] = Future()
        held.set_running_or_notify_cancel()

        def finish(asked: Future[None]) -> None:
            error = asked.exception()
            if error is None:
                held.set_result(None)
            elif not self._commands.latched or self._snapshot.state is ArmState.PASSIVE:
                held.set_exception(error)
            else:
                held.set_exception(ArmError(f'{error}; commands are rejected until clear'))

        self._ask(ServoLoop.hold).add_done_callback(finish)
        return held

    def clear(self) -> None:
        """End a hold or a fault. A servo that protects itself is without torque for some milliseconds."""
        _wait(self.ask_clear())

    def ask_clear(self) -> Future[None]:
        """Ask for what clear does."""
        asked = self._commands.asked  # later wishes count, even if the request has to wait
        return self._ask(lambda arm: arm.clear(asked))

    def ask_calibration(self) -> Future[None]:
        """Ask for a new one, because zeros have changed; only without torque, since positions jump."""
        return self._ask(self._recalibrate)

    def _ask(self, request: Request) -> Future[None]:
        future: Future[None] = Future()
        self._requests.append((request, future))
        if self._ended:
            self._reject('the driver of the servos has ended')
        return future

    # Of the thread

    def _run(self) -> None:
        due = steady()
        try:
            while not self._ending.is_set():
                due = max(due + self.step(), steady())
                self._ending.wait(due - steady())
        except BaseException as error:
            self._ended = True
            self._lose(f'unexpected error, please report it: {error!r}')
            raise
        else:
            self._end()

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True  # before what waits is rejected
        with contextlib.suppress(PortError):
            if self._cycle is not None:
                self._cycle.come_to_rest()
        self._lose('the driver has ended')

    def step(self) -> float:
        """Do one cycle, or one step towards the first one: open the port, which may have been lost.

        Return how long the next may wait [s].
        """
        try:
            if self._transport is None:
                self._transport = self._open()
            if self._cycle is None and not self._found(self._transport):
                return RETRY
            assert self._cycle is not None
            self._times.append(steady())
            self._cycle.step()
            self._publish()
            self._serve(self._cycle)
            if (
                self._cycle is not None and self._cycle.state is ArmState.SILENT
            ):  # which rejects what was asked for
                self._pause(ArmState.SILENT, self._cycle.reason)
            return 1.0 / self._options.rate
        except PortError as error:
            self._lose(str(error))
            return RETRY
        except ArmError as error:  # of a servo that does not answer
            self._pause(ArmState.SILENT, str(error))
            return RETRY

    def _found(self, transport: Transport) -> bool:
        """Look for the servos; whether all are there, and as they should be."""
        try:
            servos = survey(transport, self.profile)
            self.calibration = self._calibrated(transport, servos)
            cycle = ServoLoop(
                transport,
                servos,
                self.calibration,
                self._options,
                self._commands,
                self._counts,
                self._torques,
                self.factors,
            )
            cycle.take_over()
        except (ArmError, InputError) as error:
            self._pause(ArmState.SILENT, str(error))
            return False
        self._cycle = cycle
        return True

    def _calibrated(self, transport: Transport, servos: list[ServoSurvey]) -> ArmCalibration:
        """Return the calibration. Raises InputError if there is none; the ticks can be had all the same."""
        try:
            return self._calibrate(memories(servos))
        except InputError:
            self._ticks = {
                servo.joint.name: read(transport, servo.joint, servo.model, 'present_position')
                for servo in servos
            }
            raise

    def _serve(self, cycle: ServoLoop) -> None:
        """Do what was asked for, until the servos are silent."""
        while self._requests and cycle.state is not ArmState.SILENT:
            request, future = self._requests.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                try:
                    request(cycle)
                finally:
                    self._publish()  # before the answer, and after failures too: the torque may have changed
            except BaseException as error:
                future.set_exception(error if isinstance(error, ArmError) else ArmError(str(error)))
                if not isinstance(error, IkError) or isinstance(error, PortError):
                    raise
            else:
                future.set_result(None)

    def _recalibrate(self, cycle: ServoLoop) -> None:
        if cycle.state is not ArmState.PASSIVE or cycle.torque.on:
            raise ArmError('zeros can only be set while the torque is off')
        self._reject('the zeros have just changed: try again')
        self._pause(ArmState.SILENT, '')

    def _lose(self, reason: str) -> None:
        """Close the port."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        self._pause(ArmState.CLOSED, reason)

    def _pause(self, state: ArmState, reason: str) -> None:
        """Have no cycles until the servos are found."""
        self._cycle, self._state, self._reason = None, state, reason
        self._times.clear()
        self._commands.clear()
        self._publish()
        self._ticks = {}
        self._reject(reason)

    def _reject(self, reason: str) -> None:
        while self._requests:
            _, future = self._requests.popleft()
            if future.set_running_or_notify_cancel():
                future.set_exception(ArmError(reason))

    def _publish(self) -> None:
        cycle, counts = self._cycle, self._counts
        if cycle is not None:
            self._powered = frozenset(cycle.torque.on)
        span = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        self._snapshot = ArmSnapshot(
            steady() if cycle is None else cycle.time,
            self._state if cycle is None else cycle.state,
            self._reason if cycle is None else cycle.reason,
            {} if cycle is None else dict(cycle.measured),
            self._ticks if cycle is None else {name: joint.tick for name, joint in cycle.measured.items()},
            {} if cycle is None else cycle.goals.limited,
            self._powered,
            self._commands.latched,
            (len(self._times) - 1) / span if span > 0.0 else 0.0,
            counts.retries,
            counts.limited,
            dict(counts.faults),
            {} if cycle is None else cycle.goals.sag.leads,
            {} if cycle is None else cycle.goals.sag.doubts,
        )
        self._changed(self._snapshot)


def _wait(asked: Future[None]) -> None:
    """Wait until what was asked is done. Raises ArmError."""
    try:
        asked.result(PATIENCE)
    except NoAnswer:
        asked.cancel()
        raise ArmError(f'the servos did not complete that within {PATIENCE:.0f} s') from None
