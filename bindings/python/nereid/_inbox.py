"""How an event loop hears of responses: one descriptor for each loop, which the server writes without Python's lock."""

import asyncio
import itertools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from . import _core


class Mailbox:
    """Of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.inbox = _core.Inbox()
        self.waiting: dict[int, asyncio.Event] = {}
        loop.add_reader(self.inbox.fileno(), self._read)

    def _read(self) -> None:
        for number in self.inbox.take():
            if event := self.waiting.get(number):
                event.set()


_mailboxes: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox]" = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)


@contextmanager
def mail() -> Iterator[tuple[_core.Inbox, int, asyncio.Event]]:
    """For one call: where it is answered, its number there, and an event that is set when there is news."""
    loop = asyncio.get_running_loop()
    box = _mailboxes.get(loop)
    if box is None:
        box = _mailboxes[loop] = Mailbox(loop)
    number, news = next(_numbers), asyncio.Event()
    box.waiting[number] = news
    try:
        yield box.inbox, number, news
    finally:
        del box.waiting[number]
