#include "os/thread_seat.h"

#include <stddef.h>

struct thread_seat *thread_seat_free(struct thread_seat *seats, unsigned count)
{
    struct thread_seat *found = NULL;
    for (struct thread_seat *s = seats; s < seats + count; s++) {
        if (s->thread && s->ended) {
            thread_join(s->thread);
            s->thread = NULL;
        }
        if (!s->thread)
            found = s;
    }
    return found;
}

struct err *thread_seat_start(struct thread_seat *seat, void *owner, const char *name,
                              void (*fn)(void *seat))
{
    *seat = (struct thread_seat){.owner = owner};
    struct err *e = thread_start(name, fn, seat, &seat->thread);
    if (e)
        seat->thread = NULL;
    return e;
}

void thread_seat_join(struct thread_seat *seats, unsigned count)
{
    for (struct thread_seat *s = seats; s < seats + count; s++) {
        thread_join(s->thread);
        s->thread = NULL;
    }
}
