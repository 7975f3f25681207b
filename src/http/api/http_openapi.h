#pragma once
/* The document of OpenAPI 3.1 that describes the inference port: its paths out of http_route.def,
 * schemas of messages out of their descriptors, the rest out of proto/openapi.json. */
struct strbuf;

/* http_openapi_put - append the document, JSON without blanks at its ends. Pure; any thread. */
void http_openapi_put(struct strbuf *out);
