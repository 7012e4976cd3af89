import { GatehouseError, printedError } from "@gatehouse-access/sdk/errors";
import grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import statusProto from "@pulumi/pulumi/proto/status_pb.js";
import anyProto from "google-protobuf/google/protobuf/any_pb.js";
import type { UnfinishedError } from "../../resources/definition.ts";
import { masked } from "../instanceSettings.ts";
import type { structOf } from "./values.ts";

type Struct = ReturnType<typeof structOf>;

/** An object that was made but not completed: the engine keeps it, and the next run updates it. */
export class InitFailedError extends Error {
  override readonly name = "InitFailedError";
  readonly id: string;
  readonly reason: string;
  readonly state: Struct;
  readonly inputs: Struct;

  constructor(failure: UnfinishedError, state: Struct, inputs: Struct) {
    super(failure.message, { cause: failure });
    this.id = failure.id;
    this.reason = failure.reason;
    this.state = state;
    this.inputs = inputs;
  }
}

/** Nothing is begun after the run was cancelled. */
export class CancelledError extends Error {
  override readonly name = "CancelledError";

  constructor() {
    super("the run was cancelled");
  }
}

/** The service refused the credential that an instance has among its inputs. */
export class InstanceCredentialError extends GatehouseError {
  override readonly name = "InstanceCredentialError";

  constructor(instance: string, cause: GatehouseError) {
    const remedy = `the provider instance "${instance}" has this credential from the program, or from the state where no program runs: once it is changed in the program, pulumi refresh and destroy use it with --run-program, and gatehouse by itself`;
    super({ ...cause.toJSON(), remedy }, { cause }, `${cause.message}; ${remedy}`);
  }
}

/**
 * An error as gRPC answers it.
 * @param secrets texts that it must not show
 */
export function statusOf(error: unknown, secrets: readonly string[]): Partial<grpc.StatusObject> {
  const details = masked(printedError(error), secrets);
  if (error instanceof CancelledError) return { code: grpc.status.CANCELLED, details };
  const code = grpc.status.UNKNOWN;
  if (!(error instanceof InitFailedError)) return { code, details };
  return { code, details, metadata: initFailure(error, masked(error.reason, secrets)) };
}

function initFailure(error: InitFailedError, reason: string): grpc.Metadata {
  const detail = new proto.ErrorResourceInitFailed();
  detail.setId(error.id);
  detail.setProperties(error.state);
  detail.setInputs(error.inputs);
  detail.setReasonsList([reason]);
  const packed = new anyProto.Any();
  packed.pack(detail.serializeBinary(), "pulumirpc.ErrorResourceInitFailed");
  const status = new statusProto.Status();
  status.setCode(grpc.status.UNKNOWN);
  status.setMessage(error.message);
  status.addDetails(packed);
  const metadata = new grpc.Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from(status.serializeBinary()));
  return metadata;
}
