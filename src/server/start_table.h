#pragma once
/* What is served, for the log. */

struct backend_registry;
struct repo;
struct server;
struct table_view;

/* start_table_text - a table of models, versions and states with their reasons, as the reference
 * prints one when it has started; the caller's (mem_free). */
char *start_table_text(struct table_view *view);

/* start_table_agents, start_table_backends, start_table_options - those of the repository agents
 * and of the backends that are loaded, and of what the server was started with. */
char *start_table_agents(struct repo *repo);
char *start_table_backends(struct backend_registry *backends);
char *start_table_options(const struct server *s);

/* start_table_loading - "a:1, b:2" of the versions that load at this moment; NULL when none
 * does; the caller's (mem_free). */
char *start_table_loading(struct table_view *view);
