/* A stand-in for TensorRT's runtime: libnvinfer without a GPU, over TensorRT's public headers, for the
 * stand-in of CUDA's driver. Its outputs are copies of inputs, queued on the stream that it is given.
 * What it does not define of TensorRT's classes is in stubs.h, which the tests make of the headers.
 *
 * A plan is lines of words:
 *   stand-in                                    the first line
 *   tensor NAME in|out TYPE FORMAT DIMS [FROM]  TYPE is float, int8 or int32; FORMAT is linear, chw4,
 *                                               dla, shape (a shape tensor) or found (an output whose
 *                                               shape only an execution tells); an output is a copy
 *                                               of the input FROM
 *   profile                                     a new one; `range` lines belong to the last
 *   range NAME MIN BEST MAX                     dimensions, of a shape tensor its values
 *   waits N                                     an execution of N rows or more waits for its stream
 * Numbers of one place are parted by commas.
 *
 * NEREID_TENSORRT_REPORT  file to which each execution appends a line: its profile, and its inputs */
#include "stubs.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace
{

using numbers = std::vector<int64_t>;

struct tensor {
    std::string name, format, from;
    bool input;
    DataType type;
    numbers dims;
};

struct range {
    numbers of[3]; /* in the order of OptProfileSelector */
    std::vector<int32_t> narrow[3];
};

struct plan {
    std::vector<tensor> tensors;
    std::vector<std::map<std::string, range>> profiles;
    int64_t waits = INT64_MAX;
};

ILogger *logger;
int (*copy)(uint64_t, uint64_t, size_t, void *);
int (*synchronize)(void *);

bool refuse(const std::string &text)
{
    logger->log(ILogger::Severity::kERROR, text.c_str());
    return false;
}

numbers parse(const std::string &text)
{
    numbers found;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, ',');)
        found.push_back(std::stoll(word));
    return found;
}

bool read_line(plan &made, const std::string &line)
{
    std::istringstream in(line);
    std::string word, kind, type, dims, least, best, most;
    in >> word;
    if (word == "tensor") {
        tensor t{};
        in >> t.name >> kind >> type >> t.format >> dims >> t.from;
        t.input = kind == "in";
        t.type = type == "int8"    ? DataType::kINT8
                 : type == "int32" ? DataType::kINT32
                                   : DataType::kFLOAT;
        t.dims = parse(dims);
        made.tensors.push_back(t);
    } else if (word == "profile") {
        made.profiles.emplace_back();
    } else if (word == "range") {
        in >> word >> least >> best >> most;
        range &r = made.profiles.back()[word];
        r.of[0] = parse(least);
        r.of[1] = parse(best);
        r.of[2] = parse(most);
        for (int i = 0; i < 3; i++)
            r.narrow[i].assign(r.of[i].begin(), r.of[i].end());
    } else if (word == "waits") {
        in >> made.waits;
    }
    return word != "";
}

Dims to_dims(const numbers &from)
{
    Dims made{};
    made.nbDims = static_cast<int32_t>(from.size());
    for (size_t i = 0; i < from.size(); i++)
        made.d[i] = from[i];
    return made;
}

const tensor &find(const plan &of, const std::string &name)
{
    for (const tensor &t : of.tensors)
        if (t.name == name)
            return t;
    fprintf(stderr, "stand-in of TensorRT: no tensor '%s'\n", name.c_str());
    abort();
}

size_t bytes_of(const tensor &t, const Dims &dims)
{
    size_t bytes = t.type == DataType::kINT8 ? 1 : 4;
    for (int32_t i = 0; i < dims.nbDims; i++)
        bytes *= static_cast<size_t>(t.format == "chw4" && i == 1 ? (dims.d[i] + 3) / 4 * 4
                                                                 : dims.d[i]);
    return bytes;
}

std::string text_of(const int64_t *from, size_t count)
{
    std::string text;
    for (size_t i = 0; i < count; i++)
        text += (i ? "," : "") + std::to_string(from[i]);
    return text;
}

struct context : StubVExecutionContext {
    explicit context(const plan &of_) : of(of_)
    {
    }

