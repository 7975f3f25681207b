// A client over google.golang.org/grpc; what it asks is in ../checks.md.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	health "nereid/tests/clients/go/health"
	pb "nereid/tests/clients/go/inference"
)

func check(name string, ok bool, found any) {
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: found %v\n", name, found)
		os.Exit(1)
	}
}

func must(name string, err error) {
	check(name, err == nil, err)
}

func raw(values []float32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, value := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(value))
	}
	return out
}

func count(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i)
	}
	return values
}

func input(name string, shape ...int64) *pb.ModelInferRequest_InferInputTensor {
	return &pb.ModelInferRequest_InferInputTensor{Name: name, Datatype: "FP32", Shape: shape}
}

func rawRequest(id string, values []float32) *pb.ModelInferRequest {
	return &pb.ModelInferRequest{
		ModelName:        "id_fp32",
		Id:               id,
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{input("INPUT0", int64(len(values)))},
		RawInputContents: [][]byte{raw(values)},
	}
}

func about(ctx context.Context, conn *grpc.ClientConn, server pb.GRPCInferenceServiceClient) {
	live, err := server.ServerLive(ctx, &pb.ServerLiveRequest{})
	must("live", err)
	check("live", live.Live, live)
	ready, err := server.ServerReady(ctx, &pb.ServerReadyRequest{})
	must("ready", err)
	model, err := server.ModelReady(ctx, &pb.ModelReadyRequest{Name: "id_fp32"})
	must("ready", err)
	check("ready", ready.Ready && model.Ready, model)
	state, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{})
	must("health", err)
	check("health", state.Status == health.HealthCheckResponse_SERVING, state)
	metadata, err := server.ServerMetadata(ctx, &pb.ServerMetadataRequest{})
	must("server", err)
	check("server", metadata.Name != "" && metadata.Version != "" &&
		slices.Contains(metadata.Extensions, "binary_tensor_data"), metadata)
	described, err := server.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: "id_fp32"})
	must("model", err)
	check("model", described.Name == "id_fp32" && len(described.Inputs) == 1, described)
	in := described.Inputs[0]
	check("model", in.Name == "INPUT0" && in.Datatype == "FP32" && slices.Equal(in.Shape, []int64{-1}), in)
	for _, name := range []string{"live", "ready", "health", "server", "model"} {
		fmt.Println("ok", name)
	}
}

func infer(ctx context.Context, server pb.GRPCInferenceServiceClient) {
	same := func(name string, request *pb.ModelInferRequest, expected ...[]byte) {
		answer, err := server.ModelInfer(ctx, request)
		must(name, err)
		check(name, answer.Id == request.Id && slices.EqualFunc(answer.RawOutputContents, expected, bytes.Equal), len(answer.RawOutputContents))
		fmt.Println("ok", name)
	}
	values := []float32{1.5, -2, 1e30}
	same("infer-raw", rawRequest("raw", values), raw(values))

	typed := rawRequest("", count(1000))
	typed.RawInputContents = nil
	typed.Inputs[0].Contents = &pb.InferTensorContents{Fp32Contents: count(1000)}
	same("infer-typed", typed, raw(count(1000)))

	first, second := raw(count(6)), raw([]float32{6, 5, 4, 3, 2, 1})
	same("infer-two", &pb.ModelInferRequest{
		ModelName:        "id_two",
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{input("INPUT0", 2, 3), input("INPUT1", 2, 3)},
		RawInputContents: [][]byte{first, second},
	}, first, second)
	same("infer-large", rawRequest("large", count(1_000_000)), raw(count(1_000_000)))
}

func refused(ctx context.Context, server pb.GRPCInferenceServiceClient) {
	unknown := rawRequest("", count(3))
	unknown.ModelName = "nobody"
	_, err := server.ModelInfer(ctx, unknown)
	check("unknown", status.Code(err) == codes.NotFound && strings.Contains(err.Error(), "nobody"), err)
	fmt.Println("ok unknown")
	wrong := rawRequest("", count(3))
	wrong.Inputs[0].Datatype = "INT32"
	_, err = server.ModelInfer(ctx, wrong)
	check("wrong-type", status.Code(err) == codes.InvalidArgument, err)
	fmt.Println("ok wrong-type")
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ready, err := server.ServerReady(limited, &pb.ServerReadyRequest{})
	must("deadline", err)
	check("deadline", ready.Ready, ready)
	fmt.Println("ok deadline")
}

func stream(ctx context.Context, server pb.GRPCInferenceServiceClient) {
	calls, err := server.ModelStreamInfer(ctx)
	must("stream", err)
	for i := range 50 {
		request := rawRequest(fmt.Sprint(i), []float32{float32(i)})
		if i == 24 {
			request.ModelName = "nobody"
		}
		must("stream", calls.Send(request))
	}
	must("stream", calls.CloseSend())
	for i := range 50 {
		answer, err := calls.Recv()
		must("stream", err)
		if i == 24 {
			check("stream", strings.Contains(answer.ErrorMessage, "nobody"), answer)
			continue
		}
		check("stream", answer.ErrorMessage == "" && answer.InferResponse.Id == fmt.Sprint(i), answer)
		check("stream", bytes.Equal(answer.InferResponse.RawOutputContents[0], raw([]float32{float32(i)})), answer)
	}
	_, err = calls.Recv()
	check("stream", err == io.EOF, err)
	fmt.Println("ok stream")
}

func main() {
	limit := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32))
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()), limit)
	must("connect", err)
	defer conn.Close()
	ctx := context.Background()
	server := pb.NewGRPCInferenceServiceClient(conn)
	about(ctx, conn, server)
	infer(ctx, server)
	refused(ctx, server)
	stream(ctx, server)
}
