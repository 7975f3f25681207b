#pragma once

/* Lines of a backend in the server's log. Callable from any thread. */

/* blog_info - log a line that tells of something ordinary.
 * fmt  printf format; UTF-8, of any length */
void blog_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* blog_warn - log a warning.
 * fmt  printf format; UTF-8, of any length */
void blog_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
