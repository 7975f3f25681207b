#include "os/process/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* The manager's socket: a path, or an abstract name that begins with '@'. */
#define NOTIFY_VARIABLE "NOTIFY_SOCKET"

void notify_manager(const char *state, unsigned seconds)
{
    const char *name = getenv(NOTIFY_VARIABLE);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = name ? strlen(name) : 0;
    if (len < 2 || len >= sizeof(to.sun_path) || (*name != '/' && *name != '@'))
        return;
    memcpy(to.sun_path, name, len);
    if (*name == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    const struct timeval most = {.tv_sec = seconds};
    int flags = MSG_NOSIGNAL | (seconds ? 0 : MSG_DONTWAIT);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    (void)sendto(fd, state, strlen(state), flags, (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}
