#include "os/process/standard.h"

#include <fcntl.h>
#include <unistd.h>

bool standard_fill(void)
{
    bool output = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
    int fd;
    do {
        fd = open("/dev/null", O_RDWR); /* the lowest number that is free */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    return output;
}
