"""What may differ in how any two answers come, each for one of the differences (known.py): applied where exactly this differs."""

import json
import re
from collections.abc import Callable
from typing import Any

import known
from harness.compare import Answer

Excuse = Callable[[dict[str, Any], dict[str, Any]], bool]
DIFFERENCE_OF: dict[Excuse, known.Difference] = {}


def _for(difference: known.Difference) -> Callable[[Excuse], Excuse]:
    def keep(excuse: Excuse) -> Excuse:
        DIFFERENCE_OF[excuse] = difference
        return excuse

    return keep


def _is_error(wire: dict[str, Any]) -> bool:
    try:
        return set(json.loads(wire["text"])) == {"error"}
    except (KeyError, ValueError, TypeError):
        return False


def _swap(wire: dict[str, Any], had: tuple[str, str], has: tuple[str, str]) -> bool:
    if had not in wire.get("headers", []):
        return False
    wire["headers"] = [has if each == had else each for each in wire["headers"]]
    return True


@_for(known.ERROR_LABEL)
def errors_are_json(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Before the order of headers: the reference puts this one at the end. The answer to HEAD is its head alone."""
    json_type, text_type = ("Content-Type", "application/json"), ("Content-Type", "text/plain")
    return (_is_error(ours) or ours.get("text") == b"") and json_type in ours["headers"] and _swap(theirs, text_type, json_type)


@_for(known.HEALTH)
def health_has_a_body(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Before the order of headers, as above."""
    told = re.fullmatch(rb'\{("live"|("name":"[^"]+",)?"ready"):true\}', ours.get("text", b""))
    if not told or theirs["text"] != b"" or not _swap(theirs, ("Content-Type", "text/plain"), ("Content-Type", "application/json")):
        return False
    ours["text"] = theirs["text"]
    return True


@_for(known.HEAD)
def errors_behind_a_head(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if ours.get("text") != b"" or ours["behind"] != b"" or not _is_error({"text": theirs["behind"]}):
        return False
    theirs["behind"] = b""
    return True


@_for(known.ZSTD)
def zstd_is_taken(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    has = ("Accept-Encoding", "gzip, deflate, zstd")
    return has in ours.get("headers", []) and _swap(theirs, ("Accept-Encoding", "gzip, deflate"), has)


@_for(known.CLOSES)
def says_that_it_closes(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Where the method is unknown alone."""
    close = ("Connection", "close")
    if ours.get("reason") != "Not Allowed" or close not in ours["headers"] or close in theirs["headers"]:
        return False
    ours["headers"].remove(close)
    return True


@_for(known.GENERATE)
def answers_of_known_length(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """What generate answers; its events come in chunks from both."""
    length = [each for each in ours.get("headers", []) if each[0] == "Content-Length"]
    return bool(length) and _swap(theirs, ("Transfer-Encoding", "chunked"), length[0])


@_for(known.HEADER_ORDER)
def headers_in_another_order(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Of different names; those of one name keep their order."""
    mine, other = (sorted(each.get("headers", []), key=lambda header: str(header[0])) for each in (ours, theirs))
    if ours.get("headers") == theirs.get("headers") or mine != other:
        return False
    ours["headers"] = theirs["headers"] = mine
    return True


@_for(known.ACCEPTED_CODINGS)
def codings_of_messages(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    codings = ("grpc-accept-encoding", "identity, deflate, gzip")
    blocks = [each["headers"][0] for each in (ours, theirs) if each.get("headers")]
    if len(blocks) < 2 or codings in blocks[0] or codings not in blocks[1]:
        return False
    blocks[1].remove(codings)
    return True


def _edges_encoded(text: str) -> str:
    inner = text.strip(" ")
    before, after = text.split(inner) if inner else (text, "")
    return "%20" * len(before) + inner + "%20" * len(after)


@_for(known.EDGE_SPACE)
def encoded_at_its_ends(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    shown = False
    for block, other in zip(ours.get("headers", []), theirs.get("headers", []), strict=False):
        if not isinstance(other, list):
            continue
        for at, (name, value) in enumerate(other):
            if name == "grpc-message" and _edges_encoded(value) != value and (name, _edges_encoded(value)) in block:
                other[at] = (name, _edges_encoded(value))
                shown = True
    return shown


@_for(known.DIGITS)
def other_digits(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """The same numbers, sign of zero and all, written differently. One that no double holds is none of them."""
    if "text" not in ours or ours["text"] == theirs["text"]:
        return False
    number = rb"(?<=[\[,:])-?[0-9.]+(?:e[-+]?[0-9]+)?(?=[\],}])"
    mine, other = (re.split(rb"(" + number + rb")", each["text"]) for each in (ours, theirs))
    values = [[repr(float(each)) for each in side[1::2]] for side in (mine, other)]
    if mine[::2] != other[::2] or values[0] != values[1] or {"inf", "-inf"} & set(values[0]):
        return False
    ours["text"] = theirs["text"]
    return True


def _pairs(text: bytes) -> Any:
    """JSON with its members as pairs, numbers as they are written: what the text says, spaces apart."""
    return json.loads(text, object_pairs_hook=lambda pairs: ("object", pairs), parse_float=str, parse_int=str)


def _sorted(value: Any) -> Any:
    if isinstance(value, tuple):
        return "object", sorted((name, _sorted(member)) for name, member in value[1])
    return [_sorted(each) for each in value] if isinstance(value, list) else value


@_for(known.MEMBER_ORDER)
def members_in_another_order(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if "text" not in ours or ours["text"] == theirs["text"]:
        return False
    try:
        mine, other = _pairs(ours["text"]), _pairs(theirs["text"])
    except ValueError:
        return False
    if mine == other or repr(_sorted(mine)) != repr(_sorted(other)):
        return False
    ours["text"] = theirs["text"]
    return True


@_for(known.MAP_ORDER)
def entries_of_a_map_in_another_order(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """The same bytes but for their order: the contents themselves are compared where the messages are parsed."""
    mine, other = ours.get("messages"), theirs.get("messages")
    if not mine or not other or mine == other or [sorted(each) for each in mine] != [sorted(each) for each in other]:
        return False
    ours["messages"] = other
    return True


def excuse(ours: Answer, theirs: Answer) -> list[known.Difference]:
    """Makes the answers' wires equal where an excuse holds; the differences of those that did."""
    return [difference for apply, difference in DIFFERENCE_OF.items() if apply(ours["wire"], theirs["wire"])]
