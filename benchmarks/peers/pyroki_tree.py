# SPDX-License-Identifier: Apache-2.0
"""PyRoki: a pose cost per tool that leaves out the turn about the tool axis, and its limit cost."""

from __future__ import annotations

import io
from typing import Any

import jax
import jax.numpy as jnp
import jaxlie
import jaxls
import numpy as np
import pyroki
import yourdfpy

from benchmarks.chain import Array
from benchmarks.peers.stepping import WITHOUT_ROLL, Stepping

TITLE = 'pyroki'
jax.config.update('jax_enable_x64', True)  # in single precision nothing comes within 1e-6
POSITION, DIRECTION, LIMIT = 50.0, 10.0, 100.0  # weights of its own example with two targets


class Peer(Stepping):
    """Its example with two targets without the rest cost, which would pull away from the goals.

    Its own Levenberg-Marquardt solver runs from every start; the target has the roll of the tip there.
    """

    def __init__(self, robot: dict[str, Any]) -> None:
        super().__init__(robot)
        urdf = yourdfpy.URDF.load(
            io.BytesIO(robot['xml'].encode()), build_scene_graph=True, load_meshes=False
        )
        self.robot = pyroki.Robot.from_urdf(urdf)
        self.order = [self.robot.joints.actuated_names.index(name) for name in self.names]
        self.links = jnp.array(
            [self.robot.links.names.index(tip) for tip in self.tips.values()], dtype=jnp.int32
        )
        self.solve = jax.jit(self._solve)
        self.forward = jax.jit(lambda q: jaxlie.SE3(self.robot.forward_kinematics(q)[self.links]).as_matrix())
        self.q, self.poses = np.zeros(len(self.names)), None

    def _solve(self, wxyz: Any, place: Any, start: Any) -> Any:
        variable = self.robot.joint_var_cls
        poses = jaxlie.SE3.from_rotation_and_translation(jaxlie.SO3(wxyz), place)
        batch = poses.get_batch_axes()
        costs = [
            pyroki.costs.pose_cost(
                jax.tree.map(lambda x: x[None], self.robot),
                variable(jnp.zeros(batch, dtype=int)),
                poses,
                self.links,
                pos_weight=POSITION,
                ori_weight=jnp.tile(DIRECTION * jnp.array(WITHOUT_ROLL), (*batch, 1)),
            ),
            pyroki.costs.limit_cost(self.robot, variable(0), jnp.full(self.robot.joints.num_joints, LIMIT)),
        ]
        solved = (
            jaxls.LeastSquaresProblem(costs, [variable(0)])
            .analyze()
            .solve(
                initial_vals=jaxls.VarValues.make([variable(0).with_value(start)]),
                verbose=False,
                linear_solver='dense_cholesky',
                trust_region=jaxls.TrustRegionConfig(lambda_initial=10.0),
                termination=jaxls.TerminationConfig(
                    cost_tolerance=1e-12, gradient_tolerance=1e-12, parameter_tolerance=1e-12
                ),
            )
        )
        return solved[variable(0)]

    def set(self, q: Array) -> None:
        """Move to q (n,)."""
        self.q = np.zeros(len(q))
        self.q[self.order] = q
        self.poses = None

    def get(self) -> Array:
        """Return where it is (n,)."""
        return self.q[self.order]

    def pose(self, tool: str) -> Array:
        """Return the pose of a tip (4, 4)."""
        if self.poses is None:
            self.poses = np.asarray(self.forward(self.q))
        return self.poses[list(self.tips).index(tool)]

    def call(self, goals: dict[str, Array], seed: Array, starts: int) -> tuple[Array, int]:
        """Return the configuration that meets goals (or the last one), and the number of starts."""
        for start in range(1, starts + 1):
            self.set(seed if start == 1 else self.rng.uniform(self.lower, self.upper))
            poses = [jaxlie.SE3.from_matrix(self.target(tool, goal)) for tool, goal in goals.items()]
            wxyz = np.array([pose.rotation().wxyz for pose in poses])
            place = np.array([goal[:3] for goal in goals.values()])
            self.q, self.poses = np.asarray(self.solve(wxyz, place, self.q)), None
            self.q, self.poses = (
                np.clip(self.q, *np.array([self.lower, self.upper])[:, np.argsort(self.order)]),
                None,
            )
            if self.met(goals):
                return self.get(), start
        return self.get(), starts
