#include "libtorch.h"
#include "package.hh"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

namespace jit = torch::jit;

/* The texts come first, because the list of arguments points into them. */
struct libtorch_module {
    std::unique_ptr<package> compiled; /* null for TorchScript */
    jit::Module module;                /* else empty */
    std::vector<std::string> texts;
    std::vector<libtorch_argument> arguments;
    std::vector<c10::TypePtr> types;
    int64_t results = 0;
    bool keyed = false;
    bool lends = false; /* the model only reads its arguments and does not keep them */
    at::Device device = at::kCPU;
};

struct leaf {
    c10::IValue value;
    std::string key;
    bool keyed;
};

struct libtorch_call {
    const libtorch_module *of;
    std::optional<jit::Method> forward; /* of TorchScript */
    std::vector<c10::IValue> arguments;
    std::vector<leaf> leaves;
    std::vector<at::Tensor> rooms;
    std::optional<c10::Stream> stream; /* of a module on a GPU */
};

namespace
{

std::string gpu_absence;

TRITONSERVER_Error *failed(const std::string &text)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, text.c_str());
}

/* Runs `work`; an exception becomes an error that says what was tried. */
template <typename Work> TRITONSERVER_Error *guarded(const char *trying, Work work)
{
    std::string said = "unknown exception";
    try {
        work();
        return nullptr;
    } catch (const c10::Error &error) {
        said = error.what_without_backtrace();
    } catch (const std::exception &error) {
        said = error.what();
    } catch (...) {
    }
    return failed(std::string(trying) + said);
}

std::optional<at::ScalarType> type_of(TRITONSERVER_DataType datatype)
{
    switch (datatype) {
    case TRITONSERVER_TYPE_BOOL:
        return at::kBool;
    case TRITONSERVER_TYPE_UINT8:
        return at::kByte;
    case TRITONSERVER_TYPE_INT8:
        return at::kChar;
    case TRITONSERVER_TYPE_INT16:
        return at::kShort;
    case TRITONSERVER_TYPE_INT32:
        return at::kInt;
    case TRITONSERVER_TYPE_INT64:
        return at::kLong;
    case TRITONSERVER_TYPE_FP16:
        return at::kHalf;
    case TRITONSERVER_TYPE_BF16:
        return at::kBFloat16;
    case TRITONSERVER_TYPE_FP32:
        return at::kFloat;
    case TRITONSERVER_TYPE_FP64:
        return at::kDouble;
    case TRITONSERVER_TYPE_UINT16:
    case TRITONSERVER_TYPE_UINT32:
    case TRITONSERVER_TYPE_UINT64:
    case TRITONSERVER_TYPE_BYTES:
    case TRITONSERVER_TYPE_INVALID:
        break;
    }
    return std::nullopt;
}

TRITONSERVER_DataType datatype_of(at::ScalarType type)
{
    for (int i = TRITONSERVER_TYPE_BOOL; i <= TRITONSERVER_TYPE_BF16; i++)
        if (type_of(static_cast<TRITONSERVER_DataType>(i)) == type)
            return static_cast<TRITONSERVER_DataType>(i);
    return TRITONSERVER_TYPE_INVALID;
}

bool holds(const c10::TypePtr &type, c10::TypeKind kind)
{
    return type->kind() == kind;
}

libtorch_kind kind_of(const c10::TypePtr &type)
{
    if (holds(type, c10::TypeKind::TensorType))
        return LIBTORCH_TENSOR;
    if (holds(type, c10::TypeKind::IntType) || holds(type, c10::TypeKind::FloatType) ||
        holds(type, c10::TypeKind::BoolType))
        return LIBTORCH_NUMBER;
    if (auto list = type->cast<c10::ListType>()) {
        if (holds(list->getElementType(), c10::TypeKind::StringType))
            return LIBTORCH_STRINGS;
        if (holds(list->getElementType(), c10::TypeKind::TensorType))
            return LIBTORCH_LIST;
    }
    if (auto dict = type->cast<c10::DictType>())
        if (holds(dict->getKeyType(), c10::TypeKind::StringType) &&
            holds(dict->getValueType(), c10::TypeKind::TensorType))
            return LIBTORCH_DICT;
    return LIBTORCH_OTHER;
}

