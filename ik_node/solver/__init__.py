# SPDX-License-Identifier: Apache-2.0
"""IkSolver and the stages of its pipeline."""
