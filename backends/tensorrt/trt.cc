#include "trt.h"

#include <NvInferRuntime.h>

#include <dlfcn.h>

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/* Values of shape tensors as numbers of 64 bits came with 10.11. */
#define HAS_WIDE_VALUES \
    (NV_TENSORRT_MAJOR > 10 || (NV_TENSORRT_MAJOR == 10 && NV_TENSORRT_MINOR >= 11))

namespace nv = nvinfer1;

static_assert(PROFILE_MOST_DIMS == nv::Dims::MAX_DIMS, "as many dimensions as TensorRT's");

/* The engine is freed before the runtime that made it. */
struct trt_engine {
    std::unique_ptr<nv::IRuntime> runtime;
    std::unique_ptr<nv::ICudaEngine> engine;
    std::vector<trt_tensor> tensors;
};

namespace
{

class asking;

} // namespace

struct trt_context {
    const trt_engine *of;
    std::vector<std::unique_ptr<asking>> askers; /* one per tensor; null = nothing is asked */
    std::unique_ptr<nv::IExecutionContext> context;
};

namespace
{

/* What TensorRT said was wrong since the thread last asked it for something. */
thread_local std::string complaints;

const size_t MOST_COMPLAINTS = 1000;

void complain(const char *text)
{
    if (complaints.size() < MOST_COMPLAINTS)
        complaints += (complaints.empty() ? "" : "; ") + std::string(text);
}

/* One for all of TensorRT's objects, for as long as the process lives. */
class logger : public nv::ILogger
{
    void log(Severity severity, const char *text) noexcept override
    {
        if (severity == Severity::kINTERNAL_ERROR || severity == Severity::kERROR)
            complain(text);
        TRITONSERVER_LogLevel level = TRITONSERVER_LOG_ERROR;
        if (severity == Severity::kWARNING)
            level = TRITONSERVER_LOG_WARN;
        else if (severity == Severity::kINFO)
            level = TRITONSERVER_LOG_INFO;
        else if (severity == Severity::kVERBOSE)
            level = TRITONSERVER_LOG_VERBOSE;
        TRITONSERVER_ErrorDelete(
            TRITONSERVER_LogMessage(level, "tensorrt", 0, text)); /* NULL is no error */
    }
};

logger log_of_server;
std::string absence;
void *(*create_runtime)(void *logger, int32_t version) noexcept;
std::mutex making; /* of engines and contexts: TensorRT's builders are not for several threads */

std::string library(const char *name)
{
    return std::string(name) + ".so." + std::to_string(NV_TENSORRT_MAJOR);
}

/* Takes effect on creators of plug-ins that come with TensorRT; a plan without any needs none. */
void open_plugins()
{
    void *plugins = dlopen(library("libnvinfer_plugin").c_str(), RTLD_NOW | RTLD_GLOBAL);
    auto begin = reinterpret_cast<bool (*)(void *, const char *)>(
        plugins ? dlsym(plugins, "initLibNvInferPlugins") : nullptr);
    if (!begin || !begin(&log_of_server, ""))
        TRITONSERVER_ErrorDelete(TRITONSERVER_LogMessage(
            TRITONSERVER_LOG_WARN, "tensorrt", 0,
            "TensorRT's own plug-ins are not here: plans that use them do not load"));
}

std::string open_runtime()
{
    const std::string name = library("libnvinfer");
    void *opened = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!opened)
        return dlerror();
    auto version = reinterpret_cast<int32_t (*)() noexcept>(dlsym(opened, "getInferLibVersion"));
    create_runtime = reinterpret_cast<void *(*)(void *, int32_t) noexcept>(
        dlsym(opened, "createInferRuntime_INTERNAL"));
    if (!version || !create_runtime)
        return name + " is no runtime of TensorRT";
    /* What an older one does not have would be called all the same. */
    if (version() < NV_TENSORRT_VERSION)
        return name + " has version " + std::to_string(version()) +
               ", the backend was built with the headers of " + std::to_string(NV_TENSORRT_VERSION);
    return "";
}

TRITONSERVER_Error *error(TRITONSERVER_Error_Code code, const std::string &text)
{
    return TRITONSERVER_ErrorNew(code, text.c_str());
}

