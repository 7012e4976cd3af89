import grpc from "@grpc/grpc-js";
import rpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import statusProto from "@pulumi/pulumi/proto/status_pb.js";
import { EngineError } from "../../errors.ts";
import type { Diagnostic } from "../../model.ts";
import type { Project } from "../../project/project.ts";
import { configProps, type StackConfig } from "../../project/stackConfig.ts";
import { type Props, plainProps } from "../../value.ts";
import { sdkPath } from "./sdkPath.ts";
import { type Child, startNode } from "./sdkProcess.ts";
import { fromStruct, toStruct } from "./struct.ts";

/** Larger than any message a program should send; the default of 4 MB is not. */
export const MESSAGE_LIMITS = {
  "grpc.max_receive_message_length": 400 * 1024 * 1024,
  "grpc.max_send_message_length": 400 * 1024 * 1024,
};

/** A provider made or changed the object but reports it not in order; `props` is what it left. */
export class PartialFailure extends Error {
  readonly id: string;
  readonly props: Props;
  readonly reasons: string[];
  constructor(message: string, id: string, props: Props, reasons: string[]) {
    super(message);
    this.id = id;
    this.props = props;
    this.reasons = reasons;
  }
}

/** The provider's process went away in the middle of a call: nobody knows what became of the object. */
export class ProviderGoneError extends Error {
  constructor() {
    super("The dynamic provider's process ended before it answered.");
  }
}

/** Which resource a call is about. */
export type Target = { urn: string; type: string; name: string };

/** What a provider's diff says. */
export type ProviderDiff = {
  changes: "none" | "some" | "unknown";
  replaces: string[];
  deleteBeforeReplace: boolean;
};

type Client = InstanceType<typeof rpc.ResourceProviderClient>;

/** The SDK's process that runs dynamic providers. Properties go in without secret marks and come back so. */
export class DynamicProvider {
  readonly #child: Child;
  readonly #client: Client;

  private constructor(child: Child, client: Client) {
    this.#child = child;
    this.#client = client;
  }

  /** Starts and configures the process. Throws EngineError where it does not come up. */
  static async start(options: {
    project: Project;
    config: StackConfig;
    env: NodeJS.ProcessEnv;
    engineAddress: string;
    onDiagnostic: (diagnostic: Diagnostic) => void;
  }): Promise<DynamicProvider> {
    const { project, config } = options;
    const stderr: string[] = [];
    let port: ((line: string) => void) | undefined;
    const listening = new Promise<string>((resolve) => {
      port = resolve;
    });
    const child = startNode(
      sdkPath(project.programFolder, "cmd/dynamic-provider/index.js"),
      [options.engineAddress],
      {
        cwd: project.programFolder,
        env: { ...options.env, PULUMI_NODEJS_PROJECT: project.name },
        onStdout(line) {
          if (port) {
            port(line);
            port = undefined;
          } else options.onDiagnostic({ severity: "info", message: line });
        },
        onStderr(line) {
          stderr.push(line);
          if (stderr.length > 50) stderr.shift();
          options.onDiagnostic({ severity: "debug", message: line });
        },
      },
    );
    const ended = child.exited.then(() => {
      throw new EngineError(
        "provider",
        `The dynamic provider's process ended at once.\n${stderr.join("\n")}`,
      );
    });
    ended.catch(() => {});
    const address = `127.0.0.1:${(await Promise.race([listening, ended])).trim()}`;
    const client = new rpc.ResourceProviderClient(address, grpc.credentials.createInsecure(), MESSAGE_LIMITS);
    const provider = new DynamicProvider(child, client);
    const request = new proto.ConfigureRequest();
    request.setArgs(toStruct(configProps(config)));
    for (const [key, { text }] of config.values) {
      request.getVariablesMap().set(`pulumi-nodejs:config:${key}`, text);
    }
    request.setAcceptsecrets(true);
    request.setAcceptresources(true);
    await provider.#call<unknown>((done) => client.configure(request, done));
    return provider;
  }

