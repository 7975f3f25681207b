#pragma once
/* Tables of what is served, for the log. */

struct backend_registry;
struct repo;
struct server;
struct table_view;

/* start_table_text - a table of models, versions and states with their reasons, as the reference
 * prints after its start; the caller frees it (mem_free). */
char *start_table_text(struct table_view *view);

/* start_table_agents, start_table_backends, start_table_options - the tables of loaded
 * repository agents, of loaded backends, and of the server's options. */
char *start_table_agents(struct repo *repo);
char *start_table_backends(struct backend_registry *backends);
char *start_table_options(const struct server *s);

/* start_table_loading - "a:1, b:2", the versions that are loading now; NULL if there are none;
 * the caller frees it (mem_free). */
char *start_table_loading(struct table_view *view);
