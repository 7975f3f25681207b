#pragma once
/* The platforms of a configuration, and the backends behind them: one table for filling in,
 * guessing and checking. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_platform {
    const char *name; /* "" for a backend that has no platform */
    const char *backend;
    const char *filename; /* the definition's default name */
    uint32_t datatypes;   /* bit n = the framework has datatype n */
    bool guessed;         /* a definition of the default name tells the platform */
    char form;            /* what it must be then: 'f' a file, 'd' a directory, 'e' either */
};

/* The platform of ensembles, which has no backend. */
#define CONFIG_PLATFORM_ENSEMBLE "ensemble"

/* config_platform_at - the rows in the order in which they are guessed; NULL past the end. */
const struct config_platform *config_platform_at(size_t i);

/* config_platform_find - the row of a platform's name (not ""); NULL when there is none. */
const struct config_platform *config_platform_find(const char *name);

/* config_platform_of_backend - the first row of a backend; NULL for a backend that is not in the
 * table. */
const struct config_platform *config_platform_of_backend(const char *backend);
