#include "module.h"

extern const struct tls_abi nereid_tls_v1;

__attribute__((visibility("default"))) const struct tls_abi nereid_tls_v1 = {
    .version = TLS_ABI_VERSION,
    .context_new = context_new,
    .context_free = context_free,
    .session_new = session_new,
    .session_free = session_free,
    .read = session_read,
    .write = session_write,
    .goodbye = session_goodbye,
};
