import { GatehouseError } from "@gatehouse-access/sdk/errors";
import grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import statusProto from "@pulumi/pulumi/proto/status_pb.js";
import anyProto from "google-protobuf/google/protobuf/any_pb.js";
import type { UnfinishedError } from "../../model/unfinishedError.ts";
import { masked } from "../instanceSettings.ts";
import type { structOf } from "./values.ts";

type Struct = ReturnType<typeof structOf>;

/**
 * Thrown for an object that was created but is incomplete. The engine keeps the object, and the next run updates it.
 */
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

/** Thrown for an operation that was requested after the run was cancelled. */
export class CancelledError extends Error {
  override readonly name = "CancelledError";

  constructor() {
    super("the run was cancelled");
  }
}

/** Thrown when the service rejects the credential in an instance's inputs. */
export class InstanceCredentialError extends GatehouseError {
  override readonly name = "InstanceCredentialError";

  constructor(instance: string, cause: GatehouseError) {
    const remedy = `The credential of the provider instance "${instance}" comes from the program, or from the state if no program runs. Change it in the program, and run pulumi refresh or destroy with --run-program (gatehouse runs the program automatically)`;
    super({ ...cause.toJSON(), remedy }, { cause }, `${cause.message} ${remedy}.`);
  }
}

/**
 * Converts an error to a gRPC status.
 * @param secrets the strings to mask
 */
export function statusOf(error: unknown, secrets: readonly string[]): Partial<grpc.StatusObject> {
  const details = masked(error, secrets);
  if (error instanceof CancelledError) return { code: grpc.status.CANCELLED, details };
  const code = grpc.status.UNKNOWN;
  if (!(error instanceof InitFailedError)) return { code, details };
  return { code, details, metadata: initFailure(error, masked(error.cause, secrets, error.reason)) };
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
