#pragma once
/* The platforms of configurations and their backends: one table for filling in, guessing and
 * checking. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_platform {
    const char *name; /* "" for a backend that has no platform */
    const char *backend;
    const char *filename; /* the definition's default name */
    uint32_t datatypes;   /* bit n = the framework supports datatype n */
    bool guessed;         /* a file with the default name tells the platform */
    char form;            /* the form of the definition: 'f' a file, 'd' a directory, 'e' either */
};

/* The platform of ensembles; it has no backend. */
#define CONFIG_PLATFORM_ENSEMBLE "ensemble"

/* config_platform_at - row i, in the order of guessing; NULL after the last. */
const struct config_platform *config_platform_at(size_t i);

/* config_platform_find - the row of a platform (not ""); NULL if there is none. */
const struct config_platform *config_platform_find(const char *name);

/* config_platform_of_backend - the first row of a backend; NULL if the backend is not in the
 * table. */
const struct config_platform *config_platform_of_backend(const char *backend);
