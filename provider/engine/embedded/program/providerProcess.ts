import grpc from "@grpc/grpc-js";
import rpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import type * as wire from "@pulumi/pulumi/proto/provider_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import statusProto from "@pulumi/pulumi/proto/status_pb.js";
import structProto from "google-protobuf/google/protobuf/struct_pb.js";
import { urnName } from "../../../urn.ts";
import { EngineError } from "../../errors.ts";
import { configProps } from "../../project.ts";
import type { RunLog } from "../../runLog.ts";
import { equal, type Known, markSecrets, type Props, plainProps } from "../../value.ts";
import { type ProcessSettings, type SdkProcess, startSdkProcess } from "./sdkProcess.ts";

/** Maximum sizes of gRPC messages, in bytes. The default of 4 MB is too small for large programs. */
export const MESSAGE_LIMITS = {
  "grpc.max_receive_message_length": 400 * 1024 * 1024,
  "grpc.max_send_message_length": 400 * 1024 * 1024,
};

/** Maximum number of output lines in the error message if the process exits. */
const LAST_LINES = 50;

/** Thrown if a provider created or changed an object, but the initialization of the object failed. */
export class InitFailedError extends Error {
  readonly id: string;
  readonly props: Props;
  readonly reasons: readonly string[];
  constructor(message: string, id: string, props: Props, reasons: readonly string[]) {
    super(message);
    this.id = id;
    this.props = props;
    this.reasons = reasons;
  }
}

/**
 * Thrown if the provider's process exits during a call. In this case, it is unknown whether the provider changed the
 * object.
 */
export class ProviderExitedError extends Error {
  constructor() {
    super("The dynamic provider's process exited before it responded.");
  }
}

interface Target {
  readonly urn: string;
  readonly type: string;
}

/** The id, inputs and outputs of an object, as far as the state or the program contains them. */
export interface KnownObject extends Known {
  readonly id?: string;
}

export interface ProviderDiff {
  readonly changes: boolean;
  readonly replaces: readonly string[];
  readonly deleteBeforeReplace: boolean;
}

interface ReadResult {
  readonly id: string;
  readonly outputs: Props;
  readonly inputs?: Props;
}

type Client = InstanceType<typeof rpc.ResourceProviderClient>;
type Done<Answer> = (error: grpc.ServiceError | null, answer: Answer) => void;

/**
 * A process of the Pulumi SDK that runs the dynamic providers of a program. `start` starts the process. The first call
 * of any other method also starts it. Requests and responses contain secrets in plaintext. Only the result of `check`
 * marks secrets.
 */
export class ProviderProcess {
  readonly #settings: ProcessSettings;
  readonly #address: string;
  readonly #log: RunLog;
  #process: SdkProcess | undefined;
  #client: Promise<Client> | undefined;

  /** @param address address of the monitor server */
  constructor(settings: ProcessSettings, address: string, log: RunLog) {
    this.#settings = settings;
    this.#address = address;
    this.#log = log;
  }

  /**
   * Starts the process. Further calls have no effect.
   * @throws EngineError (`provider`) if the process does not start; ProjectError if the SDK is not installed
   */
  start(): Promise<Client> {
    this.#client ??= this.#startClient();
    // Handles a rejection that no caller awaits. A run can end before the process is ready.
    this.#client.catch(() => {});
    return this.#client;
  }

  async stop(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    client?.close();
    await this.#process?.stop();
  }

  /**
   * Validates inputs and adds default values. The result marks secrets. @throws Error that lists all invalid inputs
   */
  async check(target: Target, oldInputs: Props, news: Props): Promise<Props> {
    const request = named(new proto.CheckRequest(), target);
    request.setOlds(sent(oldInputs));
    request.setNews(sent(news));
    const answer = await this.#call<wire.CheckResponse>((client, done) => client.check(request, done));
    const failures = answer.getFailuresList().map((failure) => {
      const property = failure.getProperty();
      return property ? `${property}: ${failure.getReason()}` : failure.getReason();
    });
    if (failures.length > 0)
      throw new AggregateError(
        failures.map((text) => new Error(text)),
        failures.join("\n"),
      );
    return markSecrets(fromStruct(answer.getInputs()), news);
  }

  /**
   * Calls the provider's `diff`, and returns whether the object must be updated or replaced. If the response does not
   * report whether the object changes, compares the old and the new inputs.
   */
  async diff(target: Target, old: KnownObject, news: Props): Promise<ProviderDiff> {
    const request = changing(new proto.DiffRequest(), target, old, news);
    const answer = await this.#call<wire.DiffResponse>((client, done) => client.diff(request, done));
    const { DIFF_NONE, DIFF_SOME } = proto.DiffResponse.DiffChanges;
    const isSame = () => equal(plainProps(old.inputs ?? {}), plainProps(news));
    const reported = answer.getChanges();
    return {
      changes: reported === DIFF_SOME || (reported !== DIFF_NONE && !isSame()),
      replaces: answer.getReplacesList(),
      deleteBeforeReplace: answer.getDeletebeforereplace(),
    };
  }

  /**
   * @throws InitFailedError if the object was created but its initialization failed; ProviderExitedError if the process
   * exits during the call
   */
  async create(target: Target, inputs: Props): Promise<{ id: string; outputs: Props }> {
    const request = named(new proto.CreateRequest(), target);
    request.setProperties(sent(inputs));
    const answer = await this.#call<wire.CreateResponse>((client, done) => client.create(request, done));
    if (answer.getId() === "") throw new Error("The provider's create returned no id.");
    return { id: answer.getId(), outputs: fromStruct(answer.getProperties()) };
  }

