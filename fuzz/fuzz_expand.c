/* Compressed bytes: the output never exceeds the limit, and pieces of any size give the same
 * output; that is then compressed and expanded again. The first byte chooses the coding, the
 * second the limit and the size of a piece. */
#include "base/budget.h"
#include "base/check.h"
#include "codec/expand.h"
#include "codec/shrink.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum expand_state run(const struct expand_spec *spec, size_t slice, struct buf **ret,
                             size_t *ret_len)
{
    struct expand *x;
    CHECK(!expand_new(spec, &x));
    enum expand_state s;
    do
        s = expand_step(x, slice);
    while (s == EXPAND_MORE);
    *ret = NULL;
    *ret_len = 0;
    if (s == EXPAND_DONE || s == EXPAND_DAMAGED)
        expand_take(x, ret, ret_len);
    CHECK(*ret_len <= spec->limit);
    CHECK(!*ret || spec->before + *ret_len + spec->after <= (*ret)->size);
    expand_free(x);
    return s;
}

static void back_again(const struct buf *plain, size_t at, size_t len, size_t slice,
                       enum coding coding)
{
    struct iovec pieces[2] = {{plain->data + at, len / 2},
                              {plain->data + at + len / 2, len - len / 2}};
    struct shrink *x;
    CHECK(!shrink_new(pieces, 2, coding, 5, &x));
    for (bool done = false; !done;)
        CHECK(!shrink_step(x, slice, &done));
    struct buf *packed, *again;
    size_t packed_len, again_len;
    shrink_take(x, &packed, &packed_len);
    shrink_free(x);
    struct expand_spec spec = {
        .data = packed->data + 5, .len = packed_len, .coding = coding, .limit = len + 1};
    CHECK(run(&spec, slice, &again, &again_len) == EXPAND_DONE);
    CHECK(again_len == len && (!len || memcmp(again->data, plain->data + at, len) == 0));
    buf_unref(packed);
    buf_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct expand_spec spec = {
        .data = data + 2,
        .len = size - 2,
        .coding = data[0] & 16  ? CODING_ZSTD
                  : data[0] & 1 ? CODING_GZIP
                                : CODING_DEFLATE,
        .either = data[0] & 2,
        .limit = (size_t)1 << (data[1] % 22),
        .before = data[0] & 4 ? 60 : 0,
        .after = data[0] & 8 ? 8 : 0,
    };
    size_t slice = (size_t)1 << (data[1] / 22 + 6);
    struct buf *whole, *parts;
    size_t whole_len, parts_len;
    enum expand_state s = run(&spec, SIZE_MAX, &whole, &whole_len);
    enum expand_state in_parts = run(&spec, slice, &parts, &parts_len);
    /* libzstd takes some odd frames at once that it refuses in parts; and what is both damaged and
     * too long is refused for what is seen first. Then nothing can be compared. */
    bool same = spec.coding != CODING_ZSTD || (s == EXPAND_DONE && in_parts == EXPAND_DONE);
    CHECK(!same || in_parts == s);
    CHECK(!same || whole_len == parts_len);
    if (whole_len && same)
        CHECK(memcmp(whole->data + spec.before, parts->data + spec.before, whole_len) == 0);
    if (s == EXPAND_DONE && whole_len < 100000)
        back_again(whole, spec.before, whole_len, slice, spec.coding);
    buf_unref(whole);
    buf_unref(parts);
    CHECK(budget_in_use() == 0);
    return 0;
}
