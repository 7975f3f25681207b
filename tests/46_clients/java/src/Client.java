// A client over grpc-java; what it asks is in ../../checks.md.

import com.google.protobuf.ByteString;
import grpc.health.v1.HealthGrpc;
import grpc.health.v1.HealthOuterClass.HealthCheckRequest;
import grpc.health.v1.HealthOuterClass.HealthCheckResponse;
import inference.GRPCInferenceServiceGrpc;
import inference.GrpcService.ModelInferRequest;
import inference.GrpcService.ModelInferResponse;
import inference.GrpcService.ModelMetadataRequest;
import inference.GrpcService.ModelReadyRequest;
import inference.GrpcService.ModelStreamInferResponse;
import inference.GrpcService.ServerLiveRequest;
import inference.GrpcService.ServerMetadataRequest;
import inference.GrpcService.ServerReadyRequest;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.StreamObserver;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

public final class Client {
    private final ManagedChannel channel;
    private final GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub server;

    private Client(ManagedChannel channel) {
        this.channel = channel;
        server = GRPCInferenceServiceGrpc.newBlockingStub(channel);
    }

    private static void check(String name, boolean ok, Object found) {
        if (!ok) {
            throw new IllegalStateException(name + ": found " + found);
        }
    }

    private static void passed(String name) {
        System.out.println("ok " + name);
    }

    private static ByteString raw(float... values) {
        ByteBuffer out = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            out.putFloat(value);
        }
        return ByteString.copyFrom(out.flip());
    }

    private static float[] count(int n) {
        float[] values = new float[n];
        IntStream.range(0, n).forEach(i -> values[i] = i);
        return values;
    }

    private static ModelInferRequest.InferInputTensor.Builder input(String name, long... shape) {
        var tensor = ModelInferRequest.InferInputTensor.newBuilder().setName(name).setDatatype("FP32");
        for (long dim : shape) {
            tensor.addShape(dim);
        }
        return tensor;
    }

    private static ModelInferRequest.Builder rawRequest(String id, float... values) {
        return ModelInferRequest.newBuilder().setModelName("id_fp32").setId(id)
            .addInputs(input("INPUT0", values.length)).addRawInputContents(raw(values));
    }

    private void about() {
        var live = server.serverLive(ServerLiveRequest.getDefaultInstance());
        check("live", live.getLive(), live);
        passed("live");
        var ready = server.serverReady(ServerReadyRequest.getDefaultInstance());
        var model = server.modelReady(ModelReadyRequest.newBuilder().setName("id_fp32").build());
        check("ready", ready.getReady() && model.getReady(), model);
        passed("ready");
        var state = HealthGrpc.newBlockingStub(channel).check(HealthCheckRequest.getDefaultInstance());
        check("health", state.getStatus() == HealthCheckResponse.ServingStatus.SERVING, state);
        passed("health");
        var metadata = server.serverMetadata(ServerMetadataRequest.getDefaultInstance());
        check("server", !metadata.getName().isEmpty() && !metadata.getVersion().isEmpty()
            && metadata.getExtensionsList().contains("binary_tensor_data"), metadata);
        passed("server");
        var described = server.modelMetadata(ModelMetadataRequest.newBuilder().setName("id_fp32").build());
        check("model", described.getName().equals("id_fp32") && described.getInputsCount() == 1, described);
        var in = described.getInputs(0);
        check("model", in.getName().equals("INPUT0") && in.getDatatype().equals("FP32")
            && in.getShapeList().equals(List.of(-1L)), in);
        passed("model");
    }

    private void same(String name, ModelInferRequest request, ByteString... expected) {
        ModelInferResponse answer = server.modelInfer(request);
        check(name, answer.getId().equals(request.getId()), answer.getId());
        check(name, answer.getRawOutputContentsList().equals(List.of(expected)), answer.getRawOutputContentsCount());
        passed(name);
    }

    private void infer() {
        float[] values = {1.5f, -2f, 1e30f};
        same("infer-raw", rawRequest("raw", values).build(), raw(values));
        var typed = rawRequest("", count(1000)).clearRawInputContents();
        for (float value : count(1000)) {
            typed.getInputsBuilder(0).getContentsBuilder().addFp32Contents(value);
        }
        same("infer-typed", typed.build(), raw(count(1000)));
        ByteString first = raw(count(6));
        ByteString second = raw(6, 5, 4, 3, 2, 1);
        same("infer-two", ModelInferRequest.newBuilder().setModelName("id_two")
            .addInputs(input("INPUT0", 2, 3)).addInputs(input("INPUT1", 2, 3))
            .addRawInputContents(first).addRawInputContents(second).build(), first, second);
        same("infer-large", rawRequest("large", count(1_000_000)).build(), raw(count(1_000_000)));
    }

    private Status failure(ModelInferRequest request) {
        try {
            server.modelInfer(request);
            return Status.OK;
        } catch (StatusRuntimeException error) {
            return error.getStatus();
        }
    }

    private void refused() {
        Status unknown = failure(rawRequest("", 1).setModelName("nobody").build());
        check("unknown", unknown.getCode() == Status.Code.NOT_FOUND
            && unknown.getDescription().contains("nobody"), unknown);
        passed("unknown");
        var wrong = rawRequest("", 1);
        wrong.getInputsBuilder(0).setDatatype("INT32");
        Status status = failure(wrong.build());
        check("wrong-type", status.getCode() == Status.Code.INVALID_ARGUMENT, status);
        passed("wrong-type");
        var ready = server.withDeadlineAfter(30, TimeUnit.SECONDS).serverReady(ServerReadyRequest.getDefaultInstance());
        check("deadline", ready.getReady(), ready);
        passed("deadline");
    }

    private void stream() throws InterruptedException {
        List<ModelStreamInferResponse> answers = new ArrayList<>();
        List<Throwable> errors = new ArrayList<>();
        CountDownLatch done = new CountDownLatch(1);
        var calls = GRPCInferenceServiceGrpc.newStub(channel).modelStreamInfer(new StreamObserver<>() {
            @Override
            public void onNext(ModelStreamInferResponse answer) {
                answers.add(answer);
            }

            @Override
            public void onError(Throwable error) {
                errors.add(error);
                done.countDown();
            }

            @Override
            public void onCompleted() {
                done.countDown();
            }
        });
        for (int i = 0; i < 50; i++) {
            calls.onNext(rawRequest(Integer.toString(i), i).setModelName(i == 24 ? "nobody" : "id_fp32").build());
        }
        calls.onCompleted();
        check("stream", done.await(60, TimeUnit.SECONDS) && errors.isEmpty(), errors);
        check("stream", answers.size() == 50, answers.size());
        for (int i = 0; i < 50; i++) {
            ModelStreamInferResponse answer = answers.get(i);
            if (i == 24) {
                check("stream", answer.getErrorMessage().contains("nobody"), answer);
                continue;
            }
            ModelInferResponse response = answer.getInferResponse();
            check("stream", answer.getErrorMessage().isEmpty()
                && response.getId().equals(Integer.toString(i)), answer);
            check("stream", response.getRawOutputContents(0).equals(raw(i)), answer);
        }
        passed("stream");
    }

    public static void main(String[] arguments) throws InterruptedException {
        ManagedChannel channel = NettyChannelBuilder.forTarget(arguments[0]).usePlaintext()
            .maxInboundMessageSize(Integer.MAX_VALUE).build();
        Client client = new Client(channel);
        client.about();
        client.infer();
        client.refused();
        client.stream();
        check("shutdown", channel.shutdown().awaitTermination(30, TimeUnit.SECONDS), "a channel that stays");
    }
}
