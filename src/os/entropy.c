#include "os/entropy.h"

#include "base/check.h"

#include <errno.h>
#include <sys/random.h>

void entropy_bytes(void *ret, size_t n)
{
    ssize_t got;
    do
        got = getrandom(ret, n, 0);
    while (got < 0 && errno == EINTR);
    CHECK(got == (ssize_t)n); /* so few are given whole, or the system has none at all */
}