/* TensorRT says what was wrong only in its log. */
TRITONSERVER_Error *failed(const std::string &trying)
{
    std::string text = trying + ": " + (complaints.empty() ? "no reason was given" : complaints);
    complaints.clear();
    return error(TRITONSERVER_ERROR_INTERNAL, text);
}

/* Those of fewer than eight bits, and what later versions bring, are none of the protocol's. */
TRITONSERVER_DataType datatype_of(nv::DataType type)
{
    static const struct {
        nv::DataType type;
        TRITONSERVER_DataType datatype;
    } types[] = {
        {nv::DataType::kFLOAT, TRITONSERVER_TYPE_FP32},
        {nv::DataType::kHALF, TRITONSERVER_TYPE_FP16},
        {nv::DataType::kBF16, TRITONSERVER_TYPE_BF16},
        {nv::DataType::kINT8, TRITONSERVER_TYPE_INT8},
        {nv::DataType::kUINT8, TRITONSERVER_TYPE_UINT8},
        {nv::DataType::kINT32, TRITONSERVER_TYPE_INT32},
        {nv::DataType::kINT64, TRITONSERVER_TYPE_INT64},
        {nv::DataType::kBOOL, TRITONSERVER_TYPE_BOOL},
    };
    for (const auto &known : types)
        if (known.type == type)
            return known.datatype;
    return TRITONSERVER_TYPE_INVALID;
}

/* Runs `work`, which returns an error or none; an exception becomes one. */
template <typename Work> TRITONSERVER_Error *guarded(Work work) noexcept
{
    try {
        return work();
    } catch (const std::exception &thrown) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, thrown.what());
    }
}

size_t dims_to(const nv::Dims &dims, int64_t *ret)
{
    size_t rank = dims.nbDims > 0 ? static_cast<size_t>(dims.nbDims) : 0;
    for (size_t i = 0; i < rank; i++)
        ret[i] = dims.d[i];
    return rank;
}

nv::Dims dims_from(const int64_t *dims, size_t rank)
{
    nv::Dims made{};
    made.nbDims = static_cast<int32_t>(rank);
    for (size_t i = 0; i < rank; i++)
        made.d[i] = dims[i];
    return made;
}

/* As the first profile has it. */
void describe_format(const nv::ICudaEngine &engine, trt_tensor &tensor)
{
    const nv::TensorFormat format = engine.getTensorFormat(tensor.name);
    const int32_t dim = engine.getTensorVectorizedDim(tensor.name);
    tensor.is_linear = format == nv::TensorFormat::kLINEAR;
    if (format == nv::TensorFormat::kDLA_LINEAR || format == nv::TensorFormat::kDLA_HWC4) {
        tensor.vector = TRT_PADDED;
    } else if (!tensor.is_linear && dim >= 0) {
        tensor.vector_dim = static_cast<size_t>(dim);
        tensor.vector = engine.getTensorComponentsPerElement(tensor.name);
    }
}

void describe(trt_engine &made)
{
    for (int32_t i = 0; i < made.engine->getNbIOTensors(); i++) {
        trt_tensor tensor{};
        tensor.name = made.engine->getIOTensorName(i);
        tensor.datatype = datatype_of(made.engine->getTensorDataType(tensor.name));
        tensor.is_input = made.engine->getTensorIOMode(tensor.name) == nv::TensorIOMode::kINPUT;
        tensor.is_shape = made.engine->isShapeInferenceIO(tensor.name);
        describe_format(*made.engine, tensor);
        tensor.rank = dims_to(made.engine->getTensorShape(tensor.name), tensor.dims);
        made.tensors.push_back(tensor);
    }
}

TRITONSERVER_Error *set_core(nv::IRuntime &runtime, int64_t dla)
{
    const int32_t cores = dla == TRT_NO_DLA ? 0 : runtime.getNbDLACores();
    if (dla != TRT_NO_DLA && (dla < 0 || dla >= cores))
        return error(TRITONSERVER_ERROR_INVALID_ARG,
                     "unable to create TensorRT runtime with DLA Core ID: " + std::to_string(dla) +
                         ", available number of DLA cores: " + std::to_string(cores));
    if (dla != TRT_NO_DLA)
        runtime.setDLACore(static_cast<int32_t>(dla));
    return nullptr;
}

