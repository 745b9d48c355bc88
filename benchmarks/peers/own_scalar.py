# SPDX-License-Identifier: Apache-2.0
"""The kernels of ik_node's batch alone, one goal at a time."""

from __future__ import annotations

import os

from benchmarks.peers import own_lanes
from ik_node.solver.restarts import LANES

TITLE = 'ik_node kernels, scalar'
os.environ[LANES] = '0'
Peer = own_lanes.Peer
