#pragma once
/* Command lines in YAML: the containers of Kubernetes (command, args), the services of Compose
 * (entrypoint, command). The library that reads YAML is opened on use. */
#include "base/err.h"

#include <stddef.h>

struct migrate_words;

/* migrate_yaml_fn - a command line was found.
 * words  borrowed for the call; may be none
 * line   where it begins in the file */
typedef void (*migrate_yaml_fn)(void *arg, const struct migrate_words *words, size_t line);

/* migrate_yaml_read - call `found` with the command line of each mapping, in the order of the
 * text. Aliases stand for what they name, once. Deep nesting is refused.
 * errors  UNSUPPORTED if the library is not there; INVALID_ARG with line and column */
struct err *migrate_yaml_read(const char *text, size_t len, migrate_yaml_fn found, void *arg);
