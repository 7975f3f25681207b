#pragma once

#include <stddef.h>

/* Memory for the inputs of an instance, which TensorFlow gives back when it has no use for it
 * any more: mostly when the run is over, but a variable may keep an input for as long as the
 * session lives. Some pieces stay for the runs that follow, since fresh memory costs more than
 * what is copied into it. */

struct keep;

/* keep_new - make an empty one.
 * returns  NULL when there is no memory */
struct keep *keep_new(void);

/* keep_end - the instance ends; pieces that are still out may come back later. NULL is allowed. */
void keep_end(struct keep *keep);

/* keep_take - get a piece of at least `size` bytes.
 * returns  aligned as tensors have to be; goes back by keep_give; NULL when there is no memory */
void *keep_take(struct keep *keep, size_t size);

/* keep_give - a piece comes back, of which nothing is read any more. Any thread; the type is
 * TensorFlow's.
 * data  from keep_take
 * keep  the struct keep that it came from */
void keep_give(void *data, size_t size, void *keep);
