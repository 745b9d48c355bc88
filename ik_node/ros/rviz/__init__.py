"""What RViz shows: markers, and the interactive marker of the goal."""