/* Reads the limits of dimensions into a range; false if the profile has none. */
bool read_dims(const nv::ICudaEngine &engine, const char *name, int32_t profile,
               profile_range &range)
{
    const nv::Dims least = engine.getProfileShape(name, profile, nv::OptProfileSelector::kMIN);
    const nv::Dims best = engine.getProfileShape(name, profile, nv::OptProfileSelector::kOPT);
    const nv::Dims most = engine.getProfileShape(name, profile, nv::OptProfileSelector::kMAX);
    if (least.nbDims < 0 || best.nbDims != least.nbDims || most.nbDims != least.nbDims)
        return false;
    range.count = dims_to(least, range.min);
    dims_to(best, range.best);
    dims_to(most, range.max);
    return true;
}

bool read_values(const nv::ICudaEngine &engine, const char *name, int32_t profile,
                 nv::OptProfileSelector which, size_t count, int64_t *to)
{
#if HAS_WIDE_VALUES
    const int64_t *values = engine.getProfileTensorValuesV2(name, profile, which);
#else
    const int32_t *values = engine.getProfileTensorValues(name, profile, which);
#endif
    for (size_t i = 0; values && i < count; i++)
        to[i] = values[i];
    return values != nullptr;
}

/* Hands TensorRT's question for memory on. */
class asking : public nv::IOutputAllocator
{
  public:
    asking(size_t tensor_, trt_room_fn *room_, void *of_) : tensor(tensor_), room(room_), of(of_)
    {
    }

    void *reallocateOutputAsync(const char * /*name*/, void * /*now*/, uint64_t size,
                                uint64_t /*alignment*/, cudaStream_t /*stream*/) override
    {
        return room(of, tensor, size);
    }

    void notifyShape(const char * /*name*/, const nv::Dims &dims) noexcept override
    {
        found = dims;
    }

    nv::Dims found{};

  private:
    size_t tensor;
    trt_room_fn *room;
    void *of;
};

const char *name_of(const trt_context *context, size_t tensor)
{
    return context->of->tensors[tensor].name;
}

TRITONSERVER_Error *done(bool good, const trt_context *context, size_t tensor, const char *what)
{
    return good ? nullptr
                : failed(std::string("TensorRT refuses ") + what + " of '" +
                         name_of(context, tensor) + "'");
}

} // namespace

void trt_open(void)
{
    absence = open_runtime();
    if (absence.empty())
        open_plugins();
}

const char *trt_absence(void)
{
    return absence.empty() ? nullptr : absence.c_str();
}

TRITONSERVER_Error *trt_load(const void *plan, size_t size, int64_t dla, bool host_code,
                             trt_engine **ret)
{
    return guarded([&]() -> TRITONSERVER_Error * {
        std::lock_guard<std::mutex> alone(making);
        auto made = std::make_unique<trt_engine>();
        complaints.clear();
        void *runtime = create_runtime(&log_of_server, NV_TENSORRT_VERSION);
        /* Where CUDA cannot begin, 10.16 says so and returns an address that is none. */
        if (!runtime || !complaints.empty())
            return failed("unable to create TensorRT runtime");
        made->runtime.reset(static_cast<nv::IRuntime *>(runtime));
        if (host_code)
            made->runtime->setEngineHostCodeAllowed(true);
        TRITONSERVER_Error *err = set_core(*made->runtime, dla);
        if (err)
            return err;
        made->engine.reset(made->runtime->deserializeCudaEngine(plan, size));
        if (!made->engine)
            return failed("unable to create TensorRT engine");
        describe(*made);
        *ret = made.release();
        return nullptr;
    });
}

void trt_free(trt_engine *engine)
{
    delete engine;
}

const trt_tensor *trt_tensors(const trt_engine *engine, size_t *ret_count)
{
    *ret_count = engine->tensors.size();
    return engine->tensors.data();
}

int32_t trt_profiles(const trt_engine *engine)
{
    return engine->engine->getNbOptimizationProfiles();
}

