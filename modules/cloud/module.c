#include "module.h"

extern const struct cloud_abi nereid_cloud_v1;

__attribute__((visibility("default"))) const struct cloud_abi nereid_cloud_v1 = {
    .version = CLOUD_ABI_VERSION,
    .session_new = http_session_new,
    .session_free = http_session_free,
    .http = http_run,
    .digest_new = digest_new,
    .digest_add = digest_add,
    .digest_end = digest_end,
    .hmac_sha256 = digest_hmac_sha256,
    .sign_rs256 = digest_sign_rs256,
    .xml = xml_parse,
};
