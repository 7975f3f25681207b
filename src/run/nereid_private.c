#include "nereid_private.h"

#include "run/hosted.h"
#include "run/run.h"
#include "os/process/crash.h"
#include "os/process/environment.h"
#include "os/shm_guard.h"
#include "os/signal_stack.h"
#include "isolate/child/isolate_child.h"
#include "base/build_version.h"

static void tell_crash(int signal_number)
{
    crash_line(BUILD_VERSION, signal_number);
    isolate_child_crashed();
}

static int run_program(int argc, char **argv)
{
    signal_stack_begin(); /* until the process ends */
    return run_server(argc, argv);
}

static struct TRITONSERVER_Error *host_open(int argc, char *const *argv,
                                            const struct hosted_more *more, struct hosted **ret)
{
    return (struct TRITONSERVER_Error *)hosted_open(argc, argv, more, ret);
}

static struct TRITONSERVER_Server *host_server(const struct hosted *h)
{
    return (struct TRITONSERVER_Server *)hosted_server(h);
}

static struct TRITONSERVER_Error *host_stop(struct hosted *h)
{
    return (struct TRITONSERVER_Error *)hosted_stop(h);
}

const struct nereid_private nereid_private_v1 = {
    .run = run_program,
    .crash_line = tell_crash,
    .memory_fault = shm_guard_fault,
    .environment_set = environment_set,
    .environment_put = environment_put,
    .environment_unset = environment_unset,
    .environment_clear = environment_clear,
    .host_open = host_open,
    .host_server = host_server,
    .host_ports = hosted_ports,
    .host_stop = host_stop,
    .host_free = hosted_free,
};
