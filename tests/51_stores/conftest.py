"""One gateway for all tests; each takes a bucket, and a cache, of its own."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from peers import VersityGateway
from shelf import Files

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def gateway() -> Iterator[VersityGateway]:
    with VersityGateway() as gateway:
        yield gateway


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


@pytest.fixture
def fill(gateway: VersityGateway) -> Callable[[Files], str]:
    """Puts files into a new bucket; its name."""

    def put(files: Files) -> str:
        bucket = f"bucket-{next(_numbers)}"
        client = gateway.client()
        client.make_bucket(bucket)
        for name, data in files.items():
            client.put(bucket, name, data)
        return bucket

    return put
