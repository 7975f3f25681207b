"""The kinds of difference between the two servers that are wanted. A kind is one cause, in a sentence that a user understands, and what
says so: a standard, the specification, or a defect of the reference. Every difference is of one kind: known.py has those that the generated
questions show, held.py those that other tests hold.

tools/differences.py makes docs/user/differences.md of them. The words are for users: "here" is this server, "there" is the reference of
version 2.51, which the tests ask.
"""

from dataclasses import dataclass

CLIENT, OPERATOR, PLUGIN = "clients", "operators", "plug-ins"

# Standards and specifications that are no RFC.
STANDARDS = (
    "Binary tensor data extension",
    "ELF",
    "Fetch Standard",
    "gRPC compression",
    "gRPC over HTTP/2",
    "gRPC, cancellation",
    "gRPC, health checking protocol",
    "IEEE 754",
    "Model configuration extension",
    "Open Inference Protocol",
    "OpenAPI Specification",
    "Prometheus, data model",
    "Protocol Buffers",
    "Statistics extension",
)

AT_MOST = 15  # kinds: who comes from the reference can learn so many


@dataclass(frozen=True)
class Kind:
    """more: this server offers more than the reference, so that nothing need say which of them is right."""

    name: str
    cause: str
    source: str
    more: bool = False


@dataclass(frozen=True)
class Difference:
    """source: what says that it is right so, in a form that tools/differences.py knows. tests: those outside of this folder that hold it,
    relative to tests/; none: the comparison does."""

    kind: Kind
    name: str
    here: str
    there: str
    why: str
    source: str
    seen_by: str = CLIENT
    tests: tuple[str, ...] = ()


# Where the reference is not what a standard or the specification asks for.

HTTP = Kind(
    "HTTP as its standards have it",
    "Where the reference's HTTP/1.1 is not that of the standard, this server keeps to the standard.",
    "RFC 9110 and 9112; where a row names another, that one.",
)
GRPC = Kind(
    "gRPC as its standards have it",
    "Where the reference's calls over HTTP/2 are not those of the standard, this server keeps to the standard.",
    "RFC 9113; gRPC over HTTP/2, health checking, cancellation.",
)
SPECIFIED = Kind(
    "what the specification says",
    "Where the protocol, the repository or the configuration is specified otherwise than the reference does it, the specification decides.",
    "The Open Inference Protocol with its extensions, and the requirements that each row names.",
)

# What is arbitrary.

ORDER = Kind(
    "order of what has none",
    "Things whose order means nothing come in one order here, always the same, and in another one there.",
    "RFC 9110, 5.3 (headers); RFC 8259, 4 (members); Protocol Buffers, encoding (maps); the Open Inference Protocol names tensors by name.",
)
OPEN = Kind(
    "what a format leaves open",
    "Where the standard of a format lets a reader or a sender choose, the two servers chose differently.",
    "The standard that each row names.",
)
ITSELF = Kind(
    "what a server tells of itself",
    "Versions, durations and counts are each server's own; here they are also those of what happened.",
    "Open Inference Protocol, server metadata; statistics extension.",
)

# What came later, or is there besides.

LATER = Kind(
    "as later versions of Triton do",
    "What later versions of Triton changed or added is done here as they do it.",
    "Triton's sources of 2026, the files that each row names; for the tests the reference is 2.51.",
)
MORE = Kind(
    "what 2.51 does not have",
    "Features that 2.51 does not have are here, and a client that does not ask for them is answered as there.",
    "The standard that each row names, or none: nothing that was there is another one.",
    more=True,
)
WORDS = Kind(
    "errors that say what to do",
    "A refusal is one in both servers and of the same status; here it says what was sent, where, and what helps.",
    "Defects of the reference: its words name what it computed, or nothing.",
)

# Defects of the reference.

READ = Kind(
    "read as it was written",
    "A request that the reference takes for another one than was sent is taken as it was sent here, or refused.",
    "CWE-20, improper input validation; CWE-681, incorrect conversion between numeric types. Defects of the reference.",
)
ENDS = Kind(
    "what ends the server",
    "A request or a model that ends the reference, or takes its memory, is refused or answered here.",
    "CWE-248, CWE-400 and CWE-674: uncaught exceptions, memory and recursion without limit. Defects of the reference.",
)
WAITS = Kind(
    "what waits without end",
    "Where the reference waits for what never comes, or for nothing, this server goes on.",
    "CWE-833, deadlock, and CWE-772, missing release of what was lent. Defects of the reference.",
)
WORKS = Kind(
    "features that do not work there",
    "States of sequences, ensembles and the response cache do here what they are documented to do, where the reference mixes tensors up.",
    "Triton's documentation of each. Defects of the reference, seen with the same models and backends in both servers.",
)
REACH = Kind(
    "how far models and pages reach",
    "A model reads files and brings code from its own directory alone, a page asks the server that it came from, unless an option allows more.",
    "CWE-22, path traversal; CWE-352, cross-site request forgery; CWE-434, unrestricted upload of file with dangerous type.",
)
ABI = Kind(
    "what the C API leaves to the server",
    "Plug-ins see the same functions; what the headers leave to the server, or ask of it, is done otherwise than there.",
    "The public headers, include/triton/core.",
)

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
