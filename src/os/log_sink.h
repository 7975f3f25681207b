#pragma once
/* Where lines of the log and of the access log go. Whoever writes one never waits for whoever
 * reads them: lines to a pipe, a terminal or a socket that nobody empties are lost, and counted.
 * Files take everything. Any thread. */
#include <stddef.h>
#include <stdint.h>

/* So many descriptors at most are known; lines to others wait as write(2) does. */
#define LOG_SINKS 4u

/* log_sink_open - lines to this descriptor do not wait from here on. What it is shared with is
 * not changed, but for the size of a pipe, which becomes LOG_SINK_PIPE_BYTES where that may be:
 * that much a reader may be late. Again after it was put to another file.
 * fd  the caller's, open until log_sink_close */
#define LOG_SINK_PIPE_BYTES (1 << 20)
void log_sink_open(int fd);

/* log_sink_close - lines to it wait again. What is left is lost: log_sink_flush comes first. An
 * unknown one is fine. */
void log_sink_close(int fd);

/* log_sink_put - write a line, its line break included; whole, or not at all. Lines of one
 * thread keep their order. As soon as there is room behind lines that were lost, a line in the
 * form of the log says how many, once a second at most. */
void log_sink_put(int fd, const char *line, size_t len);

/* log_sink_flush - write what is still to be written: the rest of a line that was cut by a full
 * pipe, and how many were lost. Waits so long for room, at most. */
void log_sink_flush(int64_t wait_ms);
