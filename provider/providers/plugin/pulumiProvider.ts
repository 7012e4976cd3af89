import { readFileSync } from "node:fs";
import { AuthenticationError, ConfigurationError } from "@gatehouse-access/sdk";
import { printedError } from "@gatehouse-access/sdk/errors";
import pluginProto from "@pulumi/pulumi/proto/plugin_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import emptyProto from "google-protobuf/google/protobuf/empty_pb.js";
import type { Props } from "../../engine/value.ts";
import { DECLARER, ownValues, PROVIDER_KEY, providerText } from "../../engineMarks.ts";
import { plannedCreate, plannedUpdate } from "../../lifecycle/diff.ts";
import { type Compared, noticeText, ResourceLifecycle, type Runtime } from "../../lifecycle/lifecycle.ts";
import { pulumiRun } from "../../lifecycle/runRecord.ts";
import type { ResourceDefinition } from "../../model/definition.ts";
import { secretsOf } from "../../model/fields.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { packageFile, packageVersion } from "../../packageFile.ts";
import { definitions } from "../../resources/index.ts";
import type { Connection } from "../../service/connection.ts";
import { SETTINGS, type Setting } from "../../service/newConnection.ts";
import { isDefaultInstance, OWN_PLUGIN, urnName, urnType } from "../../urn.ts";
import type { Values } from "../../values.ts";
import { callFunction, functions } from "../functions.ts";
import {
  checkInstance,
  connectionOf,
  diffInstance,
  type Instance,
  masked,
  tenantOf,
} from "../instanceSettings.ts";
import type { EngineLink } from "./engineLink.ts";
import { CancelledError, InitFailedError, InstanceCredentialError } from "./status.ts";
import {
  addDetails,
  keepIgnored,
  knownLists,
  plainValues,
  propsIn,
  secretNames,
  secretTexts,
  structOf,
} from "./values.ts";

/** The names of the settings that are encrypted in states, even if a program sets them in plaintext. */
const SECRET_SETTINGS = Object.entries(SETTINGS as Readonly<Record<string, Setting>>).flatMap(
  ([name, { secret }]) => (secret ? [name] : []),
);

/** The configuration of an instance. */
interface Configured {
  readonly instance: Instance;
  readonly name: string;
  /** The id of the instance in the state. Undefined in a preview if the instance has not been created yet. */
  readonly id: string | undefined;
}

/**
 * A provider instance, with the methods of `pulumirpc.ResourceProvider`. An engine starts one process for each provider
 * instance of a program. Each instance has its own service, credential and namespace.
 */
export class PulumiProvider {
  readonly #env: NodeJS.ProcessEnv;
  readonly #engine: EngineLink;
  #configured: Configured | undefined;
  #connection: Connection | undefined;
  #cancelled = new AbortController();
  #lifecycles: ReadonlyMap<string, ResourceLifecycle>;

  constructor(engine: EngineLink, env: NodeJS.ProcessEnv = process.env) {
    this.#engine = engine;
    this.#env = env;
    this.#lifecycles = this.#lifecyclesOfRun();
  }

  #lifecyclesOfRun(): ReadonlyMap<string, ResourceLifecycle> {
    const env = this.#env;
    const runtime: Runtime = {
      ...pulumiRun(env),
      defaultTenant: () => tenantOf(this.#instance(), env),
      connection: () => this.#open(),
      tell: (notice, urn) => this.#engine.log(noticeText(notice), urn),
    };
    return new Map(
      definitions.map((definition) => [
        OWN_PLUGIN + definition.name,
        new ResourceLifecycle(definition, runtime),
      ]),
    );
  }

  handshake(): proto.ProviderHandshakeResponse {
    const answer = new proto.ProviderHandshakeResponse();
    answer.setAcceptSecrets(true);
    answer.setAcceptResources(true);
    answer.setAcceptOutputs(true);
    return answer;
  }

