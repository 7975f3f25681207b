#include "environment.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/berr.h"
#include "process.h"

#define BASE "/tmp/nereid-python-env-"

struct environment {
    struct environment *next;
    char *path;
    struct stat info; /* of the path, when it was unpacked */
    unsigned users;
    char folder[64]; /* "" = a folder that the model brings */
    char *activate;
};

struct environments {
    pthread_mutex_t lock; /* guards what follows; held while an archive is unpacked */
    char base[32];        /* "" = none, otherwise a folder that is locked by base_fd */
    int base_fd;
    unsigned made;
    struct environment *first; /* those that are unpacked */
};

struct environments *environments_new(void)
{
    struct environments *all = calloc(1, sizeof *all);
    if (all)
        pthread_mutex_init(&all->lock, NULL);
    return all;
}

static int environment_remove_file(const char *path, const struct stat *info, int kind,
                                   struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    remove(path); /* the others go also where one cannot be removed */
    return 0;
}

static void environment_remove(const char *folder)
{
    nftw(folder, environment_remove_file, 16, FTW_DEPTH | FTW_PHYS);
}

/* Opens and locks a base folder. -1: another server has it. */
static int environments_lock_base(const char *base, int flags)
{
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | flags) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Removes what servers left behind that were killed: the kernel has taken their locks. */
static void environments_sweep(void)
{
    glob_t found;
    struct stat info;
    if (glob(BASE "??????", GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *base = found.gl_pathv[i];
        if (lstat(base, &info) != 0 || info.st_uid != geteuid())
            continue;
        int fd = environments_lock_base(base, LOCK_NB);
        if (fd < 0)
            continue;
        environment_remove(base);
        close(fd);
    }
    globfree(&found);
}

static TRITONSERVER_Error *environments_make_base(struct environments *all)
{
    struct stat info = {0};
    environments_sweep();
    /* Another server may sweep it away before it is locked. */
    for (int tries = 0; tries < 10 && info.st_nlink == 0; tries++) {
        memcpy(all->base, BASE "XXXXXX", sizeof BASE "XXXXXX");
        all->base_fd = mkdtemp(all->base) ? environments_lock_base(all->base, 0) : -1;
        if (all->base_fd < 0)
            break;
        if (fstat(all->base_fd, &info) != 0 || info.st_nlink == 0)
            close(all->base_fd);
    }
    if (info.st_nlink)
        return NULL;
    all->base[0] = '\0';
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "Failed to create temporary directory for Python environments.");
}

static void environments_drop_base(struct environments *all)
{
    environment_remove(all->base);
    close(all->base_fd);
    all->base[0] = '\0';
}

void environments_free(struct environments *all)
{
    if (!all)
        return;
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* Unpacks an archive into a folder of its own; what is left of one that cannot be is removed by the
 * caller. Lock held. */
static TRITONSERVER_Error *environment_unpack(struct environments *all, struct environment *one)
{
    TRITONSERVER_Error *err = all->base[0] ? NULL : environments_make_base(all);
    if (err)
        return err;
    snprintf(one->folder, sizeof one->folder, "%s/%u", all->base, all->made++);
    if (mkdir(one->folder, 0755) != 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "Failed to create environment directory for '%s'.", one->folder);
    const char *argv[] = {"tar", "-xzf", one->path, "-C", one->folder, "--no-same-owner", NULL};
    err = process_run(argv);
    if (!err)
        return NULL;
    TRITONSERVER_Error *told =
        berr_new(TRITONSERVER_ERROR_INTERNAL, "cannot unpack the Python environment '%s': %s",
                 one->path, TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
    return told;
}

static bool environment_is_of(const struct environment *one, const char *path,
                              const struct stat *info)
{
    return strcmp(one->path, path) == 0 && one->info.st_dev == info->st_dev &&
           one->info.st_ino == info->st_ino && one->info.st_size == info->st_size &&
           one->info.st_mtim.tv_sec == info->st_mtim.tv_sec &&
           one->info.st_mtim.tv_nsec == info->st_mtim.tv_nsec;
}

static void environment_free(struct environment *one)
{
    free(one->path);
    free(one->activate);
    free(one);
}

/* Deletes what was unpacked, and the base folder with the last. Lock held. */
static void environment_forget(struct environments *all, struct environment *one)
{
    if (one->folder[0])
        environment_remove(one->folder);
    if (!all->first && all->base[0])
        environments_drop_base(all);
    environment_free(one);
}

/* Lock held. */
static TRITONSERVER_Error *environment_new(struct environments *all, const char *path,
                                           const struct stat *info, struct environment **ret)
{
    struct environment *one = calloc(1, sizeof *one);
    if (!one)
        return berr_no_memory();
    one->info = *info;
    one->users = 1;
    one->path = strdup(path);
    bool packed = !S_ISDIR(info->st_mode);
    TRITONSERVER_Error *err = !one->path ? berr_no_memory()
                              : packed   ? environment_unpack(all, one)
                                         : NULL;
    if (!err && asprintf(&one->activate, "%s/bin/activate", packed ? one->folder : path) < 0) {
        one->activate = NULL;
        err = berr_no_memory();
    }
    if (!err && access(one->activate, R_OK) != 0)
        err =
            berr_new(TRITONSERVER_ERROR_INTERNAL,
                     "Path %s does not exist. The Python environment should contain an 'activate' "
                     "script.",
                     one->activate);
    if (err) {
        environment_forget(all, one);
        return err;
    }
    if (packed) {
        one->next = all->first;
        all->first = one;
    }
    *ret = one;
    return NULL;
}

TRITONSERVER_Error *environments_take(struct environments *all, const char *path,
                                      struct environment **ret)
{
    char whole[PATH_MAX];
    struct stat info;
    if (!realpath(path, whole) || stat(whole, &info) != 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "Failed to get the canonical path for %s.",
                        path);
    TRITONSERVER_Error *err = NULL;
    pthread_mutex_lock(&all->lock);
    struct environment *known = all->first;
    while (known && !environment_is_of(known, whole, &info))
        known = known->next;
    if (known)
        known->users++;
    else
        err = environment_new(all, whole, &info, &known);
    pthread_mutex_unlock(&all->lock);
    if (!err)
        *ret = known;
    return err;
}

void environments_give(struct environments *all, struct environment *one)
{
    if (!one)
        return;
    pthread_mutex_lock(&all->lock);
    if (--one->users == 0) {
        for (struct environment **at = &all->first; *at; at = &(*at)->next)
            if (*at == one) {
                *at = one->next;
                break;
            }
        environment_forget(all, one);
    }
    pthread_mutex_unlock(&all->lock);
}

const char *environment_activate(const struct environment *one)
{
    return one->activate;
}
