#pragma once
/* What is served, for the log. */

struct table_view;

/* start_table_text - a table of models, versions and states with their reasons, as the reference prints one when it has started;
 * the caller's (mem_free). */
char *start_table_text(struct table_view *view);

/* start_table_loading - "a:1, b:2" of the versions that load at this moment; NULL when none does; the caller's (mem_free). */
char *start_table_loading(struct table_view *view);
