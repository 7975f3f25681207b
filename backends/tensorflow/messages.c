#include "messages.h"

#include <limits.h>

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

enum { MAX_PARTS = 6 };

/* What a message is made of. Fields that are not named here only have to be fields. */
struct form {
    uint32_t texts; /* a bit for each number */
    struct {
        uint32_t number;
        const struct form *form;
    } parts[MAX_PARTS];
};

#define TEXT(number) (UINT32_C(1) << (number))

static const struct form named_dim = {.texts = TEXT(DIM_NAME)};
static const struct form tensor_shape = {.parts = {{SHAPE_DIM, &named_dim}}};
static const struct form tensor_info = {.texts = TEXT(TENSOR_NAME),
                                        .parts = {{TENSOR_SHAPE, &tensor_shape}}};
static const struct form tensor_entry = {.texts = TEXT(MAP_KEY),
                                         .parts = {{MAP_VALUE, &tensor_info}}};
static const struct form one_signature = {
    .parts = {{SIGNATURE_INPUTS, &tensor_entry}, {SIGNATURE_OUTPUTS, &tensor_entry}}};
static const struct form signature_entry = {.texts = TEXT(MAP_KEY),
                                            .parts = {{MAP_VALUE, &one_signature}}};
static const struct form list_of_nodes = {.texts = TEXT(LIST_VALUE)};
static const struct form any_message = {0};
static const struct form list_of_any = {.parts = {{LIST_VALUE, &any_message}}};
static const struct form one_collection = {
    .parts = {{COLLECTION_NODES, &list_of_nodes}, {COLLECTION_ANY, &list_of_any}}};
static const struct form collection_entry = {.texts = TEXT(MAP_KEY),
                                             .parts = {{MAP_VALUE, &one_collection}}};
static const struct form asset_file = {.texts = TEXT(ASSET_FILE),
                                       .parts = {{ASSET_TENSOR, &tensor_info}}};
static const struct form saver_form = {.texts = TEXT(SAVER_FILE) | TEXT(SAVER_RESTORE)};
static const struct form meta_info = {.texts = TEXT(INFO_TAGS)};
static const struct form meta_form = {.parts = {{META_INFO, &meta_info},
                                                {META_SAVER, &saver_form},
                                                {META_COLLECTIONS, &collection_entry},
                                                {META_SIGNATURES, &signature_entry},
                                                {META_ASSETS, &asset_file}}};
static const struct form saved_form = {.parts = {{SAVED_GRAPHS, &meta_form}}};

static bool is_utf8(struct wire text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000}; /* with so many bytes more */
    while (text.at < text.end) {
        unsigned char first = *text.at++;
        unsigned more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        uint32_t code = first & (0x7Fu >> more);
        if ((first >= 0x80 && first < 0xC0) || wire_size(text) < more)
            return false;
        for (unsigned i = 0; i < more; i++, text.at++) {
            if ((*text.at & 0xC0) != 0x80)
                return false;
            code = code << 6 | (*text.at & 0x3F);
        }
        if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return false;
    }
    return true;
}

static bool has_form(struct wire message, const struct form *form)
{
    struct wire_field field;
    while (wire_next(&message, &field)) {
        if (field.number < 32 && (form->texts & TEXT(field.number)) && !is_utf8(field.content))
            return false;
        for (size_t i = 0; i < MAX_PARTS && form->parts[i].form; i++)
            if (form->parts[i].number == field.number &&
                !has_form(field.content, form->parts[i].form))
                return false;
    }
    return !message.broken;
}

/* No protocol buffer is larger than 2 GiB. */
bool message_is_saved(struct wire message)
{
    return wire_size(message) <= INT_MAX && has_form(message, &saved_form);
}

bool message_is_asset(struct wire message)
{
    return has_form(message, &asset_file);
}
