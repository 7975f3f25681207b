#include "repo/places.h"

#include "base/mem.h"
#include "cloud/cloud.h"
#include "os/files/file.h"
#include "os/files/stamp.h"
#include "repo/repo_priv.h"
#include "repo/source.h"

#define BIT(i) (UINT64_C(1) << (i))

void places_open(struct repo *r)
{
    const struct repo_settings *s = &r->settings;
    r->clouds = mem_zalloc((s->path_count + 1) * sizeof(*r->clouds));
    for (size_t i = 0; i < s->path_count && !r->places_error; i++)
        if (cloud_is(s->paths[i]))
            r->places_error = cloud_open(s->paths[i], &r->clouds[i]);
}

struct err *places_error(const struct repo *r)
{
    return err_copy(r->places_error);
}

void places_cancel(struct repo *r)
{
    for (size_t i = 0; i < r->settings.path_count; i++)
        cloud_cancel(r->clouds[i]);
}

void places_close(struct repo *r)
{
    places_cancel(r);
    for (size_t i = 0; i < r->settings.path_count; i++)
        cloud_free(r->clouds[i]);
    mem_free(r->clouds);
    err_free(r->places_error);
}

void places_begin(struct repo *r, struct places_look *ret)
{
    *ret = (struct places_look){0};
    for (size_t i = 0; i < r->settings.path_count; i++)
        if (r->clouds[i])
            ret->listing[i] = cloud_look(r->clouds[i]);
}

bool places_is_cloud(const struct repo *r, size_t place)
{
    return r->clouds[place] != NULL;
}

struct err *places_names(struct repo *r, size_t place, const struct places_look *look,
                         time_ns until, struct local_names *ret)
{
    if (!r->clouds[place])
        return local_models(r->settings.paths[place], ret);
    struct err *e = cloud_wait(r->clouds[place], look->listing[place], until);
    if (!e)
        ret->count = cloud_names(r->clouds[place], &ret->names);
    return e;
}

uint64_t places_stamp(const struct repo *r, size_t place, const char *model)
{
    if (r->clouds[place])
        return cloud_stamp(r->clouds[place], model);
    uint64_t stamp = 0;
    char *dir = file_join(r->settings.paths[place], model);
    err_free(stamp_directory(dir, &stamp));
    mem_free(dir);
    return stamp;
}

/* The places that have the model according to what is known, and whether one of them is on disk. */
static uint64_t known_places(const struct repo *r, const char *model, uint64_t within,
                             bool *ret_on_disk)
{
    uint64_t found = 0;
    *ret_on_disk = false;
    for (size_t i = 0; i < r->settings.path_count && model[0] != '.'; i++) {
        if (!(within & BIT(i)))
            continue;
        if (r->clouds[i]) {
            found |= cloud_knows(r->clouds[i], model) ? BIT(i) : 0;
            continue;
        }
        char *dir = file_join(r->settings.paths[i], model);
        if (file_is_dir(dir)) {
            found |= BIT(i);
            *ret_on_disk = true;
        }
        mem_free(dir);
    }
    return found;
}

static struct err *copy_from(struct repo *r, size_t place, const char *model, bool known,
                             struct source **ret, bool *ret_changed)
{
    struct cloud_copy *copy;
    struct err *e = cloud_copy_new(r->clouds[place], model, known, &copy);
    *ret_changed = cloud_copy_changed(copy);
    if (e)
        cloud_copy_free(copy);
    else
        *ret = source_of_copy(copy);
    return e;
}

/* No place is known to have the model, so each store that may have it is asked. */
static struct err *ask_stores(struct repo *r, const char *model, uint64_t allowed,
                              uint64_t *ret_from, struct source **ret, bool *ret_changed)
{
    struct err *first = NULL;
    for (size_t i = 0; i < r->settings.path_count; i++) {
        if (!r->clouds[i] || !(allowed & BIT(i)) || model[0] == '.')
            continue;
        struct err *e = copy_from(r, i, model, false, ret, ret_changed);
        if (!e) {
            err_free(first);
            *ret_from = BIT(i);
            return NULL;
        }
        if (first || err_code(e) == STATUS_NOT_FOUND)
            err_free(e);
        else
            first = e;
    }
    return first ? first : err_new(STATUS_NOT_FOUND, "no repository has a directory of this name");
}

struct err *places_find(struct repo *r, const char *model, uint64_t within, uint64_t allowed,
                        bool known, uint64_t *ret_places, uint64_t *ret_from, struct source **ret,
                        bool *ret_changed)
{
    bool on_disk;
    uint64_t all = known_places(r, model, within, &on_disk);
    uint64_t found = all & allowed;
    *ret_places = all;
    *ret_changed = false;
    if (!found && !on_disk) {
        struct err *e = ask_stores(r, model, within & allowed & ~all, &found, ret, ret_changed);
        *ret_places |= found;
        *ret_from = found;
        return e;
    }
    if (!found)
        return err_new(STATUS_NOT_FOUND, "no repository has a directory of this name");
    if (found & (found - 1))
        return err_new(STATUS_INVALID_ARG, "model appears in two or more repositories");
    size_t place = (size_t)__builtin_ctzll(found);
    *ret_from = found;
    if (r->clouds[place])
        return copy_from(r, place, model, known, ret, ret_changed);
    *ret = source_new(file_join(r->settings.paths[place], model), false);
    return NULL;
}
