/* repo/override: the parameters of a load. */
#include "repo/override.h"

#include "base/mem.h"
#include "os/files/file.h"
#include "repo/repo.h"
#include "repo/source.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define CONFIG                                            \
    {                                                     \
        .kind = REPO_PARAM_CONFIG, .data = "{}", .len = 2 \
    }

/* RX-36, RX-39. */
static void is_checked(void **state)
{
    (void)state;
    struct repo_param p[] = {
        CONFIG, {REPO_PARAM_FILE, "1/a", "x", 1}, {REPO_PARAM_FILE_BASE64, "1/b", "eA==", 4}};
    unit_succeeds(override_check(NULL, 0));
    unit_succeeds(override_check(p, 1));
    unit_succeeds(override_check(p, 3));
    assert_ptr_equal(override_config(p, 3), &p[0]);
    assert_null(override_config(p + 1, 2));
    unit_fails(override_check(p + 1, 2), STATUS_INVALID_ARG, "'config' must be specified");
    p[2].name = "1/a";
    unit_fails(override_check(p, 3), STATUS_INVALID_ARG, "twice");
    p[2].name = "1/../../x";
    unit_fails(override_check(p, 3), STATUS_INVALID_ARG, "must stay within the model directory");
    char long_name[2 + 256 + 1] = "1/";
    memset(long_name + 2, 'A', 256);
    p[2].name = long_name;
    unit_fails(override_check(p, 3), STATUS_INVALID_ARG, "in 32 parts of 255 bytes at most");
    long_name[2 + 255] = '\0';
    unit_succeeds(override_check(p, 3));
    struct repo_param two[] = {CONFIG, CONFIG};
    unit_fails(override_check(two, 2), STATUS_INVALID_ARG, "twice");
}

#define MANY 9999

/* As many as there may be, in no order; the last of a name that was there is found among them. */
static void many_are_checked(void **state)
{
    (void)state;
    struct repo_param *p = mem_zalloc((MANY + 2) * sizeof(*p));
    char(*names)[16] = mem_zalloc((MANY + 2) * sizeof(*names));
    for (unsigned i = 0; i < MANY + 1; i++) {
        snprintf(names[i], sizeof(names[i]), "1/f%u", (i * 7919u) % (MANY + 1));
        p[i + 1] = (struct repo_param){REPO_PARAM_FILE, names[i], "x", 1};
    }
    p[0] = (struct repo_param)CONFIG;
    unit_succeeds(override_check(p, MANY + 1));
    unit_fails(override_check(p, MANY + 2), STATUS_INVALID_ARG, "at most 10000");
    p[MANY].name = names[1234];
    unit_fails(override_check(p, MANY + 1), STATUS_INVALID_ARG, "is given twice");
    mem_free(names);
    mem_free(p);
}

static void long_names_are_counted(void **state)
{
    (void)state;
    struct repo_param p[400] = {CONFIG};
    char(*names)[4200] = mem_zalloc(400 * sizeof(*names));
    for (unsigned i = 1; i < 400; i++) {
        size_t len = (size_t)snprintf(names[i], sizeof(names[i]), "%u", i);
        for (unsigned k = 0; k < 20; k++)
            len += (size_t)snprintf(names[i] + len, sizeof(names[i]) - len, "/%0200u", k);
        p[i] = (struct repo_param){REPO_PARAM_FILE, names[i], "x", 1};
    }
    unit_succeeds(override_check(p, 200));
    unit_fails(override_check(p, 400), STATUS_INVALID_ARG, "1048576 bytes together");
    mem_free(names);
}

/* RX-33, RX-37, RX-71. */
static void is_written_and_goes_with_the_last_reference(void **state)
{
    (void)state;
    struct repo_param p[] = {
        CONFIG, {REPO_PARAM_FILE, "1/a", "raw", 3}, {REPO_PARAM_FILE_BASE64, "1/b/c", "Zm9v", 4}};
    struct source *made = NULL;
    unit_succeeds(override_write(p, 1, false, &made));
    assert_null(made);
    unit_succeeds(override_write(p, 3, false, &made));
    char *path = file_join(made->dir, "1/b/c");
    char *text;
    size_t len;
    unit_succeeds(file_read(path, 10, &text, &len));
    assert_string_equal(text, "foo");
    mem_free(text);
    struct source *second = source_ref(made);
    source_unref(made);
    assert_true(file_exists(path));
    source_unref(second);
    assert_false(file_exists(path));
    mem_free(path);
}

/* RX-38. */
static void what_cannot_be_written_leaves_nothing(void **state)
{
    (void)state;
    struct repo_param p[] = {CONFIG,
                             {REPO_PARAM_FILE, "1/a", "raw", 3},
                             {REPO_PARAM_FILE_BASE64, "1/b", "no base64", 9}};
    struct source *made = NULL;
    unit_fails(override_write(p, 3, false, &made), STATUS_INVALID_ARG, "file:1/b");
    p[2] = (struct repo_param){REPO_PARAM_FILE, "1/a/below", "x", 1};
    unit_fails(override_write(p, 3, false, &made), STATUS_INVALID_ARG, "file:1/a/below");
    assert_null(made);
}

/* By what is in it: a loader does not look at names. */
static void libraries_are_refused(void **state)
{
    (void)state;
    static const char elf[] = "\x7f"
                              "ELF and so on";
    struct repo_param raw[] = {CONFIG, {REPO_PARAM_FILE, "1/weights.bin", elf, sizeof(elf)}};
    struct repo_param coded[] = {CONFIG, {REPO_PARAM_FILE_BASE64, "1/libx.so", "f0VMRgI=", 8}};
    struct repo_param other[] = {CONFIG,
                                 {REPO_PARAM_FILE, "1/libx.so",
                                  "\x7f"
                                  "EL",
                                  3}};
    struct source *made = NULL;
    unit_fails(override_write(raw, 2, false, &made), STATUS_INVALID_ARG, "file:1/weights.bin");
    unit_fails(override_write(coded, 2, false, &made), STATUS_INVALID_ARG,
               "--allow-library-upload");
    assert_null(made);
    unit_succeeds(override_write(raw, 2, true, &made));
    source_unref(made);
    unit_succeeds(override_write(coded, 2, true, &made));
    source_unref(made);
    unit_succeeds(override_write(other, 2, false, &made));
    source_unref(made);
}

UNIT_MAIN(UNIT(is_checked), UNIT(many_are_checked), UNIT(long_names_are_counted),
          UNIT(is_written_and_goes_with_the_last_reference),
          UNIT(what_cannot_be_written_leaves_nothing), UNIT(libraries_are_refused))