    bool setOptimizationProfileAsync(int32_t index, cudaStream_t) noexcept override
    {
        profile = static_cast<size_t>(index);
        return true;
    }

    bool setInputShape(char const *name, Dims const &dims) noexcept override
    {
        const tensor &t = find(of, name);
        const range &r = of.profiles[profile].at(name);
        for (int32_t i = 0; t.format != "shape" && i < dims.nbDims; i++)
            if (dims.d[i] < r.of[0][i] || dims.d[i] > r.of[2][i])
                return refuse("a shape that the profile does not allow");
        shapes[name] = dims;
        return true;
    }

    bool setInputTensorAddress(char const *name, void const *data) noexcept override
    {
        at[name] = data;
        return data != nullptr;
    }

    bool setTensorAddress(char const *name, void *data) noexcept override
    {
        at[name] = data;
        return data != nullptr;
    }

    bool setOutputAllocator(char const *name, IOutputAllocator *asked) noexcept override
    {
        askers[name] = asked;
        return true;
    }

    int32_t inferShapes(int32_t, char const **) noexcept override
    {
        int32_t missing = 0;
        for (const tensor &t : of.tensors)
            missing += t.input && (!shapes.count(t.name) || (t.format == "shape" && !at[t.name]));
        return missing;
    }

    Dims shape_of(const std::string &name) const
    {
        const tensor &t = find(of, name);
        return shapes.at(t.input ? name : t.from);
    }

    Dims getTensorShape(char const *name) const noexcept override
    {
        return find(of, name).format == "found" ? to_dims(find(of, name).dims) : shape_of(name);
    }

    void report()
    {
        const char *path = getenv("NEREID_TENSORRT_REPORT");
        std::string line = "profile " + std::to_string(profile);
        for (const tensor &t : of.tensors) {
            const Dims dims = t.input ? shapes.at(t.name) : Dims{};
            numbers values(dims.d, dims.d + dims.nbDims);
            const auto *shape = static_cast<const int32_t *>(at[t.name]);
            if (t.input && t.format == "shape")
                values.assign(shape, shape + dims.d[0]);
            if (t.input)
                line += " " + t.name + "=" + text_of(values.data(), values.size());
        }
        if (path)
            std::ofstream(path, std::ios::app) << line + "\n";
    }

    bool write(const tensor &t, cudaStream_t stream)
    {
        const Dims dims = shape_of(t.name);
        const void *from = at[t.from];
        const void *to = at[t.name];
        if (askers[t.name]) {
            to = askers[t.name]->reallocateOutputAsync(t.name.c_str(), nullptr, bytes_of(t, dims),
                                                       256, stream);
            askers[t.name]->notifyShape(t.name.c_str(), dims);
        }
        if (!from || !to)
            return refuse("an address is missing");
        if (t.format == "shape") {
            memcpy(const_cast<void *>(to), from, bytes_of(t, dims));
            return true;
        }
        if ((reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % 256)
            return refuse("an address is not aligned");
        return copy(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from),
                    bytes_of(t, dims), stream) == 0 ||
               refuse("cuMemcpyAsync failed");
    }

    bool enqueueV3(cudaStream_t stream) noexcept override
    {
        bool good = true;
        int64_t rows = 0;
        report();
        for (const tensor &t : of.tensors) {
            rows = t.input && t.format != "shape" ? shapes.at(t.name).d[0] : rows;
            good = good && (t.input || write(t, stream));
        }
        return good && (rows < of.waits || synchronize(stream) == 0 ||
                        refuse("an operation is not permitted while the stream is capturing"));
    }

    const plan &of;
    size_t profile = 0;
    std::map<std::string, Dims> shapes;
    std::map<std::string, const void *> at;
    std::map<std::string, IOutputAllocator *> askers;
};

/* What the caller holds: TensorRT's classes hand on what they are asked to what they have inside. */
template <typename Outer, typename Inner> struct holder : Outer {
    explicit holder(Inner *inner)
    {
        this->mImpl = inner;
    }

    ~holder() override
    {
        delete this->mImpl;
    }
};

struct engine : StubVCudaEngine {
    int32_t getNbIOTensors() const noexcept override
    {
        return static_cast<int32_t>(of.tensors.size());
    }

