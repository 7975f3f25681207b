#pragma once

#include "../common/wire.h"

/* TensorFlow's messages, as its .proto files define them: the numbers of their fields that are read
 * or written here, and how a part of a message is found. */

enum { /* an entry of a map */
       MAP_KEY = 1,
       MAP_VALUE = 2,
       /* ConfigProto */
       DEVICE_COUNT = 1,
       INTRA_THREADS = 2,
       INTER_THREADS = 5,
       GPU_OPTIONS = 6,
       SOFT_PLACEMENT = 7,
       OWN_THREADS = 9,
       GRAPH_OPTIONS = 10,
       THREAD_POOL = 12,
       /* ThreadPoolOptionProto */
       POOL_THREADS = 1,
       POOL_NAME = 2,
       /* GPUOptions */
       GPU_FRACTION = 1,
       GPU_GROWTH = 4,
       /* GraphOptions */
       OPTIMIZER_OPTIONS = 3,
       REWRITE_OPTIONS = 10,
       /* OptimizerOptions */
       JIT_LEVEL = 5,
       JIT_ON_CPU = 7,
       /* RewriterConfig */
       ITERATIONS = 12,
       MIXED_PRECISION = 23,
       OPTIMIZERS = 100,
       CUSTOM_OPTIMIZERS = 200,
       /* RewriterConfig.CustomGraphOptimizer */
       OPTIMIZER_NAME = 1,
       OPTIMIZER_PARAMETERS = 2,
       /* AttrValue */
       ATTR_TEXT = 2,
       ATTR_NUMBER = 3,
       ATTR_TRUTH = 5,
       /* KernelList, KernelDef */
       KERNEL_LIST_KERNEL = 1,
       KERNEL_DEVICE = 2,
       /* OpList, OpDef */
       OPERATION_LIST_OPERATION = 1,
       OPERATION_NAME = 1,
       /* SavedModel */
       SAVED_GRAPHS = 2,
       /* MetaGraphDef */
       META_INFO = 1,
       META_GRAPH = 2,
       META_SAVER = 3,
       META_COLLECTIONS = 4,
       META_SIGNATURES = 5,
       META_ASSETS = 6,
       /* MetaInfoDef */
       INFO_TAGS = 4,
       /* SaverDef */
       SAVER_FILE = 1,
       SAVER_RESTORE = 3,
       /* CollectionDef, and its lists */
       COLLECTION_NODES = 1,
       COLLECTION_ANY = 5,
       LIST_VALUE = 1,
       ANY_VALUE = 2,
       /* AssetFileDef */
       ASSET_TENSOR = 1,
       ASSET_FILE = 2,
       /* SignatureDef */
       SIGNATURE_INPUTS = 1,
       SIGNATURE_OUTPUTS = 2,
       /* TensorInfo */
       TENSOR_NAME = 1,
       TENSOR_TYPE = 2,
       TENSOR_SHAPE = 3,
       /* TensorShapeProto, and its dimensions */
       SHAPE_DIM = 2,
       SHAPE_UNKNOWN = 3,
       DIM_SIZE = 1,
       DIM_NAME = 2
};

/* message_part - the last field of this number, which counts where one is there twice; empty if
 * there is none. */
struct wire message_part(struct wire message, uint32_t number);

/* message_entry - the value of a map's key; empty if there is none.
 * map  the number of the map's field */
struct wire message_entry(struct wire message, uint32_t map, const char *key);

/* message_is_saved, message_is_asset - true if the bytes are a whole SavedModel or AssetFileDef:
 * each message that is read here can be read to its end, and its texts are UTF-8. The graphs of
 * operations are left to TensorFlow. */
bool message_is_saved(struct wire message);
bool message_is_asset(struct wire message);
