// Caffe2 itself, in a process of its own: computes what the tests compare with. It is declared here as far as it is used, since the
// package with its library has no headers.
//
//     caffe2_peer <questions >answers
//
// A question is a NetDef behind its length, and the name of a blob that it computes behind its length; an answer is the blob as Caffe2
// writes it (a BlobProto), or the text of an error, behind its length and a byte that is 0 for a blob.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <memory>
#include <string>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace caffe2 {
class Blob;

class NetDef {
public:
    NetDef();
    ~NetDef();

private:
    alignas(16) char content_[1024]; // larger than it is
};

class Workspace {
public:
    bool RunNetOnce(const NetDef &net);
    const Blob *GetBlob(const std::string &name) const;
};

struct PredictorParameters;
struct PredictorConfig {
    std::shared_ptr<PredictorParameters> parameters;
    std::shared_ptr<NetDef> predict_net;
    std::vector<std::string> input_names, output_names, parameter_names;
    std::shared_ptr<Workspace> ws;
};

bool ParseProtoFromLargeString(const std::string &bytes, google::protobuf::Message *message);
PredictorConfig makePredictorConfig(const NetDef &init, const NetDef &run, Workspace *parent,
                                    bool run_init, int optimization);
std::string SerializeBlob(const Blob &blob, const std::string &name);
} // namespace caffe2

static bool take(std::string &text)
{
    uint32_t size;
    if (fread(&size, sizeof size, 1, stdin) != 1)
        return false;
    text.resize(size);
    return size == 0 || fread(text.data(), size, 1, stdin) == 1;
}

static void give(char kind, const std::string &text)
{
    uint32_t size = static_cast<uint32_t>(text.size());
    fwrite(&size, sizeof size, 1, stdout);
    fwrite(&kind, 1, 1, stdout);
    fwrite(text.data(), 1, size, stdout);
    fflush(stdout);
}

static std::string compute(const std::string &bytes, const std::string &blob)
{
    caffe2::NetDef nothing, net;
    if (!caffe2::ParseProtoFromLargeString(bytes, reinterpret_cast<google::protobuf::Message *>(&net)))
        throw std::runtime_error("no NetDef");
    // Nobody else makes workspaces where they are not declared.
    caffe2::PredictorConfig config = caffe2::makePredictorConfig(nothing, nothing, nullptr, true, 0);
    if (!config.ws->RunNetOnce(net))
        throw std::runtime_error("the network failed");
    const caffe2::Blob *found = config.ws->GetBlob(blob);
    if (!found)
        throw std::runtime_error("no such blob");
    return caffe2::SerializeBlob(*found, blob);
}

int main()
{
    std::string bytes, blob;
    while (take(bytes) && take(blob)) {
        try {
            give(0, compute(bytes, blob));
        } catch (const std::exception &error) {
            give(1, error.what());
        }
    }
    return 0;
}
