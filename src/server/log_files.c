#include "server/log_files.h"

#include "base/log.h"
#include "os/log_sink.h"
#include "os/files/file.h"
#include "os/sock.h"
#include "server/access_log.h"

#include <string.h>
#include <unistd.h>

static const struct options *options;
static int log_fd = -1;
static int access_fd = -1;

/* How long the last lines at the end of the process wait for a slow reader. */
#define END_WAIT_MS 500

static bool log_files_is_file(const char *path)
{
    return path && strcmp(path, "-") != 0;
}

bool log_files_any(const struct options *o)
{
    return log_files_is_file(o->log_file) || log_files_is_file(o->access_log);
}

struct err *log_files_apply(const struct options *o)
{
    options = o;
    struct err *e = NULL;
    if (o->log_file)
        e = err_wrap(file_append(o->log_file, &log_fd), "option --log-file");
    if (!e && log_files_is_file(o->access_log))
        e = err_wrap(file_append(o->access_log, &access_fd), "option --access-log");
    if (e) {
        log_files_close();
        return e;
    }
    log_set_writer(log_sink_put);
    log_sink_open(STDOUT_FILENO);
    log_sink_open(STDERR_FILENO);
    if (log_fd >= 0)
        log_sink_open(log_fd);
    if (access_fd >= 0)
        log_sink_open(access_fd);
    struct log_settings s = log_get();
    s.info = o->log_info;
    s.warning = o->log_warning;
    s.error = o->log_error;
    s.verbose = o->log_verbose;
    s.format = o->log_format;
    s.fd = log_fd >= 0 ? log_fd : LOG_FD_STANDARD;
    log_set(&s);
    for (size_t i = 0; i < o->log_component_count; i++)
        log_component_set(o->log_components[i].name, o->log_components[i].verbose);
    if (o->access_log)
        access_log_set(access_fd >= 0 ? access_fd : STDOUT_FILENO,
                       o->log_format == LOG_FORMAT_JSON);
    for (size_t i = 0; i < o->warning_count; i++)
        LOG_WARN("%s", o->warnings[i]);
    return NULL;
}

/* Opens a file again. Returns true if lines go to the right file. */
static bool anew(const char *path, int fd)
{
    if (fd < 0)
        return true;
    struct err *e = file_append_anew(path, fd);
    if (e)
        LOG_ERROR("%s; lines go on into the file that was open", err_message(e));
    else
        log_sink_open(fd);
    bool opened = !e;
    err_free(e);
    return opened;
}

void log_files_anew(void)
{
    if (!log_files_any(options))
        return;
    bool log = anew(options->log_file, log_fd);
    bool access = anew(options->access_log, access_fd);
    if (log && access)
        LOG_INFO("opened the log files anew");
}

static void close_file(int fd)
{
    if (fd < 0)
        return;
    log_sink_close(fd);
    sock_close(fd);
}

void log_files_close(void)
{
    log_sink_flush(END_WAIT_MS);
    struct log_settings s = log_get();
    s.fd = LOG_FD_STANDARD;
    log_set(&s);
    access_log_set(-1, false);
    close_file(log_fd);
    close_file(access_fd);
    log_fd = access_fd = -1;
}