TRITONSERVER_Error *trt_limits(const trt_engine *engine, size_t tensor, int32_t profile,
                               profile_limits *ret)
{
    const trt_tensor &of = engine->tensors[tensor];
    const std::string which =
        "input '" + std::string(of.name) + "' in profile " + std::to_string(profile);
    *ret = {};
    if (!read_dims(*engine->engine, of.name, profile, ret->dims))
        return failed("unable to read the limits of " + which);
    if (!of.is_shape)
        return nullptr;
    int64_t count = 1;
    for (size_t i = 0; i < ret->dims.count && count <= PROFILE_MOST_VALUES; i++)
        count *= ret->dims.max[i];
    if (count < 0 || count > PROFILE_MOST_VALUES)
        return error(TRITONSERVER_ERROR_UNSUPPORTED, which +
                                                         " is a shape tensor of more values than " +
                                                         std::to_string(PROFILE_MOST_VALUES));
    profile_range &values = ret->values;
    values.count = static_cast<size_t>(count);
    const bool good = read_values(*engine->engine, of.name, profile, nv::OptProfileSelector::kMIN,
                                  values.count, values.min) &&
                      read_values(*engine->engine, of.name, profile, nv::OptProfileSelector::kOPT,
                                  values.count, values.best) &&
                      read_values(*engine->engine, of.name, profile, nv::OptProfileSelector::kMAX,
                                  values.count, values.max);
    return good ? nullptr : failed("unable to read the values of " + which);
}

TRITONSERVER_Error *trt_context_new(trt_engine *engine, int32_t profile, bool grows, void *stream,
                                    trt_context **ret)
{
    return guarded([&]() -> TRITONSERVER_Error * {
        std::lock_guard<std::mutex> alone(making);
        auto made = std::make_unique<trt_context>();
        complaints.clear();
        made->of = engine;
        made->askers.resize(engine->tensors.size());
        made->context.reset(engine->engine->createExecutionContext(
            grows ? nv::ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE
                  : nv::ExecutionContextAllocationStrategy::kSTATIC));
        if (!made->context)
            return failed("unable to create TensorRT context");
        if (!made->context->setOptimizationProfileAsync(profile, static_cast<cudaStream_t>(stream)))
            return failed("unable to set optimization profile " + std::to_string(profile));
        *ret = made.release();
        return nullptr;
    });
}

void trt_context_free(trt_context *context)
{
    delete context;
}

TRITONSERVER_Error *trt_set_input(trt_context *context, size_t tensor, const int64_t *dims,
                                  size_t rank, const void *data)
{
    const char *name = name_of(context, tensor);
    TRITONSERVER_Error *err = done(context->context->setInputShape(name, dims_from(dims, rank)),
                                   context, tensor, "the shape");
    return err || !data ? err
                        : done(context->context->setInputTensorAddress(name, data), context, tensor,
                               "the address");
}

TRITONSERVER_Error *trt_infer_shapes(trt_context *context)
{
    return context->context->inferShapes(0, nullptr) == 0
               ? nullptr
               : failed("failed to specify the dimensions of all input tensors or values of all "
                        "input shape tensors");
}

size_t trt_output_shape(const trt_context *context, size_t tensor, int64_t *ret_dims)
{
    return dims_to(context->context->getTensorShape(name_of(context, tensor)), ret_dims);
}

size_t trt_found_shape(const trt_context *context, size_t tensor, int64_t *ret_dims)
{
    const asking *asker = context->askers[tensor].get();
    return asker ? dims_to(asker->found, ret_dims) : trt_output_shape(context, tensor, ret_dims);
}

TRITONSERVER_Error *trt_set_output(trt_context *context, size_t tensor, void *data)
{
    const char *name = name_of(context, tensor);
    if (context->askers[tensor])
        context->context->setOutputAllocator(name, nullptr);
    context->askers[tensor].reset();
    return done(context->context->setTensorAddress(name, data), context, tensor, "the address");
}

TRITONSERVER_Error *trt_ask_output(trt_context *context, size_t tensor, trt_room_fn *room, void *of)
{
    return guarded([&] {
        auto asker = std::make_unique<asking>(tensor, room, of);
        TRITONSERVER_Error *err =
            done(context->context->setOutputAllocator(name_of(context, tensor), asker.get()),
                 context, tensor, "an allocator");
        if (!err)
            context->askers[tensor] = std::move(asker);
        return err;
    });
}

TRITONSERVER_Error *trt_run(trt_context *context, void *stream)
{
    complaints.clear();
    return context->context->enqueueV3(static_cast<cudaStream_t>(stream))
               ? nullptr
               : failed("unable to enqueue for inference");
}
