#pragma once
/* Writes lines of the log and of the access log. A writer never waits for a reader: if nobody
 * reads a pipe, terminal or socket, lines are lost and counted. Files take all lines. Any
 * thread. */
#include <stddef.h>
#include <stdint.h>

/* The most descriptors; lines to other descriptors wait as write(2) does. */
#define LOG_SINKS 4u

/* log_sink_open - lines to this descriptor do not wait from here on. The open file is not
 * changed for others who share it, except that a pipe is enlarged to LOG_SINK_PIPE_BYTES if
 * allowed: a reader may be late by that much. Call it again after the descriptor was replaced by
 * another file.
 * fd  owned by the caller, who keeps it open until log_sink_close */
#define LOG_SINK_PIPE_BYTES (1 << 20)
void log_sink_open(int fd);

/* log_sink_close - lines to it wait again. Unwritten lines are lost, so call log_sink_flush
 * first. An unknown descriptor is fine. */
void log_sink_close(int fd);

/* log_sink_put - write a line with its line break, as a whole or not at all. Lines of one thread
 * keep their order. When there is room again after lost lines, a line in the log's format tells
 * how many were lost, at most once per second. */
void log_sink_put(int fd, const char *line, size_t len);

/* log_sink_flush - write what is left: the rest of a line that a full pipe cut, and how many
 * lines were lost. Waits at most wait_ms for room. */
void log_sink_flush(int64_t wait_ms);
