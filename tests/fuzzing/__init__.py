"""Random wrong input for the command line, run directories and own data: never a traceback, a crash or a hang."""
