#pragma once

#include <stddef.h>

/* Memory for the inputs of an instance. TensorFlow gives a piece back when it no longer needs
 * it: usually at the end of the run, but a variable may keep an input as long as the session
 * lives. Some pieces are kept for later runs, because new memory costs more than copying into
 * it. */

struct keep;

/* keep_new - make an empty one.
 * returns  NULL when there is no memory */
struct keep *keep_new(void);

/* keep_end - the instance ends; pieces in use may come back later. NULL is allowed. */
void keep_end(struct keep *keep);

/* keep_take - get a piece of at least `size` bytes.
 * returns  aligned for tensors; given back by keep_give; NULL if there is no memory */
void *keep_take(struct keep *keep, size_t size);

/* keep_give - give a piece back that is not read any more. Any thread; the signature is
 * TensorFlow's.
 * data  from keep_take
 * keep  the struct keep of the piece */
void keep_give(void *data, size_t size, void *keep);
