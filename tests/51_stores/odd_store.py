"""A store of the tests' own that answers as no honest one would. The honest ones are in peers.py."""

import hashlib
from collections.abc import Callable
from xml.sax.saxutils import escape

from endpoint import HOST, Answer, Endpoint, Request


def md5_tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def listing(objects: dict[str, tuple[int, str]], next_token: str = "", encoded: bool = False) -> bytes:
    """A page: names with sizes and ETags."""
    items = "".join(
        f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><ETag>{escape(tag)}</ETag></Contents>" for name, (size, tag) in objects.items()
    )
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{next_token}</NextContinuationToken>" if next_token else ""
    kind = "<EncodingType>url</EncodingType>" if encoded else ""
    return f'<?xml version="1.0"?><ListBucketResult>{kind}{more}{items}</ListBucketResult>'.encode()


class OddStore(Endpoint):
    """Answers by `odd` where that gives an answer; else as a bucket with these files would."""

    def __init__(self, files: dict[str, bytes], odd: Callable[[Request], Answer | None] = lambda request: None):
        super().__init__()
        self.files, self.odd = files, odd
        self.requests: list[Request] = []

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        return self.odd(request) or self.honest(request)

    def honest(self, request: Request) -> Answer:
        if request.is_listing:
            prefix = request.query["prefix"]
            return Answer(body=listing({n: (len(d), md5_tag(d)) for n, d in self.files.items() if n.startswith(prefix)}))
        data = self.files.get(request.path.removeprefix("/bucket/"))
        if data is None:
            return Answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        first, last = (int(n) for n in request.headers["range"].removeprefix("bytes=").split("-"))
        part = data[first : last + 1]
        return Answer(206, part, {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(data)}", "ETag": md5_tag(data)})

    @property
    def path(self) -> str:
        return f"s3://{HOST}:{self.port}/bucket"
