#include "send.h"

#include <stdlib.h>
#include <string.h>

#include "ask.h"

void send_release(uint64_t id)
{
    PyObject *number = PyLong_FromUnsignedLongLong(id);
    if (!number || PyDict_DelItem(core.sent, number) != 0)
        PyErr_Clear();
    Py_XDECREF(number);
}

static void buffer_free(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

/* Keeps what a record points at, and the record itself, until send_release. `out` is emptied. */
static bool send_keep(uint64_t id, PyObject *kept, struct wire_out *out, PyObject *places)
{
    PyObject *buffer = Py_None;
    Py_INCREF(buffer);
    if (out->at) {
        Py_DECREF(buffer);
        buffer = PyCapsule_New(out->at, NULL, buffer_free);
        if (buffer)
            *out = (struct wire_out){0};
    }
    PyObject *number = PyLong_FromUnsignedLongLong(id);
    PyObject *all = buffer && number
                        ? PyTuple_Pack(3, kept ? kept : Py_None, buffer, places ? places : Py_None)
                        : NULL;
    bool well = all && PyDict_SetItem(core.sent, number, all) == 0;
    Py_XDECREF(all);
    Py_XDECREF(number);
    Py_XDECREF(buffer);
    return well;
}

static bool send_bytes(uint32_t kind, uint64_t id, const void *bytes, size_t count)
{
    return channel_send(kind, id, bytes, count) ||
           core_fail("the link to the server is gone, as in a process that a model forks");
}

/* Sends a record that has to be kept. */
static bool send_kept(uint32_t kind, uint64_t id, struct wire_out *out, struct lending *lent,
                      PyObject *kept)
{
    struct link_far far = {.at = (uint64_t)(uintptr_t)out->at, .bytes = out->used};
    struct wire_out sent = *out;
    bool is_far = out->used > LINK_RECORD_MAX;
    if (is_far && !channel_is_read())
        far.at = send_share(out->at, out->used, lent);
    if (!far.at || !send_keep(id, kept, out, lent->kept))
        return false;
    return is_far ? send_bytes(kind | LINK_KEPT | LINK_FAR, id, &far, sizeof far)
                  : send_bytes(kind | LINK_KEPT, id, sent.at, sent.used);
}

static bool send_is_kept(const struct wire_out *out, const struct lending *lent)
{
    return lent->any || out->used > LINK_RECORD_MAX;
}

void send_drop(struct wire_out *out, struct lending *lent)
{
    wire_fini(out);
    Py_CLEAR(lent->kept);
}

bool send_numbered(uint32_t kind, uint64_t id, struct wire_out *out, struct lending *lent,
                   PyObject *kept)
{
    bool well = false;
    if (out->failed)
        PyErr_NoMemory();
    else if (out->used > LINK_FAR_MAX)
        core_fail("what is sent to the server has %llu bytes, and may have 1 GiB at most",
                  (unsigned long long)out->used);
    else if (send_is_kept(out, lent))
        well = send_kept(kind, id, out, lent, kept);
    else
        well = send_bytes(kind, id, out->at, out->used);
    send_drop(out, lent);
    return well;
}

bool send_record(uint32_t kind, struct wire_out *out, struct lending *lent, PyObject *kept,
                 bool wait)
{
    if (!send_is_kept(out, lent))
        return send_numbered(kind, 0, out, lent, kept);
    if (!wait)
        return send_numbered(kind, channel_number(), out, lent, kept);
    uint64_t id = channel_expect();
    bool well = send_numbered(kind, id, out, lent, kept);
    if (well) {
        struct channel_record *read = core_wait(id);
        well = read || core_fail("the link to the server is gone");
        channel_free(read);
        send_release(id);
    }
    channel_forget(id);
    return well;
}

bool send_with(struct lending *lent, PyObject *kept)
{
    if (!lent->kept)
        lent->kept = PyList_New(0);
    return lent->kept && PyList_Append(lent->kept, kept) == 0;
}

uint64_t send_room(uint64_t count, struct lending *lent)
{
    uint64_t place = ask_room(count);
    char *at = channel_at(place, count);
    if (!at && !PyErr_Occurred())
        core_fail("no shared memory for %llu bytes", (unsigned long long)count);
    if (!at)
        return 0;
    PyObject *owner = record_of_place(place);
    bool well = owner && send_with(lent, owner);
    Py_XDECREF(owner);
    return well ? place : 0;
}

uint64_t send_share(const void *bytes, uint64_t count, struct lending *lent)
{
    uint64_t place = send_room(count, lent);
    if (place)
        memcpy(channel_at(place, count), bytes, count);
    return place;
}
