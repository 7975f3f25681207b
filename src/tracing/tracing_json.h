#pragma once
/* A trace as the files have it: a JSON object for each thing that happened. Pure.
 * source  user_guide/trace, "JSON Trace Output" */
struct strbuf;
struct tracing_record;

/* tracing_json_put - the objects of one that is done, with commas between them; nothing where it
 * has none. */
void tracing_json_put(const struct tracing_record *r, struct strbuf *sb);