  getPluginInfo(): pluginProto.PluginInfo {
    const answer = new pluginProto.PluginInfo();
    answer.setVersion(packageVersion());
    return answer;
  }

  getSchema(): proto.GetSchemaResponse {
    const answer = new proto.GetSchemaResponse();
    answer.setSchema(readFileSync(packageFile("schemas/pulumi.json"), "utf8"));
    return answer;
  }

  /** Returns no mapping, because no other tool has a provider for this service. */
  getMapping(): proto.GetMappingResponse {
    return new proto.GetMappingResponse();
  }

  getMappings(): proto.GetMappingsResponse {
    return new proto.GetMappingsResponse();
  }

  checkConfig(request: proto.CheckRequest): proto.CheckResponse {
    const news = propsIn(request.getNews());
    const olds = plainValues(propsIn(request.getOlds()));
    const instance = { isDefault: isDefaultInstance(request.getUrn()), inputs: plainValues(news) };
    const { inputs, failures } = checkInstance(instance, olds, this.#env);
    return checked(structOf(inputs, news, SECRET_SETTINGS), failures.map(printedError));
  }

  diffConfig(request: proto.DiffRequest): proto.DiffResponse {
    const before = plainValues(propsIn(request.getOldInputs() ?? request.getOlds()));
    const changes = diffInstance(before, plainValues(propsIn(request.getNews())));
    const replaces = changes.filter((change) => change.replaces).map(({ field }) => field);
    return compared({ changes, replaces, claims: false, deleteBeforeReplace: false });
  }

  configure(request: proto.ConfigureRequest): proto.ConfigureResponse {
    const inputs = plainValues(propsIn(request.getArgs()));
    // An instance without a URN counts as explicit, because an explicit instance uses fewer settings from the
    // environment.
    const instance = { isDefault: isDefaultInstance(request.getUrn() ?? ""), inputs };
    const { failures } = checkInstance(instance, {}, this.#env);
    const [first, ...others] = failures;
    if (first && others.length === 0) throw first;
    if (first) throw new ConfigurationError(failures.map(({ message }) => message).join("; "));
    const name = urnName(request.getUrn() ?? "");
    this.#configured = { instance, name, id: request.getId() || undefined };
    // A manually started plugin serves several runs, one after the other: the engine of each run attaches to the same
    // process. Each run must start without the data of the previous run.
    this.#lifecycles = this.#lifecyclesOfRun();
    this.#connection = undefined;
    this.#cancelled = new AbortController();
    const answer = new proto.ConfigureResponse();
    answer.setAcceptsecrets(true);
    answer.setAcceptresources(true);
    answer.setAcceptoutputs(true);
    answer.setSupportspreview(true);
    return answer;
  }

  async invoke(request: proto.InvokeRequest): Promise<proto.InvokeResponse> {
    const token = request.getTok();
    const called = functions.find(({ name }) => token === OWN_PLUGIN + name);
    if (!called)
      throw new Error(`${token} is not a function of this provider; valid functions: ${namesOf(functions)}`);
    const given = propsIn(request.getArgs());
    const { failures, result } = await callFunction(called, () => this.#service(), plainValues(given));
    const answer = new proto.InvokeResponse();
    answer.setReturn(structOf(result));
    answer.setFailuresList(
      failures.map(({ path, reason }) => failureOf(`${[called.name, ...path].join(".")} ${reason}.`)),
    );
    return answer;
  }

  async check(request: proto.CheckRequest): Promise<proto.CheckResponse> {
    const lifecycle = this.#lifecycleOf(request.getUrn());
    const news = propsIn(request.getNews());
    const olds = ownValues(plainValues(propsIn(request.getOlds())));
    const { inputs, failures } = await lifecycle.checkOnServer(
      request.getUrn(),
      olds,
      ownValues(plainValues(news)),
    );
    const secrets = secretTexts(news);
    const reasons = failures.map((failure) => masked(failure, secrets));
    return checked(structOf(knownLists(inputs), news, secretsOf(lifecycle.definition)), reasons);
  }

  diff(request: proto.DiffRequest): proto.DiffResponse {
    const lifecycle = this.#lifecycleOf(request.getUrn());
    const olds = plainValues(propsIn(request.getOlds()));
    const state = ownValues(olds);
    const news = ownValues(plainValues(propsIn(request.getNews())));
    const inputs = keepIgnored(news, state, request.getIgnorechangesList());
    const { [DECLARER]: declarer } = olds;
    const answer = compared(lifecycle.diff(request.getUrn(), request.getId(), state, inputs, { declarer }));
    const { outputs } = lifecycle.definition;
    answer.setStablesList(
      Object.keys(outputs).filter((name) => !outputs[name]?.volatile && !outputs[name]?.mutable),
    );
    return answer;
  }

  async create(request: proto.CreateRequest): Promise<proto.CreateResponse> {
    const lifecycle = this.#lifecycleOf(request.getUrn());
    const { definition } = lifecycle;
    const given = propsIn(request.getProperties());
    const inputs = ownValues(plainValues(given));
    const answer = new proto.CreateResponse();
    if (request.getPreview()) {
      answer.setProperties(stateOf(definition, plannedCreate(definition, inputs), given));
      return answer;
    }
    this.#refuseCancelled();
    try {
      const creator = {
        resource: request.getUrn(),
        state: this.#configured?.id,
        secretInputs: secretNames(given),
      };
      const created = await lifecycle.create(creator, inputs);
      answer.setId(created.id);
      answer.setProperties(stateOf(definition, created.state, given, lifecycle.declarer(request.getUrn())));
      return answer;
    } catch (error) {
      throw error instanceof UnfinishedError
        ? new InitFailedError(
            error,
            stateOf(definition, error.state, given, lifecycle.declarer(request.getUrn())),
            structOf(inputs, given),
          )
        : error;
    }
  }

  async read(request: proto.ReadRequest): Promise<proto.ReadResponse> {
    const lifecycle = this.#lifecycleOf(request.getUrn());
    this.#refuseCancelled();
    const before = propsIn(request.getProperties());
    const answer = new proto.ReadResponse();
    const inputs = request.getInputs();
    const open = inputs && ownValues(plainValues(propsIn(inputs)));
    const found = await lifecycle.read(
      request.getUrn(),
      request.getId(),
      ownValues(plainValues(before)),
      open,
    );
    if (!found) return answer;
    answer.setId(found.id);
    const { [DECLARER]: declarer } = plainValues(before);
    answer.setProperties(stateOf(lifecycle.definition, found.state, before, declarer));
    if (found.inputs) answer.setInputs(structOf(found.inputs, propsIn(inputs)));
    return answer;
  }

  async update(request: proto.UpdateRequest): Promise<proto.UpdateResponse> {
    const lifecycle = this.#lifecycleOf(request.getUrn());
    const { definition } = lifecycle;
    const given = propsIn(request.getNews());
    const olds = plainValues(propsIn(request.getOlds()));
    const state = ownValues(olds);
    const news = ownValues(plainValues(given));
    const inputs = keepIgnored(news, state, request.getIgnorechangesList());
    const answer = new proto.UpdateResponse();
    const urn = request.getUrn();
    const options = { declarer: olds[DECLARER], secretInputs: secretNames(given) };
    if (request.getPreview()) {
      const failure = await lifecycle.previewUpdate(urn, request.getId(), state, inputs, options);
      if (failure) throw failure;
      answer.setProperties(stateOf(definition, plannedUpdate(definition, state, inputs), given));
      return answer;
    }
    this.#refuseCancelled();
    const after = await lifecycle.update(urn, request.getId(), state, inputs, options);
    answer.setProperties(stateOf(definition, after, given, lifecycle.declarer(urn)));
    return answer;
  }

  async delete(request: proto.DeleteRequest): Promise<emptyProto.Empty> {
    const lifecycle = this.#lifecycleOf(request.getUrn());
    this.#refuseCancelled();
    const state = ownValues(plainValues(propsIn(request.getProperties())));
    await lifecycle.delete(request.getUrn(), request.getId(), state);
    return new emptyProto.Empty();
  }

  /**
   * Cancels the run. Operations that have not started yet fail. Running operations finish, so that the state contains
   * every created object. Requests that wait for an unavailable service fail immediately.
   */
  cancel(): emptyProto.Empty {
    this.#cancelled.abort();
    return new emptyProto.Empty();
  }

  /** Adds a remedy to an error if the service rejected the credential in the instance's inputs. */
  withRemedy(error: unknown): unknown {
    const { instance, name = "" } = this.#configured ?? {};
    const hasOwn = Object.entries(SETTINGS as Readonly<Record<string, Setting>>).some(
      ([setting, { credential }]) => credential && instance?.inputs[setting] !== undefined,
    );
    return error instanceof AuthenticationError && hasOwn ? new InstanceCredentialError(name, error) : error;
  }

  #refuseCancelled(): void {
    if (this.#cancelled.signal.aborted) throw new CancelledError();
  }

  #lifecycleOf(urn: string): ResourceLifecycle {
    const type = urnType(urn);
    const lifecycle = this.#lifecycles.get(type);
    if (!lifecycle)
      throw new Error(`${type} is not a resource of this provider; valid resources: ${namesOf(definitions)}`);
    return lifecycle;
  }

  #instance(): Instance {
    if (!this.#configured) throw new ConfigurationError("the provider is not configured");
    return this.#configured.instance;
  }

  #service(): Connection {
    this.#refuseCancelled();
    return this.#open();
  }

  #open(): Connection {
    const waiting = {
      tell: (line: string) => this.#engine.log(line, undefined),
      stop: this.#cancelled.signal,
    };
    this.#connection ??= connectionOf(this.#instance(), waiting, this.#env);
    return this.#connection;
  }
}