/* How many results a value of this type has; -1 if only the value tells. */
int64_t count_results(const c10::TypePtr &type, bool &keyed)
{
    if (auto tuple = type->cast<c10::TupleType>()) {
        int64_t sum = 0;
        for (const c10::TypePtr &element : tuple->elements()) {
            int64_t count = count_results(element, keyed);
            sum = sum < 0 || count < 0 ? -1 : sum + count;
        }
        return sum;
    }
    libtorch_kind kind = kind_of(type);
    bool dict = holds(type, c10::TypeKind::DictType);
    bool open = holds(type, c10::TypeKind::AnyType) || holds(type, c10::TypeKind::UnionType) ||
                holds(type, c10::TypeKind::OptionalType);
    keyed = keyed || dict || open;
    return dict || open || (holds(type, c10::TypeKind::ListType) && kind != LIBTORCH_STRINGS) ? -1
                                                                                              : 1;
}

/* True if a block of a model changes anything in place, or sets attributes: so it may keep its
 * arguments, or change them. Which tensors share memory is not asked, since PyTorch does not tell
 * of each operation that may give back its own input. Calls that cannot be inspected may change
 * anything. */
bool changes(const jit::Block *block)
{
    for (const jit::Node *node : block->nodes()) {
        if (node->kind() == c10::prim::SetAttr || node->kind() == c10::prim::CallMethod ||
            node->kind() == c10::prim::CallFunction || node->kind() == c10::prim::fork)
            return true;
        const c10::FunctionSchema *schema = node->maybeSchema();
        if (schema && schema->is_mutable())
            return true;
        for (const jit::Block *inner : node->blocks())
            if (changes(inner))
                return true;
    }
    return false;
}

/* Normalisation changes its means without saying so; the analysis of aliases knows, but of a list
 * or dictionary it does not tell what happens to the tensors in it. */
bool only_reads(const jit::Module &module)
{
    try {
        auto graph = module.get_method("forward").graph()->copy();
        jit::Inline(*graph);
        if (changes(graph->block()))
            return false;
        jit::AliasDb aliases(graph);
        for (size_t i = 1; i < graph->inputs().size(); i++) {
            const libtorch_kind kind = kind_of(graph->inputs()[i]->type());
            if (kind == LIBTORCH_LIST || kind == LIBTORCH_DICT ||
                aliases.hasWriters(graph->inputs()[i]))
                return false;
        }
        return true;
    } catch (...) {
        return false;
    }
}

void describe(libtorch_module &module)
{
    const c10::FunctionSchema &schema = module.module.get_method("forward").function().getSchema();
    const std::vector<c10::Argument> &all = schema.arguments();
    module.texts.reserve(2 * all.size());
    for (size_t i = 1; i < all.size(); i++) { /* the first is the model itself */
        module.texts.push_back(all[i].name());
        module.texts.push_back(all[i].type()->str());
        module.types.push_back(all[i].type());
        const size_t at = module.texts.size();
        module.arguments.push_back({module.texts[at - 2].c_str(), module.texts[at - 1].c_str(),
                                    kind_of(all[i].type()), all[i].default_value().has_value()});
    }
    for (const c10::Argument &result : schema.returns())
        module.results = count_results(result.type(), module.keyed);
    module.lends = only_reads(module.module);
}

void describe_package(libtorch_module &module)
{
    module.texts = module.compiled->inputs;
    for (const std::string &name : module.texts) {
        module.arguments.push_back({name.c_str(), "Tensor", LIBTORCH_TENSOR, false});
        module.types.push_back(c10::TensorType::get());
    }
    module.results = static_cast<int64_t>(module.compiled->outputs.size());
}

c10::IValue number_of(const at::Tensor &tensor, const c10::TypePtr &type)
{
    if (holds(type, c10::TypeKind::IntType))
        return tensor.item().toLong();
    if (holds(type, c10::TypeKind::FloatType))
        return tensor.item().toDouble();
    return tensor.item().toBool();
}

