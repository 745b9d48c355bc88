# SPDX-License-Identifier: Apache-2.0
"""Levenberg-Marquardt in JAX on the CPU, for all goals at once by vmap: what one would write on top of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from oracles.chain import Array

from benchmarks.peers.virtual_roll import RolledArm, UnsupportedError

jax.config.update('jax_enable_x64', True)
TITLE = 'LM in JAX'
STEPS = 60
DAMPING, LESS, MORE = 1e-3, 0.1, 4.0  # at first, and by what it changes with every step


class Peer:
    """One descent for each goal, from the seed, within the limits by clipping; the roll is free."""

    def __init__(self, arm: dict[str, Any]) -> None:
        rolled = RolledArm(arm)
        if rolled.slides.any():
            raise UnsupportedError('prismatic joint')
        axes, offsets = jnp.array(rolled.axes), jnp.array(rolled.offsets)
        lower, upper = jnp.array(rolled.lower[:-1]), jnp.array(rolled.upper[:-1])
        weight = 0.2 * np.linalg.norm(rolled.offsets[1:], axis=1).sum()  # of a radian, as ik_node has it

        def tool(q: Any) -> tuple[Any, Any]:
            turn, point = jnp.eye(3), offsets[0]
            for i in range(rolled.chain.n):
                turn = turn @ turned(axes[i], q[i])
                point = point + turn @ offsets[i + 1]
            return point, turn @ axes[-1]

        def miss(q: Any, position: Any, direction: Any) -> Any:
            point, axis = tool(q)
            return jnp.concatenate((point - position, weight * (axis - direction)))

        def solve(position: Any, direction: Any, seed: Any) -> Any:
            def step(state: Any) -> Any:
                q, error, damping, count = state
                jacobian = jax.jacfwd(miss)(q, position, direction)
                hessian = jacobian.T @ jacobian
                gradient = jacobian.T @ error
                damped = hessian + damping * jnp.diag(jnp.diag(hessian) + 1e-9)
                trial = jnp.clip(
                    q - jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(damped), True), gradient), lower, upper
                )
                there = miss(trial, position, direction)
                better = there @ there < error @ error
                q, error = jnp.where(better, trial, q), jnp.where(better, there, error)
                return q, error, jnp.where(better, LESS, MORE) * damping, count + 1

            def goes_on(state: Any) -> Any:
                _, error, damping, count = state
                return (error @ error > 1e-14 * weight**2) & (count < STEPS) & (damping < 1e6)

            start = jnp.clip(seed, lower, upper)
            return jax.lax.while_loop(goes_on, step, (start, miss(start, position, direction), DAMPING, 0))[0]

        self.solve = jax.jit(jax.vmap(solve, (0, 0, None)))
        self.compiled: dict[int, Any] = {}

    def prepare_batch(self, positions: Array, directions: Array, seed: Array) -> tuple[Any, ...]:
        """Return the function, compiled for that many goals, and its arguments."""
        given = jnp.array(positions), jnp.array(directions), jnp.array(seed)
        if len(positions) not in self.compiled:
            self.compiled[len(positions)] = self.solve.lower(*given).compile()
        return self.compiled[len(positions)], *given

    def call_batch(self, solve: Any, *given: Any) -> Any:
        """Solve all goals."""
        return np.asarray(solve(*given))

    def batch_answers(self, found: Any) -> list[list[list[float]]]:
        """Return one configuration per goal."""
        return [[q] for q in found.tolist()]


def turned(axis: Any, angle: Any) -> Any:
    """Return the rotation (3, 3) about a unit axis."""
    cross = jnp.cross(jnp.eye(3), axis)
    return jnp.eye(3) + jnp.sin(angle) * cross + (1.0 - jnp.cos(angle)) * (cross @ cross)
