"""What starts the programs: as a launch description, or as processes."""