/* Lists and dictionaries may contain themselves, or the same ones many times.
 * room  values that may still be visited */
void collect(const c10::IValue &value, const std::string &key, bool keyed,
             std::vector<leaf> &leaves, int depth, int &room)
{
    if (depth > TREE_MOST_DEPTH || --room < 0)
        throw std::length_error("the model's result is nested more than " +
                                std::to_string(TREE_MOST_DEPTH) + " deep, or has more than " +
                                std::to_string(TREE_MOST_VALUES) + " values");
    if (value.isTuple()) {
        for (const c10::IValue &element : value.toTupleRef().elements())
            collect(element, key, keyed, leaves, depth + 1, room);
    } else if (value.isList() && !holds(value.toList().elementType(), c10::TypeKind::StringType)) {
        for (const c10::IValue &element : value.toListRef())
            collect(element, key, keyed, leaves, depth + 1, room);
    } else if (value.isGenericDict() &&
               value.toGenericDict().keyType()->kind() == c10::TypeKind::StringType) {
        for (const auto &entry : value.toGenericDict())
            collect(entry.value(), entry.key().toStringRef(), true, leaves, depth + 1, room);
    } else {
        leaves.push_back({value, key, keyed});
    }
}

/* The tensor with its elements one after the other, on this GPU or else on the host. PyTorch may
 * note that elements are negated, or all zero, without writing them. */
at::Tensor in_memory(const at::Tensor &tensor, at::Device device)
{
    at::Tensor written = tensor._is_zerotensor() ? at::zeros(tensor.sizes(), tensor.options())
                                                 : tensor.resolve_neg();
    return (written.device() == device ? written : written.cpu()).contiguous();
}

/* Why there is no CUDA. Its library registers itself with PyTorch, which looks for it once: it has
 * to be there before PyTorch does anything. A machine without a driver does not open it. */
std::string open_cuda()
{
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        return dlerror();
    if (!dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL))
        return std::string("PyTorch's part for CUDA is not here: ") + dlerror();
    std::string none =
        "PyTorch " TORCH_VERSION " finds no GPU; its CUDA may be newer than the driver's";
    TRITONSERVER_Error *err = guarded("", [&] {
        if (at::globalContext().hasCUDA() && c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount())
            none = "";
    });
    if (err)
        none = TRITONSERVER_ErrorMessage(err);
    TRITONSERVER_ErrorDelete(err);
    return none;
}

void run_package(libtorch_call *call)
{
    std::vector<at::Tensor> arguments;
    for (c10::IValue &argument : call->arguments)
        arguments.push_back(std::move(argument).toTensor());
    for (at::Tensor &result : call->of->compiled->run(arguments))
        call->leaves.push_back({std::move(result), "", false});
}

void apply(const libtorch_mode &mode)
{
    jit::setGraphExecutorOptimize(mode.optimizes);
    if (mode.profiling >= 0)
        jit::getProfilingMode() = mode.profiling != 0;
    if (mode.executor >= 0)
        jit::getExecutorMode() = mode.executor != 0;
    if (mode.fuser >= 0)
        jit::setTensorExprFuserEnabled(mode.fuser != 0);
}

} // namespace

void libtorch_set_threads(int count)
{
    at::set_num_threads(count);
}

bool libtorch_set_interop_threads(int count)
{
    try {
        at::set_num_interop_threads(count);
        return true;
    } catch (...) {
        return false;
    }
}

bool libtorch_has_type(TRITONSERVER_DataType datatype)
{
    return type_of(datatype).has_value();
}

bool libtorch_prepare(void)
{
    /* Packages compare shapes and types with what they were compiled for only if this is set.
     * Without it they would read beyond tensors that are too small. */
    setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 1);
    gpu_absence = open_cuda();
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr;
}

const char *libtorch_gpu_absence(void)
{
    return gpu_absence.empty() ? nullptr : gpu_absence.c_str();
}

bool libtorch_empty_cache(void)
{
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
    TRITONSERVER_ErrorDelete(
        guarded("", [&] { c10::getDeviceAllocator(at::kCUDA)->emptyCache(); }));
    return true;
#else
    return false;
#endif
}

