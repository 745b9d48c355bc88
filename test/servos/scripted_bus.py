# SPDX-License-Identifier: Apache-2.0
"""A servo bus on a virtual clock, each of whose answers a test decides on."""

import heapq
from collections.abc import Callable
from types import SimpleNamespace

from virtual_time import Clock

from ik_node.servos.bus.packets import SYNC_READ, WRITE, Instruction, Status


class ScriptedBus:
    """Calls script(number, instruction) for each instruction; what it returns goes to the port as it is.

    numbers count from 0. line: the end of the driver.
    """

    def __init__(self, codec, script: Callable[[int, Instruction], bytes], clock: Clock):
        self.script, self.clock, self.port, self.baud = script, clock, f'/dev/scripted{len(clock.buses)}', 0
        self.instructions: list[Instruction] = []
        self.server, self.wire, self.line = SimpleNamespace(plugged=True), self, None
        self._parser = codec.parser(Instruction)
        clock.buses[self.port] = self

    def stall(self) -> None:
        """Nobody is busy."""

    def feed(self, data: bytes, when: float) -> list[tuple[float, bytes]]:
        found = []
        for instruction in self._parser.feed(data):
            self.instructions.append(instruction)
            found.append((when, self.script(len(self.instructions) - 1, instruction)))
        return [(when, reply) for when, reply in found if reply]

    def send(self, data: bytes) -> None:
        heapq.heappush(self.line._due, (self.clock.now, next(self.line._order), data))

    def unplug(self) -> None:
        self.server.plugged = False


def asked(codec, instruction: Instruction) -> tuple[list[int], int]:
    """Return the ids that an instruction asks, and for how many bytes (0: an acknowledgement)."""
    word = codec.WORD
    size = int.from_bytes(instruction.parameters[word : 2 * word], 'little')
    if instruction.code == SYNC_READ:
        return list(instruction.parameters[2 * word :]), size
    return [instruction.id], 0 if instruction.code == WRITE else size


def answers(codec, number: int, instruction: Instruction) -> bytes:
    """Return what good servos answer: data that begin with the number of the request, modulo 256."""
    ids, size = asked(codec, instruction)
    return b''.join(codec.encode(Status(id, 0, bytes([number % 256, *bytes(size)])[:size])) for id in ids)
