#pragma once
/* What a client got over HTTP/1, looked at: each answer is whole. */
struct strbuf;

enum fuzz_answers_json {
    FUZZ_ANSWERS_LOOSE,  /* strings that are no UTF-8 come as they are, and NaN by its name */
    FUZZ_ANSWERS_STRICT, /* and the last event may be [DONE] */
};

/* fuzz_answers_check - JSON with a length, or events of JSON whose chunks end. */
void fuzz_answers_check(const struct strbuf *got, enum fuzz_answers_json json);
