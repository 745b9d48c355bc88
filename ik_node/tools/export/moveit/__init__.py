# SPDX-License-Identifier: Apache-2.0
"""A package for MoveIt: package.py fills in the templates beside it."""
