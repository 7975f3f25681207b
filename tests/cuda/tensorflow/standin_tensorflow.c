/* Takes the place of a TensorFlow with CUDA, where there is no GPU: preloaded, it stands before the
 * real library for processors and tells of GPUs. What is placed there computes on the host, since
 * placement is soft. It shows where operations are asked to run, and which sessions there are.
 * NEREID_TENSORFLOW_GPUS    how many GPUs it has; not set: it was built without CUDA
 * NEREID_TENSORFLOW_REPORT  a file; lines are added: "config HEX" for the settings of a session,
 *                           "listed" when devices are, "session DEVICE,..." for a new session and the
 *                           devices that its operations ask for ("-" = none), "loaded" for one that
 *                           TensorFlow's own loader makes, "deleted" */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/tf_api.h"

const char *TF_OperationDevice(TF_Operation *operation);

enum { DEVICES = 8 };

/* The library's function, which the backend would have called. */
static void *tensorflow_real(const char *name)
{
    void *library = dlopen("libtensorflow_cc.so.2", RTLD_NOLOAD | RTLD_LAZY);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        abort();
    dlclose(library);
    return found;
}

#define REAL(name) ((__typeof__(&(name)))tensorflow_real(#name))

static FILE *report_open(void)
{
    const char *path = getenv("NEREID_TENSORFLOW_REPORT");
    return path ? fopen(path, "ae") : NULL;
}

static void report(const char *line)
{
    FILE *file = report_open();
    if (!file)
        return;
    fprintf(file, "%s\n", line);
    fclose(file);
}

static int gpus(void)
{
    const char *text = getenv("NEREID_TENSORFLOW_GPUS");
    return text ? (int)strtol(text, NULL, 10) : 0;
}

TF_Buffer *TF_GetRegisteredKernelsForOp(const char *name, TF_Status *status)
{
    static const char kernel[] = "\x0a\x05\x12\x03GPU";
    TF_Buffer *real = REAL(TF_GetRegisteredKernelsForOp)(name, status);
    if (!real || !getenv("NEREID_TENSORFLOW_GPUS"))
        return real;
    size_t size = real->length + sizeof kernel - 1;
    char *all = malloc(size);
    if (!all)
        abort();
    memcpy(all, real->data, real->length);
    memcpy(all + real->length, kernel, sizeof kernel - 1);
    TF_Buffer *shown = REAL(TF_NewBufferFromString)(all, size);
    free(all);
    REAL(TF_DeleteBuffer)(real);
    return shown;
}

TF_DeviceList *TF_SessionListDevices(TF_Session *session, TF_Status *status)
{
    report("listed");
    return REAL(TF_SessionListDevices)(session, status);
}

int TF_DeviceListCount(const TF_DeviceList *list)
{
    return REAL(TF_DeviceListCount)(list) + gpus();
}

const char *TF_DeviceListType(const TF_DeviceList *list, int index, TF_Status *status)
{
    if (index >= REAL(TF_DeviceListCount)(list))
        return "GPU";
    return REAL(TF_DeviceListType)(list, index, status);
}

void TF_SetConfig(TF_SessionOptions *options, const void *proto, size_t size, TF_Status *status)
{
    FILE *file = report_open();
    if (file) {
        fprintf(file, "config ");
        for (size_t i = 0; i < size; i++)
            fprintf(file, "%02x", ((const unsigned char *)proto)[i]);
        fprintf(file, "\n");
        fclose(file);
    }
    REAL(TF_SetConfig)(options, proto, size, status);
}

static void note_device(const char *device, const char **seen, size_t *count)
{
    device = *device ? device : "-";
    for (size_t i = 0; i < *count; i++)
        if (strcmp(seen[i], device) == 0)
            return;
    if (*count < DEVICES)
        seen[(*count)++] = device;
}

TF_Session *TF_NewSession(TF_Graph *graph, const TF_SessionOptions *options, TF_Status *status)
{
    const char *seen[DEVICES];
    size_t count = 0, position = 0;
    FILE *file = report_open();
    TF_Operation *operation;
    while ((operation = REAL(TF_GraphNextOperation)(graph, &position)))
        note_device(REAL(TF_OperationDevice)(operation), seen, &count);
    if (file) {
        fprintf(file, "session ");
        for (size_t i = 0; i < count; i++)
            fprintf(file, "%s%s", i ? "," : "", seen[i]);
        fprintf(file, "\n");
        fclose(file);
    }
    return REAL(TF_NewSession)(graph, options, status);
}

TF_Session *TF_LoadSessionFromSavedModel(const TF_SessionOptions *options,
                                         const TF_Buffer *run_options, const char *folder,
                                         const char *const *tags, int tag_count, TF_Graph *graph,
                                         TF_Buffer *meta_graph_def, TF_Status *status)
{
    report("loaded");
    return REAL(TF_LoadSessionFromSavedModel)(options, run_options, folder, tags, tag_count, graph,
                                              meta_graph_def, status);
}

void TF_DeleteSession(TF_Session *session, TF_Status *status)
{
    report("deleted");
    REAL(TF_DeleteSession)(session, status);
}
