#pragma once

#include "core.h"

/* Records on their way to the server, and what they point at: it is kept until it was read. */

/* send_record - send what was written.
 * out, lent  emptied
 * kept       what the record points at
 * wait       return when it was read
 * returns    false with an exception */
bool send_record(uint32_t kind, struct wire_out *out, struct lending *lent, PyObject *kept,
                 bool wait);

/* send_numbered - the same for a record that is answered by its number. When LINK_RELEASE comes to
 * it, send_release is to be called. */
bool send_numbered(uint32_t kind, uint64_t id, struct wire_out *out, struct lending *lent,
                   PyObject *kept);

/* send_drop - what was written is not sent. */
void send_drop(struct wire_out *out, struct lending *lent);

/* send_release - what the record with this number pointed at was read. */
void send_release(uint64_t id);

/* send_with - keep an object until the server has read the record. False: an exception is set. */
bool send_with(struct lending *lent, PyObject *kept);

/* send_room - make room where the server can read it, until it did.
 * returns  an offset in the shared memory; 0 with an exception */
uint64_t send_room(uint64_t count, struct lending *lent);

/* send_share - copy bytes to where the server can read them, for one that cannot read this
 * process.
 * returns  an offset in the shared memory; 0 with an exception */
uint64_t send_share(const void *bytes, uint64_t count, struct lending *lent);
