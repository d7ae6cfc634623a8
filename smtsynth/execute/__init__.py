"""Running programs and schedules for real, on processes of this machine, and comparing every element with the goal."""
