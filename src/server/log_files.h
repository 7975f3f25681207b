#pragma once
/* Where the log and the access log go. Belong to the process; main thread. */
#include "server/options/options.h"

/* log_files_apply - set the log up as the options say, and open its files.
 * o  borrowed until log_files_close
 * errors  those of file_append, with the option's name in front */
struct err *log_files_apply(const struct options *o);

/* log_files_any - whether --log-file or --access-log names a file. */
bool log_files_any(const struct options *o);

/* log_files_anew - open the files again, after they were renamed. */
void log_files_anew(void);

/* log_files_close - lines go to the standard streams again. */
void log_files_close(void);
