"""What goes wrong, in the words of the command line."""


class Error(Exception):
    """Whatever goes wrong in dualq."""


class ScenarioError(Error, ValueError):
    """A scenario or an argument makes no sense, or a world refuses it: exit status 2 of the program."""


class RunError(Error, RuntimeError):
    """What was asked for could not be done: exit status 1 of the program."""
