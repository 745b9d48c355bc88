# SPDX-License-Identifier: Apache-2.0
"""What starts the programs: as a launch description, or as processes."""
