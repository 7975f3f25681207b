"""The example that a file of tests is about."""

from collections.abc import Iterator

import pytest
from harness.examples import Example


@pytest.fixture(scope="module")
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
    name = request.module.__name__.removeprefix("test_")
    with Example(tmp_path_factory.mktemp(name), name) as example:
        assert example.url in example.says("Ready.")
        yield example
        if example.process.running():  # else a test has ended it
            example.ctrl_c()
