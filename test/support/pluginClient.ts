import grpc from "@grpc/grpc-js";
import rpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import statusProto from "@pulumi/pulumi/proto/status_pb.js";
import structProto from "google-protobuf/google/protobuf/struct_pb.js";

type Values = Record<string, unknown>;
type Struct = InstanceType<typeof structProto.Struct>;
type Client = InstanceType<typeof rpc.ResourceProviderClient>;

/** A plugin, as an engine calls it. */
export class PluginClient {
  readonly #client: Client;

  constructor(port: number) {
    this.#client = new rpc.ResourceProviderClient(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
      "grpc.enable_http_proxy": 0,
    });
  }

  /** Calls a method; rejects with the error of gRPC. */
  ask<Answer = unknown>(method: Exclude<keyof Client, keyof grpc.Client>, request: unknown): Promise<Answer> {
    type Method = (request: unknown, done: (error: Error | null, answer: unknown) => void) => unknown;
    return new Promise((resolve, reject) => {
      (this.#client[method] as Method).call(this.#client, request, (error, answer) =>
        error ? reject(error) : resolve(answer as Answer),
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}

/** Values as a message. */
export const structOf = (values: Values): Struct =>
  structProto.Struct.fromJavaScript(JSON.parse(JSON.stringify(values)));

/** The values in a message, as they are. */
export const valuesIn = (struct: Struct | undefined): Values => (struct?.toJavaScript() ?? {}) as Values;

/** The object that was made but not completed, which an error of gRPC tells; undefined for other errors. */
export function initFailureIn(error: unknown): proto.ErrorResourceInitFailed | undefined {
  const [bytes] = (error as grpc.ServiceError).metadata?.get("grpc-status-details-bin") ?? [];
  if (!Buffer.isBuffer(bytes)) return undefined;
  const [detail] = statusProto.Status.deserializeBinary(bytes).getDetailsList();
  return detail && proto.ErrorResourceInitFailed.deserializeBinary(detail.getValue_asU8());
}
