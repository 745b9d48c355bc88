# SPDX-License-Identifier: Apache-2.0
"""Every solution of the current goal, to see and to choose, and why a goal cannot be met."""
