#include "messages.h"

struct wire message_part(struct wire message, uint32_t number)
{
    struct wire found = {0};
    struct wire_field field;
    while (wire_next(&message, &field))
        if (field.number == number)
            found = field.content;
    return found;
}

struct wire message_entry(struct wire message, uint32_t map, const char *key)
{
    struct wire_field field;
    while (wire_next(&message, &field))
        if (field.number == map && wire_is(message_part(field.content, MAP_KEY), key))
            return message_part(field.content, MAP_VALUE);
    return (struct wire){0};
}
