# SPDX-License-Identifier: Apache-2.0
"""Everything that may reject a setpoint, a motion or a trajectory."""
