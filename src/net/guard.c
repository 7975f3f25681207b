#include "net/guard.h"

#include <string.h>

bool guard_allows(const struct options_restrictions *r, enum options_category category,
                  const char *value, size_t len)
{
    if (!guard_restricted(r, category))
        return true;
    const char *want = r->of[category].value;
    size_t want_len = strlen(want);
    unsigned char differs = !value || len != want_len;
    /* Compares every byte, so that the time does not depend on the first difference. */
    for (size_t i = 0; value && i < len; i++)
        differs |= (unsigned char)(value[i] ^ want[i < want_len ? i : want_len]);
    return !differs;
}
