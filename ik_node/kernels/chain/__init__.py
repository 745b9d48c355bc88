# SPDX-License-Identifier: Apache-2.0
"""One chain of joints: forward kinematics, Jacobians, ball joints, random configurations and lists."""