  /** Validates and completes inputs. `failures` is empty where they are valid. */
  async check(
    target: Target,
    olds: Props,
    news: Props,
  ): Promise<{ inputs: Props; failures: CheckFailure[] }> {
    const request = new proto.CheckRequest();
    name(request, target);
    request.setOlds(toStruct(plainProps(olds)));
    request.setNews(toStruct(plainProps(news)));
    const response = await this.#call<InstanceType<typeof proto.CheckResponse>>((done) =>
      this.#client.check(request, done),
    );
    return {
      inputs: fromStruct(response.getInputs()),
      failures: response
        .getFailuresList()
        .map((failure) => ({ property: failure.getProperty(), reason: failure.getReason() })),
    };
  }

  /** Compares what is with what is wanted. */
  async diff(target: Target, id: string, old: OldProps, news: Props): Promise<ProviderDiff> {
    const request = new proto.DiffRequest();
    name(request, target);
    request.setId(id);
    request.setOlds(toStruct(plainProps(old.outputs)));
    request.setOldInputs(toStruct(plainProps(old.inputs)));
    request.setNews(toStruct(plainProps(news)));
    const response = await this.#call<InstanceType<typeof proto.DiffResponse>>((done) =>
      this.#client.diff(request, done),
    );
    const kinds = proto.DiffResponse.DiffChanges;
    const changes = response.getChanges();
    return {
      changes: changes === kinds.DIFF_NONE ? "none" : changes === kinds.DIFF_SOME ? "some" : "unknown",
      replaces: response.getReplacesList(),
      deleteBeforeReplace: response.getDeletebeforereplace(),
    };
  }

  /** Makes the object. Throws PartialFailure where it was made but is not in order. */
  async create(target: Target, inputs: Props): Promise<{ id: string; outputs: Props }> {
    const request = new proto.CreateRequest();
    name(request, target);
    request.setProperties(toStruct(plainProps(inputs)));
    const response = await this.#call<InstanceType<typeof proto.CreateResponse>>((done) =>
      this.#client.create(request, done),
    );
    if (response.getId() === "") throw new Error("The provider's create returned no id.");
    return { id: response.getId(), outputs: fromStruct(response.getProperties()) };
  }

  /** Changes the object in place. Throws PartialFailure like `create`. */
  async update(target: Target, id: string, old: OldProps, news: Props): Promise<{ outputs: Props }> {
    const request = new proto.UpdateRequest();
    name(request, target);
    request.setId(id);
    request.setOlds(toStruct(plainProps(old.outputs)));
    request.setOldInputs(toStruct(plainProps(old.inputs)));
    request.setNews(toStruct(plainProps(news)));
    const response = await this.#call<InstanceType<typeof proto.UpdateResponse>>((done) =>
      this.#client.update(request, done),
    );
    return { outputs: fromStruct(response.getProperties()) };
  }

  /** Reads the object; undefined where it is gone. `inputs` is undefined where the provider gives none. */
  async read(target: Target, id: string, old: OldProps): Promise<ReadResult | undefined> {
    const request = new proto.ReadRequest();
    name(request, target);
    request.setId(id);
    request.setProperties(toStruct(plainProps(old.outputs)));
    request.setInputs(toStruct(plainProps(old.inputs)));
    const response = await this.#call<InstanceType<typeof proto.ReadResponse>>((done) =>
      this.#client.read(request, done),
    );
    if (response.getId() === "") return undefined;
    const result: ReadResult = { id: response.getId(), outputs: fromStruct(response.getProperties()) };
    const inputs = response.getInputs();
    if (inputs) result.inputs = fromStruct(inputs);
    return result;
  }

  /** Removes the object. */
  async delete(target: Target, id: string, old: OldProps): Promise<void> {
    const request = new proto.DeleteRequest();
    name(request, target);
    request.setId(id);
    request.setProperties(toStruct(plainProps(old.outputs)));
    request.setOldInputs(toStruct(plainProps(old.inputs)));
    await this.#call<unknown>((done) => this.#client.delete(request, done));
  }

  /** Ends the process. */
  async stop(): Promise<void> {
    this.#client.close();
    await this.#child.stop();
  }

  #call<T>(send: (done: (error: grpc.ServiceError | null, response: T) => void) => unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      send((error, response) => {
        if (error) reject(describe(error));
        else resolve(response);
      });
    });
  }
}

/** An invalid input. */
export type CheckFailure = { property: string; reason: string };
/** What the state holds of an object. */
export type OldProps = { inputs: Props; outputs: Props };
/** What a read found. */
export type ReadResult = { id: string; outputs: Props; inputs?: Props };

type Named = { setUrn(v: string): unknown; setType(v: string): unknown; setName(v: string): unknown };

function name(request: Named, target: Target): void {
  request.setUrn(target.urn);
  request.setType(target.type);
  request.setName(target.name);
}

function describe(error: grpc.ServiceError): Error {
  const [bytes] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (Buffer.isBuffer(bytes)) {
    for (const detail of statusProto.Status.deserializeBinary(bytes).getDetailsList()) {
      if (!detail.getTypeUrl().endsWith("pulumirpc.ErrorResourceInitFailed")) continue;
      const failed = proto.ErrorResourceInitFailed.deserializeBinary(detail.getValue_asU8());
      const props = fromStruct(failed.getProperties());
      return new PartialFailure(error.details, failed.getId(), props, failed.getReasonsList());
    }
  }
  if (error.code === grpc.status.UNAVAILABLE || error.code === grpc.status.CANCELLED) {
    return new ProviderGoneError();
  }
  return new Error(error.details || error.message);
}
