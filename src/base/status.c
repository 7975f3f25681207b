#include "base/status.h"

struct row {
    const char *text;
    int http;
    int grpc;
};

static const struct row rows[] = {
#define STATUS(name, abi, http_status, grpc_code, words) \
    [abi] = {.text = (words), .http = (http_status), .grpc = (grpc_code)},
#include "base/status.def"
#undef STATUS
};

static const struct row *status_row(enum status code)
{
    unsigned i = (unsigned)code;
    return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : &rows[STATUS_UNKNOWN];
}

const char *status_text(enum status code)
{
    return status_row(code)->text;
}

int status_http(enum status code)
{
    return status_row(code)->http;
}

int status_grpc(enum status code)
{
    return status_row(code)->grpc;
}
