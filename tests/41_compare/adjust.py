"""Answers that are compared after a change in place, each for some of the differences (known.py)."""

import re
from collections.abc import Callable
from typing import Any

import known
from harness.compare import Adjust, Answer

DIFFERENCES_OF: dict[Adjust, tuple[known.Difference, ...]] = {}


def _for(*of: known.Difference) -> Callable[[Adjust], Adjust]:
    def keep(adjust: Adjust) -> Adjust:
        DIFFERENCES_OF[adjust] = of
        return adjust

    return keep


@_for(known.PRODUCT, known.EXTENSIONS)
def known_metadata(answer: Answer) -> None:
    """Known and wanted: another product name and version; "sequence(string_id)" is reported (SX-04), and only what is served."""
    body = answer.get("body") or answer["message"]
    body["name"] = body["version"] = "any"
    others = ("sequence(string_id)", "system_shared_memory", "cuda_shared_memory")
    body["extensions"] = [each for each in body["extensions"] if each not in others]


@_for(known.TIME)
def volatile_statistics(answer: Answer) -> None:
    def clean(value: Any) -> None:
        if isinstance(value, dict):
            for key in value:
                if key in ("ns", "last_inference", "count", "inference_count", "execution_count"):
                    value[key] = "any"
                else:
                    clean(value[key])
        elif isinstance(value, list):
            for each in value:
                clean(each)

    clean(answer)


@_for(known.JSON_WORDS)
def parser_words(answer: Answer) -> None:
    """What exactly is wrong with a text that is no JSON, each parser says in its own words."""
    text = answer["body"]["error"]
    answer["body"]["error"] = text.split("JSON buffer: ")[0]


@_for(known.ORDER)
def any_input_order(answer: Answer) -> None:
    """The reference names the inputs in the order of a hash table, and forgets a bracket."""
    for place, key in ((answer.get("body"), "error"), (answer, "details")):
        if isinstance(place, dict) and key in place:
            place[key] = place[key].split(" Got input(s)")[0]


@_for(known.ORDER)
def any_input_name(answer: Answer) -> None:
    """Which of the inputs is the one that differs, a hash table decides in the reference."""
    for place, key in ((answer.get("body"), "error"), (answer, "details")):
        if isinstance(place, dict) and key in place:
            place[key] = re.sub(r"input '\w+'", "input", place[key])


@_for(known.ORDER)
def outputs_by_name(answer: Answer) -> None:
    """The reference sorts the requested outputs by name; ours keep the order in which they were asked."""
    answer["body"]["outputs"].sort(key=lambda output: output["name"])


@_for(known.DIGITS)
def as_short(answer: Answer) -> None:
    """The reference reads a number of more than 17 digits as one of its neighbours."""
    for output in answer["body"]["outputs"]:
        output["data"] = [f"{value:.14g}" for value in output["data"]]
