#include "nereid_private.h"

#include "net/run.h"

const struct nereid_private nereid_private_v1 = {
    .run = run_server,
};
