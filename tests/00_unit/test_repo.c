/* repo/repo: who waits for a look at the repositories while the server begins to stop. */
#include "repo/repo.h"

#include "os/mutex.h"
#include "serve/table.h"
#include "support/unit.h"

#include <stdlib.h>
#include <unistd.h>

struct waiting {
    struct mutex lock;
    struct mutex_cond changed;
    unsigned ended;
};

static void ended(void *owner, struct err *e)
{
    struct waiting *w = owner;
    mutex_lock(&w->lock);
    w->ended++;
    mutex_cond_broadcast(&w->changed);
    mutex_unlock(&w->lock);
    err_free(e);
}

/* Every look ends once the repository refuses, with an answer or an error; nobody waits until the
 * models are unloaded, which is after the clients are gone. */
static void looks_end_when_it_refuses(void **state)
{
    (void)state;
    char folder[] = "/tmp/repository-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *const paths[] = {folder};
    for (unsigned round = 0; round < 20; round++) {
        struct waiting w = {.lock = MUTEX_INIT(MUTEX_RANK_LEAF)};
        mutex_cond_init(&w.changed);
        struct serve_table *table = table_new();
        struct repo *r = repo_new(
            &(struct repo_settings){
                .paths = paths, .path_count = 1, .load_threads = 1, .mode = REPO_MODE_EXPLICIT},
            table);
        const unsigned asked = 3;
        for (unsigned i = 0; i < asked; i++)
            unit_succeeds(repo_rescan(r, ended, &w));
        repo_refuse(r);
        unit_fails(repo_rescan(r, ended, &w), STATUS_UNAVAILABLE, "exiting");
        time_ns until = clock_now_ns() + TIME_S(30);
        mutex_lock(&w.lock);
        while (w.ended < asked && mutex_cond_wait_until(&w.changed, &w.lock, until))
            ;
        assert_int_equal(w.ended, asked);
        mutex_unlock(&w.lock);
        repo_free(r);
        table_free(table);
        mutex_cond_fini(&w.changed);
        mutex_fini(&w.lock);
    }
    assert_int_equal(rmdir(folder), 0);
}

UNIT_MAIN(UNIT(looks_end_when_it_refuses))
