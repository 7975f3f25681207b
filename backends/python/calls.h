#pragma once

/* What a stub asks of the server by LINK_CALL: an operation, a count, and as many values;
 * LINK_REPLY
 * brings one value. An error is a text that the model sees as an exception.
 *
 * LOG               level, file, line, message; no reply
 * FAMILY_NEW        name, description, kind: a number
 * FAMILY_DELETE     family; no reply
 * METRIC_NEW        family, count of labels, names and values, bounds: a number
 * METRIC_DELETE     metric; no reply
 * METRIC_INCREMENT, METRIC_SET, METRIC_OBSERVE   metric, value: 0
 * METRIC_VALUE      metric: a double
 * LOAD              model, configuration, then paths and contents: 0
 * UNLOAD            model, its dependents as well: 0
 * READY             model, version: 0 or 1
 * CANCELLED         request: 0 or 1
 * CANCEL            id of a nested request; no reply
 * ROOM              bytes: an offset in the shared memory */
#define CALLS(X)        \
    X(LOG)              \
    X(FAMILY_NEW)       \
    X(FAMILY_DELETE)    \
    X(METRIC_NEW)       \
    X(METRIC_DELETE)    \
    X(METRIC_INCREMENT) \
    X(METRIC_SET)       \
    X(METRIC_OBSERVE)   \
    X(METRIC_VALUE)     \
    X(LOAD)             \
    X(UNLOAD)           \
    X(READY)            \
    X(CANCELLED)        \
    X(CANCEL)           \
    X(ROOM)

enum call {
#define CALL(name) CALL_##name,
    CALLS(CALL)
#undef CALL
        CALL_COUNT
};

/* Kinds of values. */
enum call_kind { CALL_INT, CALL_DOUBLE, CALL_TEXT, CALL_ERROR };
