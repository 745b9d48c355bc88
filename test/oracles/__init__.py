# SPDX-License-Identifier: Apache-2.0
"""What answers are judged by: kinematics, arms and solvers that share nothing with those of ik_node."""
