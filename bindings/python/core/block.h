#pragma once
/* Memory of outputs: counted, so that arrays keep it when the response and the server are gone. */
#include "triton/core/tritonserver.h"

struct block;

struct block *block_ref(struct block *b);
void block_unref(struct block *b); /* NULL is fine */

/* block_allocator - what gives responses their memory: the buffer_userp of an output is a block.
 * One for the process. */
TRITONSERVER_Error *block_allocator(TRITONSERVER_ResponseAllocator **ret);
