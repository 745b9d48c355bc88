# SPDX-License-Identifier: Apache-2.0
"""What the address of the page says: arm, goal and joints."""
