"""The one place where a test does nothing for a while: between two looks at what tells nobody when it changes."""

import select


def pause(seconds: float) -> None:
    """Never in place of what is waited for: whoever calls it looks again, and gives up after a time."""
    select.select([], [], [], seconds)  # allowed: between two looks at what tells nobody
