"""What can be chosen: fields with ranges, the settings of a learner and of the machine, the table of methods."""
