#pragma once

#include "../common/binput.h"
#include "instance.h"

/* Recordings of executions: they are made when an instance is, and an execution that one covers is
 * its launch. Inputs and outputs of recordings lie at addresses that stay. */

/* record_all - make the recordings that the configuration wants, for each profile. One that cannot
 * be made is logged with the reason, and left out.
 * errors  INVALID_ARG for specifications that cannot be; no memory */
TRITONSERVER_Error *record_all(struct instance *instance);

/* record_end - free them. */
void record_end(struct instance *instance);

/* record_input - put the contents of an input of the batch where a recording has them, among zeros
 * if it is larger. The copies are queued.
 * given     as the execution has it
 * recorded  as the recording has it */
TRITONSERVER_Error *record_input(struct instance *instance, struct brun *run, size_t tensor,
                                 const struct binput *input, const struct profile_given *given,
                                 const struct profile_given *recorded);
