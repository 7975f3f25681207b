/* XML over expat. Documents of stores have no document type: one that has is refused, and with it every entity of its own. */
#include "module.h"

#include <expat.h>
#include <limits.h>

#define MAX_DEPTH 32u

struct walk {
    const struct cloud_abi_xml *handler;
    XML_Parser parser;
    unsigned depth;
};

static void opened(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    (void)attributes;
    struct walk *w = arg;
    if (++w->depth > MAX_DEPTH)
        XML_StopParser(w->parser, XML_FALSE);
    else
        w->handler->open(w->handler->owner, name);
}

static void closed(void *arg, const XML_Char *name)
{
    struct walk *w = arg;
    w->depth--;
    w->handler->close(w->handler->owner, name);
}

static void wrote(void *arg, const XML_Char *text, int len)
{
    struct walk *w = arg;
    w->handler->text(w->handler->owner, text, (size_t)len);
}

static void doctype(void *arg, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                    int has_internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_internal;
    struct walk *w = arg;
    XML_StopParser(w->parser, XML_FALSE);
}

bool xml_parse(const char *text, size_t len, const struct cloud_abi_xml *handler)
{
    struct walk w = {.handler = handler, .parser = XML_ParserCreate(NULL)};
    if (!w.parser || len > INT_MAX) {
        XML_ParserFree(w.parser);
        return false;
    }
    XML_SetUserData(w.parser, &w);
    XML_SetElementHandler(w.parser, opened, closed);
    XML_SetCharacterDataHandler(w.parser, wrote);
    XML_SetStartDoctypeDeclHandler(w.parser, doctype);
    bool ok = XML_Parse(w.parser, text, (int)len, 1) == XML_STATUS_OK;
    XML_ParserFree(w.parser);
    return ok;
}