const namesOf = (all: readonly { readonly name: string }[]) =>
  all.map(({ name }) => OWN_PLUGIN + name).join(", ");

/**
 * Converts a state to a message to the engine. Adds the code of a dynamic provider, so that dynamic resources can adopt
 * the state.
 */
function stateOf(definition: ResourceDefinition, state: Values, like: Props, declarer?: unknown) {
  const values = {
    ...state,
    ...(declarer !== undefined && { [DECLARER]: declarer }),
    [PROVIDER_KEY]: providerText(definition.name),
  };
  return structOf(values, like, secretsOf(definition));
}

function checked(inputs: ReturnType<typeof structOf>, reasons: readonly string[]): proto.CheckResponse {
  const answer = new proto.CheckResponse();
  answer.setInputs(inputs);
  answer.setFailuresList(reasons.map(failureOf));
  return answer;
}

/**
 * Converts the reason of a failed check to a message to the engine. The message has no property, because the reason
 * already contains the name of the input. With a property, engines would also print the name and the value.
 */
function failureOf(reason: string): proto.CheckFailure {
  const failure = new proto.CheckFailure();
  failure.setReason(reason);
  return failure;
}

function compared({ changes, replaces, claims, deleteBeforeReplace }: Compared): proto.DiffResponse {
  const { DIFF_NONE, DIFF_SOME } = proto.DiffResponse.DiffChanges;
  const answer = new proto.DiffResponse();
  answer.setChanges(claims || changes.length + replaces.length > 0 ? DIFF_SOME : DIFF_NONE);
  answer.setReplacesList([...replaces]);
  answer.setDeletebeforereplace(deleteBeforeReplace);
  answer.setDiffsList(changes.map(({ field }) => field));
  addDetails(answer, changes);
  return answer;
}
