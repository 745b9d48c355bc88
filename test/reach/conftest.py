# SPDX-License-Identifier: Apache-2.0
"""Time budgets of solvers are numbers of looks at the clock."""

from counted_looks import counted

__all__ = ['counted']
