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

static int environment_open_folder(const char *path, const struct stat *info, int kind,
                                   struct FTW *walk)
{
    (void)walk;
    if (kind == FTW_D || kind == FTW_DNR)
        chmod(path, (info->st_mode & 07777) | S_IRWXU); /* it may have been packed as read-only */
    return 0;
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
    nftw(folder, environment_open_folder, 16, FTW_PHYS);
    nftw(folder, environment_remove_file, 16, FTW_DEPTH | FTW_PHYS);
}

/* Opens and locks the file that says whose a base folder is. -1: another server has it. */
static int environments_lock_base(const char *base, int open_flags, int lock_flags)
{
    char path[64];
    snprintf(path, sizeof path, "%s/.nereid-lock", base);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | open_flags, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | lock_flags) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Whether the file names its folder: a copy of a base folder is somebody's. */
static bool environments_made_base(int fd, const char *base)
{
    char said[64] = "";
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
           pread(fd, said, sizeof said - 1, 0) >= 0 && strcmp(said, base) == 0;
}

/* Removes what servers left behind that were killed: the kernel has taken their locks. */
static void environments_sweep(void)
{
    glob_t found;
    if (glob(BASE "??????", GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *base = found.gl_pathv[i];
        int fd = environments_lock_base(base, 0, LOCK_NB);
        if (fd < 0)
            continue;
        if (environments_made_base(fd, base))
            environment_remove(base);
        close(fd);
    }
    globfree(&found);
}

static TRITONSERVER_Error *environments_make_base(struct environments *all)
{
    environments_sweep();
    memcpy(all->base, BASE "XXXXXX", sizeof BASE "XXXXXX");
    all->base_fd = mkdtemp(all->base) ? environments_lock_base(all->base, O_CREAT | O_EXCL, 0) : -1;
    /* What names its folder may be swept away by others; it is locked by now. */
    ssize_t length = (ssize_t)strlen(all->base);
    if (all->base_fd >= 0 && write(all->base_fd, all->base, (size_t)length) == length)
        return NULL;
    if (all->base_fd >= 0)
        close(all->base_fd);
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
