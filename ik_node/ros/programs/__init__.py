"""Small programs: go to a goal, play a track, drive with the keyboard."""