void libtorch_without_cudnn(void)
{
    at::globalContext().setUserEnabledCuDNN(false);
}

TRITONSERVER_Error *libtorch_load(const char *path, bool is_package, bool inference, int32_t device,
                                  libtorch_module **ret_module)
{
    libtorch_module *module = nullptr;
    TRITONSERVER_Error *err = guarded("", [&] {
        c10::InferenceMode mode(inference);
        module = new libtorch_module{};
        if (device != LIBTORCH_CPU)
            module->device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device));
        c10::DeviceGuard there(module->device);
        if (is_package) {
            module->compiled = std::make_unique<package>(path, module->device);
            describe_package(*module);
        } else {
            module->module = jit::load(path, module->device);
            describe(*module);
        }
    });
    if (err)
        delete module;
    else
        *ret_module = module;
    return err;
}

void libtorch_free(libtorch_module *module)
{
    delete module;
}

size_t libtorch_arguments(const libtorch_module *module, const libtorch_argument **ret_list)
{
    *ret_list = module->arguments.data();
    return module->arguments.size();
}

int64_t libtorch_results(const libtorch_module *module, bool *ret_keyed)
{
    *ret_keyed = module->keyed;
    return module->results;
}

int64_t libtorch_result_index(const libtorch_module *module, const char *name)
{
    for (size_t i = 0; module->compiled && i < module->compiled->outputs.size(); i++)
        if (module->compiled->outputs[i] == name)
            return static_cast<int64_t>(i);
    return -1;
}

TRITONSERVER_Error *libtorch_call_new(libtorch_module *module, libtorch_call **ret_call)
{
    return guarded("", [&] {
        std::optional<jit::Method> forward;
        if (!module->compiled)
            forward = module->module.get_method("forward");
        *ret_call = new libtorch_call{module, forward, {}, {}, {}, {}};
    });
}

void libtorch_call_free(libtorch_call *call)
{
    delete call;
}

TRITONSERVER_Error *libtorch_call_begin(libtorch_call *call, size_t count, void *stream)
{
    return guarded("", [&] {
        /* PyTorch names a stream that is not its own by its address. */
        if (call->of->device != at::kCPU)
            call->stream = c10::Stream(c10::Stream::UNSAFE, call->of->device,
                                       reinterpret_cast<c10::StreamId>(stream));
        call->arguments.assign(count, c10::IValue());
        for (size_t i = 0; i < count; i++) {
            libtorch_kind kind = call->of->arguments[i].kind;
            if (kind == LIBTORCH_STRINGS)
                call->arguments[i] = c10::List<std::string>();
            else if (kind == LIBTORCH_LIST)
                call->arguments[i] = c10::List<at::Tensor>();
            else if (kind == LIBTORCH_DICT)
                call->arguments[i] = c10::Dict<std::string, at::Tensor>();
        }
    });
}

TRITONSERVER_Error *libtorch_call_room(libtorch_call *call, uint64_t size, void **ret)
{
    return guarded("PyTorch execute failure: ", [&] {
        c10::StreamGuard on(*call->stream);
        call->rooms.push_back(at::empty({static_cast<int64_t>(size)},
                                        at::TensorOptions(at::kByte).device(call->of->device)));
        *ret = call->rooms.back().mutable_data_ptr();
    });
}

