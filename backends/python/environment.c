#include "environment.h"

#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/berr.h"
#include "process.h"

struct unpacked {
    struct unpacked *next;
    char *archive;
    struct timespec changed;
    char folder[64];
};

struct environments {
    pthread_mutex_t lock; /* guards what follows; held while an archive is unpacked */
    char base[32];        /* "" = nothing was unpacked yet */
    unsigned count;
    struct unpacked *first;
};

struct environments *environments_new(void)
{
    struct environments *all = calloc(1, sizeof *all);
    if (all)
        pthread_mutex_init(&all->lock, NULL);
    return all;
}

static int environment_remove(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    remove(path); /* the others go also where one cannot be removed */
    return 0;
}

static void environment_remove_all(const char *folder)
{
    nftw(folder, environment_remove, 16, FTW_DEPTH | FTW_PHYS);
}

void environments_free(struct environments *all)
{
    if (!all)
        return;
    if (all->base[0])
        environment_remove_all(all->base);
    while (all->first) {
        struct unpacked *next = all->first->next;
        free(all->first->archive);
        free(all->first);
        all->first = next;
    }
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* Unpacks an archive into a folder of its own; what is left of one that cannot be is removed by the
 * caller. */
static TRITONSERVER_Error *environment_unpack(struct environments *all, struct unpacked *made)
{
    if (!all->base[0]) {
        snprintf(all->base, sizeof all->base, "/tmp/python_env_XXXXXX");
        if (!mkdtemp(all->base)) {
            all->base[0] = '\0';
            return berr_new(TRITONSERVER_ERROR_INTERNAL,
                            "Failed to create temporary directory for Python environments.");
        }
    }
    snprintf(made->folder, sizeof made->folder, "%s/%u", all->base, all->count++);
    if (mkdir(made->folder, 0755) != 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "Failed to create environment directory for '%s'.", made->folder);
    const char *argv[] = {"tar", "-xzf", made->archive, "-C", made->folder, "--no-same-owner",
                          NULL};
    TRITONSERVER_Error *err = process_run(argv);
    if (!err)
        return NULL;
    TRITONSERVER_Error *told =
        berr_new(TRITONSERVER_ERROR_INTERNAL, "cannot unpack the Python environment '%s': %s",
                 made->archive, TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
    return told;
}

/* Removes what is left of an archive that cannot be unpacked. */
static void environment_forget(struct environments *all, struct unpacked *made)
{
    if (made->folder[0])
        environment_remove_all(made->folder);
    if (!all->first && rmdir(all->base) == 0)
        all->base[0] = '\0'; /* nothing else was unpacked */
    free(made->archive);
    free(made);
}

static const struct unpacked *environment_known(const struct environments *all, const char *archive,
                                                const struct stat *info)
{
    const struct unpacked *each = all->first;
    while (each &&
           (strcmp(each->archive, archive) != 0 || each->changed.tv_sec != info->st_mtim.tv_sec ||
            each->changed.tv_nsec != info->st_mtim.tv_nsec))
        each = each->next;
    return each;
}

/* The folder of an archive that was unpacked, now or before; under the lock. */
static TRITONSERVER_Error *environment_folder(struct environments *all, const char *archive,
                                              const struct stat *info, const char **ret_folder)
{
    const struct unpacked *known = environment_known(all, archive, info);
    if (known) {
        *ret_folder = known->folder;
        return NULL;
    }
    struct unpacked *made = calloc(1, sizeof *made);
    if (made)
        made->archive = strdup(archive);
    if (!made || !made->archive) {
        free(made);
        return berr_no_memory();
    }
    made->changed = info->st_mtim;
    TRITONSERVER_Error *err = environment_unpack(all, made);
    if (err) {
        environment_forget(all, made);
        return err;
    }
    made->next = all->first;
    all->first = made;
    *ret_folder = made->folder;
    return NULL;
}

TRITONSERVER_Error *environments_find(struct environments *all, const char *path,
                                      char **ret_activate)
{
    char whole[PATH_MAX];
    struct stat info;
    if (!realpath(path, whole) || stat(whole, &info) != 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "Failed to get the canonical path for %s.",
                        path);
    const char *folder = whole;
    TRITONSERVER_Error *err = NULL;
    pthread_mutex_lock(&all->lock);
    if (!S_ISDIR(info.st_mode))
        err = environment_folder(all, whole, &info, &folder);
    char *activate = NULL;
    if (!err && asprintf(&activate, "%s/bin/activate", folder) < 0)
        err = berr_no_memory();
    pthread_mutex_unlock(&all->lock);
    if (!err && access(activate, R_OK) != 0) {
        err =
            berr_new(TRITONSERVER_ERROR_INTERNAL,
                     "Path %s does not exist. The Python environment should contain an 'activate' "
                     "script.",
                     activate);
        free(activate);
    }
    if (!err)
        *ret_activate = activate;
    return err;
}
