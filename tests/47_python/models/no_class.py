"""A module without the class that is looked for."""

ANSWER = 42
