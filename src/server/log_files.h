#pragma once
/* The files of the log and the access log. They belong to the process; main thread. */
#include "server/options/options.h"

/* log_files_apply - set up the log as the options say, and open its files.
 * o  borrowed until log_files_close
 * errors  those of file_append, prefixed with the option's name */
struct err *log_files_apply(const struct options *o);

/* log_files_any - true if --log-file or --access-log names a file. */
bool log_files_any(const struct options *o);

/* log_files_anew - open the files, if there are any, again after they were renamed. */
void log_files_anew(void);

/* log_files_close - write lines to the standard streams again. */
void log_files_close(void);
