# SPDX-License-Identifier: Apache-2.0
"""Maps of the workspace in the scene."""
