#pragma once

#include <stddef.h>
#include <stdint.h>

/* The part of TensorFlow's C interface that this backend uses; the interface is stable. It is
 * declared here, because the packages with TensorFlow's headers are twice as large as the one
 * with the libraries. docs/internals/tensorflow.md says how the two were compared. */

typedef struct TF_Status TF_Status;
typedef struct TF_Graph TF_Graph;
typedef struct TF_Operation TF_Operation;
typedef struct TF_Session TF_Session;
typedef struct TF_SessionOptions TF_SessionOptions;
typedef struct TF_ImportGraphDefOptions TF_ImportGraphDefOptions;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_Library TF_Library;
typedef struct TF_DeviceList TF_DeviceList;

typedef enum TF_Code { TF_OK = 0, TF_NOT_FOUND = 5 } TF_Code;

typedef enum TF_DataType {
    TF_FLOAT = 1,
    TF_DOUBLE = 2,
    TF_INT32 = 3,
    TF_UINT8 = 4,
    TF_INT16 = 5,
    TF_INT8 = 6,
    TF_STRING = 7,
    TF_INT64 = 9,
    TF_BOOL = 10,
    TF_BFLOAT16 = 14,
    TF_UINT16 = 17,
    TF_HALF = 19,
    TF_UINT32 = 22,
    TF_UINT64 = 23,
} TF_DataType;

typedef struct TF_Buffer {
    const void *data;
    size_t length;
    void (*data_deallocator)(void *data, size_t length);
} TF_Buffer;

typedef struct TF_Output {
    TF_Operation *oper;
    int index;
} TF_Output;

/* A string in a tensor. */
typedef struct TF_TString {
    uint64_t words[3];
} TF_TString;

const char *TF_Version(void);

TF_Status *TF_NewStatus(void);
void TF_DeleteStatus(TF_Status *status);
TF_Code TF_GetCode(const TF_Status *status);
const char *TF_Message(const TF_Status *status);

TF_Buffer *TF_NewBuffer(void);
TF_Buffer *TF_NewBufferFromString(const void *proto, size_t size);
void TF_DeleteBuffer(TF_Buffer *buffer);

TF_Library *TF_LoadLibrary(const char *file, TF_Status *status);
TF_Buffer TF_GetOpList(TF_Library *library);
TF_Buffer *TF_GetRegisteredKernelsForOp(const char *name, TF_Status *status);

TF_Graph *TF_NewGraph(void);
void TF_DeleteGraph(TF_Graph *graph);
TF_ImportGraphDefOptions *TF_NewImportGraphDefOptions(void);
void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions *options);
void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions *options,
                                              const char *device);
void TF_GraphImportGraphDef(TF_Graph *graph, const TF_Buffer *graph_def,
                            const TF_ImportGraphDefOptions *options, TF_Status *status);
TF_Operation *TF_GraphOperationByName(TF_Graph *graph, const char *name);
TF_Operation *TF_GraphNextOperation(TF_Graph *graph, size_t *position);
void TF_GraphGetOpDef(TF_Graph *graph, const char *name, TF_Buffer *op_def, TF_Status *status);
int TF_GraphGetTensorNumDims(TF_Graph *graph, TF_Output output, TF_Status *status);
const char *TF_OperationName(TF_Operation *operation);
const char *TF_OperationOpType(TF_Operation *operation);
int TF_OperationNumOutputs(TF_Operation *operation);
TF_DataType TF_OperationOutputType(TF_Output output);

TF_SessionOptions *TF_NewSessionOptions(void);
void TF_DeleteSessionOptions(TF_SessionOptions *options);
void TF_SetConfig(TF_SessionOptions *options, const void *proto, size_t size, TF_Status *status);
TF_Session *TF_NewSession(TF_Graph *graph, const TF_SessionOptions *options, TF_Status *status);
TF_Session *TF_LoadSessionFromSavedModel(const TF_SessionOptions *options,
                                         const TF_Buffer *run_options, const char *folder,
                                         const char *const *tags, int tag_count, TF_Graph *graph,
                                         TF_Buffer *meta_graph_def, TF_Status *status);
void TF_CloseSession(TF_Session *session, TF_Status *status);
void TF_DeleteSession(TF_Session *session, TF_Status *status);
TF_DeviceList *TF_SessionListDevices(TF_Session *session, TF_Status *status);
void TF_DeleteDeviceList(TF_DeviceList *list);
int TF_DeviceListCount(const TF_DeviceList *list);
const char *TF_DeviceListType(const TF_DeviceList *list, int index, TF_Status *status);
void TF_SessionRun(TF_Session *session, const TF_Buffer *run_options, const TF_Output *inputs,
                   TF_Tensor *const *input_values, int input_count, const TF_Output *outputs,
                   TF_Tensor **output_values, int output_count, const TF_Operation *const *targets,
                   int target_count, TF_Buffer *run_metadata, TF_Status *status);

TF_Tensor *TF_NewTensor(TF_DataType type, const int64_t *dims, int rank, void *data, size_t size,
                        void (*deallocator)(void *data, size_t size, void *arg), void *arg);
void TF_DeleteTensor(TF_Tensor *tensor);
TF_DataType TF_TensorType(const TF_Tensor *tensor);
int TF_NumDims(const TF_Tensor *tensor);
int64_t TF_Dim(const TF_Tensor *tensor, int index);
void *TF_TensorData(const TF_Tensor *tensor);

void TF_StringInit(TF_TString *string);
void TF_StringCopy(TF_TString *to, const char *from, size_t size);
void TF_StringDealloc(TF_TString *string);
const char *TF_StringGetDataPointer(const TF_TString *string);
size_t TF_StringGetSize(const TF_TString *string);
