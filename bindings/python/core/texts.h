#pragma once
/* Tensors of type BYTES: each element is its length in four bytes, then its bytes. */
#include "core.h"

/* texts_pack - write the elements of an array of objects one after the other: bytes as they are,
 * others as str() says, in UTF-8.
 * items    count references, as numpy keeps them
 * ret_data, ret_bytes  as long as the object that is returned, a new reference
 * errors   NULL with an exception */
PyObject *texts_pack(void *items, uint64_t count, const void **ret_data, uint64_t *ret_bytes);

/* texts_unpack - a list of bytes.
 * errors  NULL with an exception: the data does not hold exactly `count` elements */
PyObject *texts_unpack(const void *data, uint64_t bytes, uint64_t count);
