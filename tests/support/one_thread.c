/* Linked into each test that tests/threads.list does not name: none of them may start a thread,
 * because the thread sanitizer is not asked about them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *arg)
{
    (void)thread, (void)attributes, (void)start, (void)arg;
    fputs("this test starts a thread: name it in tests/threads.list\n", stderr);
    abort();
}
