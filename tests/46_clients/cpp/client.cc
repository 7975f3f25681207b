// A client over gRPC C++; what it asks is in ../checks.md.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "proto/grpc_service.grpc.pb.h"
#include "proto/health.grpc.pb.h"

namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using Values = std::vector<float>;

void check(const char *name, bool ok, const std::string &found = "")
{
    if (ok)
        return;
    std::cerr << name << ": found " << found << "\n";
    std::exit(1);
}

void check(const char *name, const grpc::Status &status)
{
    check(name, status.ok(), std::to_string(status.error_code()) + " " + status.error_message());
}

void passed(const char *name)
{
    std::cout << "ok " << name << "\n";
}

std::string raw(const Values &values)
{
    return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)};
}

Values count(std::size_t n)
{
    Values values(n);
    std::iota(values.begin(), values.end(), 0.0F);
    return values;
}

void add_input(ModelInferRequest &request, const std::string &name, const std::vector<int64_t> &shape)
{
    auto *input = request.add_inputs();
    input->set_name(name);
    input->set_datatype("FP32");
    for (int64_t dim : shape)
        input->add_shape(dim);
}

ModelInferRequest raw_request(const std::string &id, const Values &values)
{
    ModelInferRequest request;
    request.set_model_name("id_fp32");
    request.set_id(id);
    add_input(request, "INPUT0", {static_cast<int64_t>(values.size())});
    request.add_raw_input_contents(raw(values));
    return request;
}

void about(const std::shared_ptr<grpc::Channel> &channel, GRPCInferenceService::Stub &server)
{
    {
        grpc::ClientContext context;
        inference::ServerLiveResponse answer;
        check("live", server.ServerLive(&context, {}, &answer));
        check("live", answer.live());
        passed("live");
    }
    {
        grpc::ClientContext context, model_context;
        inference::ServerReadyResponse answer;
        check("ready", server.ServerReady(&context, {}, &answer));
        inference::ModelReadyRequest request;
        request.set_name("id_fp32");
        inference::ModelReadyResponse model;
        check("ready", server.ModelReady(&model_context, request, &model));
        check("ready", answer.ready() && model.ready());
        passed("ready");
    }
    {
        grpc::ClientContext context;
        grpc::health::v1::HealthCheckResponse answer;
        check("health", grpc::health::v1::Health::NewStub(channel)->Check(&context, {}, &answer));
        check("health", answer.status() == grpc::health::v1::HealthCheckResponse::SERVING);
        passed("health");
    }
    {
        grpc::ClientContext context;
        inference::ServerMetadataResponse answer;
        check("server", server.ServerMetadata(&context, {}, &answer));
        const auto &known = answer.extensions();
        bool binary = std::find(known.begin(), known.end(), "binary_tensor_data") != known.end();
        check("server", !answer.name().empty() && !answer.version().empty() && binary, answer.DebugString());
        passed("server");
    }
    {
        grpc::ClientContext context;
        inference::ModelMetadataRequest request;
        request.set_name("id_fp32");
        inference::ModelMetadataResponse answer;
        check("model", server.ModelMetadata(&context, request, &answer));
        check("model", answer.name() == "id_fp32" && answer.inputs_size() == 1, answer.DebugString());
        const auto &input = answer.inputs(0);
        check("model", input.name() == "INPUT0" && input.datatype() == "FP32" && input.shape_size() == 1 &&
                           input.shape(0) == -1, answer.DebugString());
        passed("model");
    }
}

void same(const char *name, GRPCInferenceService::Stub &server, const ModelInferRequest &request,
          const std::vector<std::string> &expected)
{
    grpc::ClientContext context;
    ModelInferResponse answer;
    check(name, server.ModelInfer(&context, request, &answer));
    check(name, answer.id() == request.id(), answer.id());
    const auto &found = answer.raw_output_contents();
    check(name, std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
    passed(name);
}

void infer(GRPCInferenceService::Stub &server)
{
    const Values values = {1.5F, -2.0F, 1e30F};
    same("infer-raw", server, raw_request("raw", values), {raw(values)});

    ModelInferRequest typed = raw_request("", count(1000));
    typed.clear_raw_input_contents();
    for (float value : count(1000))
        typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(value);
    same("infer-typed", server, typed, {raw(count(1000))});

    const std::vector<std::string> both = {raw(count(6)), raw({6, 5, 4, 3, 2, 1})};
    ModelInferRequest two;
    two.set_model_name("id_two");
    add_input(two, "INPUT0", {2, 3});
    add_input(two, "INPUT1", {2, 3});
    for (const auto &bytes : both)
        two.add_raw_input_contents(bytes);
    same("infer-two", server, two, both);
    same("infer-large", server, raw_request("large", count(1000000)), {raw(count(1000000))});
}

grpc::Status failure(GRPCInferenceService::Stub &server, const ModelInferRequest &request)
{
    grpc::ClientContext context;
    ModelInferResponse answer;
    return server.ModelInfer(&context, request, &answer);
}

void refused(GRPCInferenceService::Stub &server)
{
    ModelInferRequest unknown = raw_request("", count(3));
    unknown.set_model_name("nobody");
    grpc::Status status = failure(server, unknown);
    check("unknown", status.error_code() == grpc::StatusCode::NOT_FOUND &&
                         status.error_message().find("nobody") != std::string::npos, status.error_message());
    passed("unknown");

    ModelInferRequest wrong = raw_request("", count(3));
    wrong.mutable_inputs(0)->set_datatype("INT32");
    status = failure(server, wrong);
    check("wrong-type", status.error_code() == grpc::StatusCode::INVALID_ARGUMENT, status.error_message());
    passed("wrong-type");

    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    inference::ServerReadyResponse answer;
    check("deadline", server.ServerReady(&context, {}, &answer));
    check("deadline", answer.ready());
    passed("deadline");
}

void stream(GRPCInferenceService::Stub &server)
{
    grpc::ClientContext context;
    auto calls = server.ModelStreamInfer(&context);
    for (int i = 0; i < 50; i++) {
        ModelInferRequest request = raw_request(std::to_string(i), {static_cast<float>(i)});
        if (i == 24)
            request.set_model_name("nobody");
        check("stream", calls->Write(request));
    }
    calls->WritesDone();
    inference::ModelStreamInferResponse answer;
    for (int i = 0; i < 50; i++) {
        check("stream", calls->Read(&answer), "an end after " + std::to_string(i));
        if (i == 24) {
            check("stream", answer.error_message().find("nobody") != std::string::npos, answer.DebugString());
            continue;
        }
        const ModelInferResponse &response = answer.infer_response();
        check("stream", answer.error_message().empty() && response.id() == std::to_string(i), answer.DebugString());
        check("stream", response.raw_output_contents(0) == raw({static_cast<float>(i)}), answer.DebugString());
    }
    check("stream", !calls->Read(&answer), "more answers than questions");
    check("stream", calls->Finish());
    passed("stream");
}

} // namespace

int main(int, char **argv)
{
    grpc::ChannelArguments limit;
    limit.SetMaxReceiveMessageSize(-1);
    limit.SetMaxSendMessageSize(-1);
    auto channel = grpc::CreateCustomChannel(argv[1], grpc::InsecureChannelCredentials(), limit);
    auto server = GRPCInferenceService::NewStub(channel);
    about(channel, *server);
    infer(*server);
    refused(*server);
    stream(*server);
    return 0;
}
