"""The endpoints that give an instance or a container its credentials: no such machine is at hand."""

import json
from datetime import UTC, datetime, timedelta

from endpoint import Answer, Endpoint, Request

ROLE = "test-role"
TOKEN = "token-of-this-session"
CREDENTIALS = "/latest/meta-data/iam/security-credentials/"


class InstanceMetadata(Endpoint):
    """Gives the keys in turn, the last one again and again; `first` are the answers to what is asked first."""

    def __init__(self, keys: list[tuple[str, str]], seconds: float, first: list[Answer] | None = None, port: int = 0):
        super().__init__(port)
        self.first = first or []
        self.keys, self.seconds = keys, seconds
        self.given = self.tokens = 0
        self.authorizations: set[str] = set()

    def credentials(self) -> Answer:
        key, secret = self.keys[min(self.given, len(self.keys) - 1)]
        self.given += 1
        ends = datetime.now(UTC) + timedelta(seconds=self.seconds)
        given = {"AccessKeyId": key, "SecretAccessKey": secret, "Token": "", "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return Answer(body=json.dumps(given).encode())

    def answer(self, request: Request) -> Answer:
        asked = (request.method, request.path)
        if self.first:
            return self.first.pop(0)
        if asked == ("PUT", "/latest/api/token"):
            self.tokens += 1
            return Answer(body=TOKEN.encode()) if "x-aws-ec2-metadata-token-ttl-seconds" in request.headers else Answer(400)
        if asked == ("GET", "/container"):
            self.authorizations.add(request.headers.get("authorization", ""))
            return self.credentials()
        if request.headers.get("x-aws-ec2-metadata-token") != TOKEN:
            return Answer(401)
        if request.path == CREDENTIALS:
            return Answer(body=ROLE.encode())
        return self.credentials() if request.path == CREDENTIALS + ROLE else Answer(404)
