# SPDX-License-Identifier: Apache-2.0
"""What RViz shows: markers, and the interactive marker of the goal."""