    char const *getIOTensorName(int32_t i) const noexcept override
    {
        return of.tensors[i].name.c_str();
    }

    DataType getTensorDataType(char const *name) const noexcept override
    {
        return find(of, name).type;
    }

    TensorIOMode getTensorIOMode(char const *name) const noexcept override
    {
        return find(of, name).input ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT;
    }

    bool isShapeInferenceIO(char const *name) const noexcept override
    {
        return find(of, name).format == "shape";
    }

    TensorFormat getTensorFormat(char const *name) const noexcept override
    {
        const std::string &format = find(of, name).format;
        return format == "chw4"  ? TensorFormat::kCHW4
               : format == "dla" ? TensorFormat::kDLA_LINEAR
                                 : TensorFormat::kLINEAR;
    }

    int32_t getTensorVectorizedDim(char const *name) const noexcept override
    {
        return find(of, name).format == "chw4" ? 1 : -1;
    }

    int32_t getTensorComponentsPerElement(char const *name) const noexcept override
    {
        return find(of, name).format == "chw4" ? 4 : 1;
    }

    Dims getTensorShape(char const *name) const noexcept override
    {
        return to_dims(find(of, name).dims);
    }

    int32_t getNbOptimizationProfiles() const noexcept override
    {
        return static_cast<int32_t>(of.profiles.size());
    }

    Dims getProfileShape(char const *name, int32_t profile,
                         OptProfileSelector which) const noexcept override
    {
        return isShapeInferenceIO(name)
                   ? getTensorShape(name)
                   : to_dims(of.profiles[profile].at(name).of[static_cast<int>(which)]);
    }

    int32_t const *narrow_values(char const *name, int32_t profile, OptProfileSelector which) const
    {
        return of.profiles[profile].at(name).narrow[static_cast<int>(which)].data();
    }

    int64_t const *wide_values(char const *name, int32_t profile, OptProfileSelector which) const
    {
        return of.profiles[profile].at(name).of[static_cast<int>(which)].data();
    }

#if NV_TENSORRT_MAJOR == 10
    int32_t const *getProfileTensorValues(char const *name, int32_t profile,
                                          OptProfileSelector which) const noexcept override
    {
        return narrow_values(name, profile, which);
    }
#endif
#if NV_TENSORRT_MAJOR > 10 || (NV_TENSORRT_MAJOR == 10 && NV_TENSORRT_MINOR >= 11)
    int64_t const *getProfileTensorValuesV2(char const *name, int32_t profile,
                                            OptProfileSelector which) const noexcept override
    {
        return wide_values(name, profile, which);
    }
#endif

    IExecutionContext *createExecutionContext(ExecutionContextAllocationStrategy) noexcept override
    {
        return new holder<IExecutionContext, VExecutionContext>(new context(of));
    }

    plan of;
};

struct runtime : StubVRuntime {
    int32_t getNbDLACores() const noexcept override
    {
        return 0;
    }

    nvinfer1::ICudaEngine *deserializeCudaEngine(void const *data,
                                                 std::size_t size) noexcept override
    {
        std::istringstream in(std::string(static_cast<const char *>(data), size));
        std::string line;
        auto made = std::make_unique<engine>();
        std::getline(in, line);
        if (line != "stand-in") {
            refuse("Serialization (magic tag does not match)");
            return nullptr;
        }
        while (std::getline(in, line))
            read_line(made->of, line);
        return new holder<ICudaEngine, VCudaEngine>(made.release());
    }
};

} // namespace

extern "C" int32_t getInferLibVersion() noexcept
{
    return NV_TENSORRT_VERSION;
}

extern "C" void *createInferRuntime_INTERNAL(void *log, int32_t) noexcept
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    logger = static_cast<ILogger *>(log);
    if (!cuda && !refuse("there is no CUDA"))
        return nullptr;
    copy = reinterpret_cast<decltype(copy)>(dlsym(cuda, "cuMemcpyAsync"));
    synchronize = reinterpret_cast<decltype(synchronize)>(dlsym(cuda, "cuStreamSynchronize"));
    return new holder<IRuntime, VRuntime>(new runtime);
}
