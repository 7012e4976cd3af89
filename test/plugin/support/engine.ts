import grpc from "@grpc/grpc-js";
import engineRpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import type proto from "@pulumi/pulumi/proto/engine_pb.js";
import emptyProto from "google-protobuf/google/protobuf/empty_pb.js";

/** A fake Pulumi engine. It implements the engine methods that plugins call. */
interface TestEngine {
  readonly address: string;
  /** Log messages that the plugins sent. */
  readonly messages: readonly proto.LogRequest.AsObject[];
  stop(): void;
}

/** Starts a fake engine that records the log messages of plugins. */
export async function startEngine(): Promise<TestEngine> {
  const messages: proto.LogRequest.AsObject[] = [];
  const server = new grpc.Server();
  const log: grpc.handleUnaryCall<proto.LogRequest, emptyProto.Empty> = ({ request }, done) => {
    messages.push(request.toObject());
    done(null, new emptyProto.Empty());
  };
  server.addService(engineRpc.EngineService as unknown as grpc.ServiceDefinition, { log } as never);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  return { address: `127.0.0.1:${port}`, messages, stop: () => server.forceShutdown() };
}
