#pragma once
/* Where a model was loaded from; counted, since versions that are being retired still read from it. */
#include <stdatomic.h>
#include <stdbool.h>

struct source {
    atomic_uint refs; /* the last unref acquires what the others released */
    char *dir;
    bool temporary; /* made for an override: removed with the last reference */
};

/* source_new - one reference; takes dir over. */
struct source *source_new(char *dir, bool temporary);
struct source *source_ref(struct source *s);

/* source_unref - NULL is fine. May remove files. */
void source_unref(struct source *s);
