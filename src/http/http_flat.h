#pragma once
/* A model's response as one flat JSON object, as generate has it: id, name and version of the
 * model, parameters and outputs side by side, in the order of their names. Of two of one name the
 * first of these kinds is told. An output of one element is that element. Any thread; one at a
 * time for a response. */
#include "base/err.h"

#include <stddef.h>

struct http_flat;
struct response;

/* http_flat_prepare - look at a response, so that writing it cannot fail.
 * r       its error, if it has one, is moved out
 * ret     in the response's memory
 * room    the most bytes that http_flat_write needs; SIZE_MAX when it is past counting
 * errors  the response's own; UNSUPPORTED for a parameter of bytes, and what cannot be JSON */
struct err *http_flat_prepare(struct response *r, const struct http_flat **ret, size_t *room);

/* http_flat_write - the object at `to`; returns its end. */
char *http_flat_write(char *to, const struct response *r, const struct http_flat *flat);
