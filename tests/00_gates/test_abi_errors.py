"""Each function of the C ABI is called with each error that its header documents."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import abi_errors  # noqa: E402

HEADER = """\
/* TRITONSERVER_Take - take it.
 * what    one of them
 * errors  {errors}
 * thread  any */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_Take(TRITONSERVER_Thing *thing, const char *what);
/* TRITONSERVER_ThingDelete - free it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ThingDelete(TRITONSERVER_Thing *thing);
/* TRITONSERVER_PluginDoes - what a plug-in exports. */
TRITONSERVER_ISPEC TRITONSERVER_Error *TRITONSERVER_PluginDoes(TRITONSERVER_Thing *thing);
"""
SOURCE = """\
TRITONSERVER_Error *TRITONSERVER_Take(TRITONSERVER_Thing *thing, const char *what)
{{
    return err_new(STATUS_{code}, "no");
}}

TRITONSERVER_Error *TRITONSERVER_ThingDelete(TRITONSERVER_Thing *thing)
{{
    return NULL;
}}
"""
TESTS = """\
static void takes(TRITONSERVER_Thing *thing)
{{
{calls}}}

static void takes_things(void **state)
{{
    takes(*state);
}}

UNIT_MAIN(UNIT(takes_things))
"""
CALLS = """\
    INVALID(TRITONSERVER_Take(NULL, "x"));
    HOST_FAILS(TRITONSERVER_Take(thing, (char[]){'a', 0}), TRITONSERVER_ERROR_NOT_FOUND, "no");
    HOST_OK(TRITONSERVER_ThingDelete(NULL));
"""


def found(errors: str = "NOT_FOUND when it is none", calls: str = CALLS, code: str = "NOT_FOUND", tests: str = TESTS) -> list[str]:
    return abi_errors.problems([HEADER.format(errors=errors)], [tests.format(calls=calls)], [SOURCE.format(code=code)])


def test_every_documented_error_is_tried() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "abi_errors.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_function_that_returns_an_error_is_seen() -> None:
    """None escapes by the form of its declaration or definition."""
    headers = "".join(path.read_text() for path in (ROOT / "include/triton/core").glob("triton*.h"))
    sources = "".join(path.read_text() for path in (ROOT / "src/abi").glob("*.c"))
    ours = set(abi_errors.named_in_source(sources))
    assert len(ours) == sources.count("\nTRITONSERVER_Error *TRITON") + sources.count("\nTRITONSERVER_Error *\nTRITON")
    assert ours <= set(abi_errors.documented(headers))


@pytest.mark.parametrize(
    "tests",
    [
        TESTS,
        TESTS.replace("UNIT_MAIN(UNIT(takes_things))", "int main(void)\n{{\n    cmocka_unit_test(takes_things);\n}}"),
        # A plug-in: the server calls what it exports.
        TESTS.replace("static void takes_things", "SPEC void *\ntakes_things").replace("UNIT_MAIN(UNIT(takes_things))", ""),
    ],
)
def test_what_is_tried_is_accepted(tests: str) -> None:
    assert found(tests=tests) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"errors": "NOT_FOUND, UNAVAILABLE"}, "TRITONSERVER_Take: no test expects UNAVAILABLE"),
        ({"errors": "when it is none"}, "TRITONSERVER_Take: an error is documented without its code"),
        ({"calls": CALLS.replace("INVALID(", "HOST_OK(")}, "TRITONSERVER_Take: no test expects INVALID_ARG"),
        ({"calls": CALLS.replace("Delete(NULL)", "Delete(thing)")}, "TRITONSERVER_ThingDelete: no test expects INVALID_ARG"),
        ({"calls": f"/* {CALLS} */"}, "TRITONSERVER_Take: no test expects NOT_FOUND"),
        ({"calls": CALLS.replace("NOT_FOUND", "UNSUPPORTED")}, "TRITONSERVER_Take: a test expects UNSUPPORTED, which is not documented"),
        ({"code": "UNSUPPORTED"}, "TRITONSERVER_Take: UNSUPPORTED is not documented"),
        ({"tests": TESTS.replace("UNIT(takes_things)", "UNIT(other)")}, "TRITONSERVER_Take: no test expects NOT_FOUND"),
        ({"tests": TESTS.replace("    takes(*state);\n", "")}, "TRITONSERVER_Take: no test expects NOT_FOUND"),
        ({"tests": TESTS.replace("    takes(*state);", "    /* takes */")}, "TRITONSERVER_Take: no test expects NOT_FOUND"),
        ({"tests": TESTS.replace("UNIT_MAIN(UNIT(takes_things))", "")}, "TRITONSERVER_Take: no test expects NOT_FOUND"),
    ],
)
def test_what_is_missing_is_told(changed: dict[str, str], words: str) -> None:
    assert words in found(**changed)