  /** @throws the errors of `create` */
  async update(target: Target, old: KnownObject, news: Props): Promise<{ outputs: Props }> {
    const request = changing(new proto.UpdateRequest(), target, old, news);
    const answer = await this.#call<wire.UpdateResponse>((client, done) => client.update(request, done));
    return { outputs: fromStruct(answer.getProperties()) };
  }

  /** Reads an object. Returns undefined if the object no longer exists. */
  async read(target: Target, old: KnownObject): Promise<ReadResult | undefined> {
    const request = named(new proto.ReadRequest(), target);
    request.setId(old.id ?? "");
    request.setProperties(sent(old.outputs));
    request.setInputs(sent(old.inputs));
    const answer = await this.#call<wire.ReadResponse>((client, done) => client.read(request, done));
    if (answer.getId() === "") return undefined;
    const inputs = answer.getInputs();
    return {
      id: answer.getId(),
      outputs: fromStruct(answer.getProperties()),
      ...(inputs && { inputs: fromStruct(inputs) }),
    };
  }

  async delete(old: Target & KnownObject): Promise<void> {
    const request = named(new proto.DeleteRequest(), old);
    request.setId(old.id ?? "");
    request.setProperties(sent(old.outputs));
    request.setOldInputs(sent(old.inputs));
    await this.#call<unknown>((client, done) => client.delete(request, done));
  }

  async #call<Answer>(send: (client: Client, done: Done<Answer>) => unknown): Promise<Answer> {
    const client = await this.start();
    return answerOf((done) => send(client, done));
  }

  async #startClient(): Promise<Client> {
    const client = new rpc.ResourceProviderClient(
      `127.0.0.1:${await this.#port()}`,
      grpc.credentials.createInsecure(),
      // The provider runs on this machine, so the connection to the provider must not use a proxy.
      { ...MESSAGE_LIMITS, "grpc.enable_http_proxy": 0 },
    );
    const { config } = this.#settings;
    const request = new proto.ConfigureRequest();
    request.setArgs(toStruct(configProps(config)));
    for (const [key, { text }] of config.values) {
      request.getVariablesMap().set(`pulumi-nodejs:config:${key}`, text);
    }
    request.setAcceptsecrets(true);
    request.setAcceptresources(true);
    await answerOf<unknown>((done) => client.configure(request, done));
    return client;
  }

  /** Starts the process. The process prints its port on the first line of output. */
  async #port(): Promise<string> {
    const { project, env } = this.#settings;
    const log = this.#log;
    const last: string[] = [];
    const listening = Promise.withResolvers<string>();
    let isListening = false;
    this.#process = startSdkProcess({
      programFolder: project.programFolder,
      script: "cmd/dynamic-provider/index.js",
      args: [this.#address],
      loadedFirst: ["ownPackage"],
      env: { ...env, PULUMI_NODEJS_PROJECT: project.name },
      onStdout(line) {
        if (isListening) return log.diagnostic({ severity: "info", message: line });
        isListening = true;
        listening.resolve(line.trim());
      },
      onStderr(line) {
        last.push(line);
        if (last.length > LAST_LINES) last.shift();
        log.diagnostic({ severity: "debug", message: line });
      },
    });
    const ended = this.#process.exited.then(() => {
      throw new EngineError(
        "provider",
        `The dynamic provider's process exited during its start.\n${last.join("\n")}`,
      );
    });
    ended.catch(() => {});
    return Promise.race([listening.promise, ended]);
  }
}

function answerOf<Answer>(send: (done: Done<Answer>) => unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    send((error, answer) => (error ? reject(meaning(error)) : resolve(answer)));
  });
}

const sent = (props: Props = {}): Struct => toStruct(plainProps(props));

interface Request {
  setUrn(urn: string): unknown;
  setType(type: string): unknown;
  setName(name: string): unknown;
}

function named<R extends Request>(request: R, { urn, type }: Target): R {
  request.setUrn(urn);
  request.setType(type);
  request.setName(urnName(urn));
  return request;
}

function changing<R extends wire.DiffRequest | wire.UpdateRequest>(
  request: R,
  target: Target,
  old: KnownObject,
  news: Props,
): R {
  request.setId(old.id ?? "");
  request.setOlds(sent(old.outputs));
  request.setOldInputs(sent(old.inputs));
  request.setNews(sent(news));
  return named(request, target);
}

function meaning(error: grpc.ServiceError): Error {
  const [bytes] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (Buffer.isBuffer(bytes)) {
    for (const detail of statusProto.Status.deserializeBinary(bytes).getDetailsList()) {
      if (!detail.getTypeUrl().endsWith("pulumirpc.ErrorResourceInitFailed")) continue;
      const failed = proto.ErrorResourceInitFailed.deserializeBinary(detail.getValue_asU8());
      const props = fromStruct(failed.getProperties());
      return new InitFailedError(error.details, failed.getId(), props, failed.getReasonsList());
    }
  }
  if (error.code === grpc.status.UNAVAILABLE || error.code === grpc.status.CANCELLED) {
    return new ProviderExitedError();
  }
  return new Error(error.details || error.message);
}

type Struct = structProto.Struct;

export function toStruct(props: Props): Struct {
  return structProto.Struct.fromJavaScript(props as Parameters<typeof structProto.Struct.fromJavaScript>[0]);
}

export function fromStruct(struct: Struct | undefined | null): Props {
  return (struct ? struct.toJavaScript() : {}) as Props;
}