TRITONSERVER_Error *libtorch_call_tensor(libtorch_call *call, size_t argument, const char *key,
                                         TRITONSERVER_DataType datatype, const int64_t *shape,
                                         size_t rank, bool on_gpu, const void *data)
{
    return guarded("PyTorch execute failure: ", [&] {
        c10::OptionalStreamGuard on(call->stream);
        const at::Device device = on_gpu ? call->of->device : at::Device(at::kCPU);
        const at::IntArrayRef dims(shape, rank);
        const at::TensorOptions options = at::TensorOptions(*type_of(datatype)).device(device);
        /* On a GPU, PyTorch asks whose memory it is, which no memory has no answer to. */
        at::Tensor tensor = c10::multiply_integers(dims)
                                ? at::from_blob(const_cast<void *>(data), dims, options)
                                : at::empty(dims, options);
        if (!call->of->lends)
            tensor = tensor.clone();
        c10::IValue &slot = call->arguments[argument];
        libtorch_kind kind = call->of->arguments[argument].kind;
        if (kind == LIBTORCH_LIST)
            slot.toTensorList().push_back(tensor);
        else if (kind == LIBTORCH_DICT)
            slot.toGenericDict().insert(std::string(key), tensor);
        else if (kind == LIBTORCH_NUMBER)
            slot = number_of(tensor, call->of->types[argument]);
        else
            slot = std::move(tensor);
    });
}

TRITONSERVER_Error *libtorch_call_string(libtorch_call *call, size_t argument, const char *text,
                                         size_t length)
{
    return guarded(
        "", [&] { call->arguments[argument].toList().push_back(std::string(text, length)); });
}

TRITONSERVER_Error *libtorch_call_run(libtorch_call *call, const libtorch_mode *mode)
{
    return guarded("PyTorch execute failure: ", [&] {
        c10::OptionalStreamGuard on(call->stream);
        c10::InferenceMode inference(mode->inference);
        at::NoGradGuard no_gradients;
        if (call->of->compiled) {
            run_package(call);
            return;
        }
        apply(*mode);
        int room = TREE_MOST_VALUES;
        collect((*call->forward)(std::move(call->arguments)), "", false, call->leaves, 0, room);
    });
}

size_t libtorch_call_count(const libtorch_call *call)
{
    return call->leaves.size();
}

const char *libtorch_call_key(const libtorch_call *call, size_t index)
{
    return call->leaves[index].keyed ? call->leaves[index].key.c_str() : nullptr;
}

TRITONSERVER_Error *libtorch_call_check_names(const libtorch_call *call)
{
    return guarded("", [&] {
        std::unordered_set<std::string> names;
        for (size_t i = 0; i < call->leaves.size(); i++) {
            const leaf &found = call->leaves[i];
            const std::string name = found.keyed ? found.key : "OUTPUT__" + std::to_string(i);
            if (!names.insert(name).second)
                throw std::runtime_error("the model gives back two results named '" + name +
                                         "': name the outputs in the configuration, as "
                                         "<name>__<index>");
        }
    });
}

TRITONSERVER_Error *libtorch_call_result(libtorch_call *call, size_t index,
                                         libtorch_result *ret_result)
{
    return guarded("PyTorch execute failure: ", [&] {
        c10::OptionalStreamGuard on(call->stream);
        leaf &found = call->leaves[index];
        *ret_result = {LIBTORCH_OTHER,
                       libtorch_call_key(call, index),
                       TRITONSERVER_TYPE_INVALID,
                       nullptr,
                       0,
                       nullptr,
                       false,
                       0};
        if (found.value.isTensor() && found.value.toTensor().defined()) {
            found.value = in_memory(found.value.toTensor(), call->of->device);
            const at::Tensor &tensor = found.value.toTensor();
            ret_result->kind = LIBTORCH_TENSOR;
            ret_result->datatype = datatype_of(tensor.scalar_type());
            ret_result->shape = tensor.sizes().data();
            ret_result->rank = tensor.sizes().size();
            ret_result->data = tensor.const_data_ptr();
            ret_result->on_gpu = !tensor.is_cpu();
        } else if (found.value.isList()) {
            ret_result->kind = LIBTORCH_STRINGS;
            ret_result->datatype = TRITONSERVER_TYPE_BYTES;
            ret_result->count = found.value.toListRef().size();
        }
    });
}

void libtorch_call_result_string(const libtorch_call *call, size_t index, size_t at,
                                 const char **ret_text, size_t *ret_length)
{
    const std::string &text = call->leaves[index].value.toListRef()[at].toStringRef();
    *ret_text = text.data();
    *ret_length = text.size();
}

void libtorch_call_end(libtorch_call *call)
{
    call->arguments.clear();
    call->leaves.clear();
    call->rooms.clear();
}
