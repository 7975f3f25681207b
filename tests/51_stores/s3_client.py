"""A small S3 client with a signer of its own, written from AWS's description and not from ours: it fills the stores."""

import hashlib
import hmac
import http.client
import urllib.parse
from datetime import UTC, datetime
from xml.etree import ElementTree

KEY_ID = "nereidtestkey"
SECRET = "nereidtestsecret/+with=odd characters"
REGION = "us-east-1"


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class S3Client:
    def __init__(self, host: str, port: int, key_id: str = KEY_ID, secret: str = SECRET):
        self.host, self.port, self.key_id, self.secret = host, port, key_id, secret
        self.connection = http.client.HTTPConnection(host, port, timeout=120)

    def request(self, method: str, path: str, query: dict[str, str] | None = None, body: bytes = b"") -> http.client.HTTPResponse:
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        payload = hashlib.sha256(body).hexdigest()
        quoted = urllib.parse.quote(path, safe="/~")
        pairs = sorted((query or {}).items())
        text = "&".join(f"{urllib.parse.quote(k, safe='~')}={urllib.parse.quote(v, safe='~')}" for k, v in pairs)
        headers = {"host": f"{self.host}:{self.port}", "x-amz-content-sha256": payload, "x-amz-date": now}
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"{method}\n{quoted}\n{text}\n{lines}\n{names}\n{payload}"
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        key = _hmac(_hmac(_hmac(_hmac(f"AWS4{self.secret}".encode(), now[:8]), REGION), "s3"), "aws4_request")
        signature = hmac.new(key, f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}".encode(), hashlib.sha256).hexdigest()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        self.connection.request(method, f"{quoted}?{text}" if text else quoted, body=body, headers=headers)
        response = self.connection.getresponse()
        response.content = response.read()  # type: ignore[attr-defined]
        return response

    def done(self, method: str, path: str, query: dict[str, str] | None = None, body: bytes = b"") -> bytes:
        response = self.request(method, path, query, body)
        content: bytes = response.content  # type: ignore[attr-defined]
        expected = 204 if method == "DELETE" else 200
        assert response.status == expected, f"{method} {path}: {response.status} {content.decode(errors='replace')}"
        return content

    def make_bucket(self, bucket: str) -> None:
        self.done("PUT", f"/{bucket}")

    def put(self, bucket: str, key: str, content: bytes = b"") -> None:
        self.done("PUT", f"/{bucket}/{key}", body=content)

    def put_in_parts(self, bucket: str, key: str, content: bytes, part: int) -> None:
        path = f"/{bucket}/{key}"
        made = ElementTree.fromstring(self.done("POST", path, {"uploads": ""}))
        upload = next(e.text for e in made.iter() if e.tag.endswith("UploadId"))
        assert upload
        tags = []
        for number, at in enumerate(range(0, len(content), part), 1):
            response = self.request("PUT", path, {"partNumber": str(number), "uploadId": upload}, content[at : at + part])
            assert response.status == 200
            tags.append(f"<Part><PartNumber>{number}</PartNumber><ETag>{response.headers['ETag']}</ETag></Part>")
        self.done("POST", path, {"uploadId": upload}, f"<CompleteMultipartUpload>{''.join(tags)}</CompleteMultipartUpload>".encode())

    def delete(self, bucket: str, key: str) -> None:
        self.done("DELETE", f"/{bucket}/{key}")
