import grpc from "@grpc/grpc-js";
import type { Alias } from "@pulumi/pulumi/proto/alias_pb.js";
import engineRpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import engineProto, { type LogRequest, type SetRootResourceRequest } from "@pulumi/pulumi/proto/engine_pb.js";
import monitorRpc from "@pulumi/pulumi/proto/resource_grpc_pb.js";
import type * as wire from "@pulumi/pulumi/proto/resource_pb.js";
import type { RegisterResourceRequest } from "@pulumi/pulumi/proto/resource_pb.js";
import proto from "@pulumi/pulumi/proto/resource_pb.js";
import emptyProto, { type Empty } from "google-protobuf/google/protobuf/empty_pb.js";
import { isDynamicType, makeUrn, urnName, urnQualifiedType, urnType } from "../../../urn.ts";
import { type UnsupportedId, unsupportedUse } from "../../engineDifferences.ts";
import type { UnsupportedUse } from "../../errors.ts";
import type { Writable } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import type { CustomTimeouts } from "../../state/resourceState.ts";
import { containsAsset, type Props } from "../../value.ts";
import { type ProgramFailure, readFailures } from "./programFailure.ts";
import { fromStruct, MESSAGE_LIMITS, toStruct } from "./providerProcess.ts";

/** The desired state of one resource, as the program declares it. */
export interface Goal {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  readonly custom: boolean;
  readonly parent: string;
  readonly props: Props;
  readonly protect: boolean;
  readonly dependencies: readonly string[];
  readonly propertyDependencies: Readonly<Record<string, readonly string[]>>;
  readonly deleteBeforeReplace: boolean | undefined;
  readonly ignoreChanges: readonly string[];
  readonly replaceOnChanges: readonly string[];
  readonly additionalSecretOutputs: readonly string[];
  readonly retainOnDelete: boolean;
  readonly deletedWith: string;
  readonly customTimeouts: CustomTimeouts;
  /** Id of the existing object to import; empty if the program imports no object. */
  readonly importId: string;
  /** Former URNs of the resource, in the order in which the engine searches them in the state. */
  readonly aliases: readonly string[];
}

export interface Scope {
  readonly stack: string;
  readonly project: string;
  /**
   * Returns the former URN of a registered resource that the engine found by an alias. Returns undefined for other
   * resources.
   */
  aliasOf(urn: string): string | undefined;
}

function readGoal(request: RegisterResourceRequest, scope: Scope): Goal {
  const type = request.getType();
  const name = request.getName();
  const parent = request.getParent();
  const dependencies = request.getPropertydependenciesMap().entries() as Iterable<
    [string, RegisterResourceRequest.PropertyDependencies]
  >;
  return {
    urn: makeUrn(scope.stack, scope.project, parent, type, name),
    type,
    name,
    custom: request.getCustom(),
    parent,
    props: fromStruct(request.getObject()),
    protect: request.getProtect() ?? false,
    dependencies: [...new Set(request.getDependenciesList())].sort(),
    propertyDependencies: Object.fromEntries(
      [...dependencies].map(([key, on]) => [key, [...on.getUrnsList()].sort()]),
    ),
    deleteBeforeReplace: request.getDeletebeforereplacedefined()
      ? request.getDeletebeforereplace()
      : undefined,
    ignoreChanges: request.getIgnorechangesList(),
    replaceOnChanges: request.getReplaceonchangesList(),
    additionalSecretOutputs: request.getAdditionalsecretoutputsList(),
    retainOnDelete: request.getRetainondelete() ?? false,
    deletedWith: request.getDeletedwith(),
    customTimeouts: customTimeouts(request.getCustomtimeouts()),
    importId: request.getImportid(),
    aliases: aliasUrns(request, scope, { type, name, parent }),
  };
}

function customTimeouts(given: RegisterResourceRequest.CustomTimeouts | undefined): CustomTimeouts {
  const timeouts: Writable<CustomTimeouts> = {};
  if (given?.getCreate()) timeouts.create = given.getCreate();
  if (given?.getUpdate()) timeouts.update = given.getUpdate();
  if (given?.getDelete()) timeouts.delete = given.getDelete();
  if (given?.getRead()) timeouts.read = given.getRead();
  return timeouts;
}

type Named = Pick<Goal, "type" | "name" | "parent">;

/**
 * Returns the former URNs of a resource, according to its aliases. If the engine found the parent by an alias, includes
 * URNs with the parent's former type and name.
 */
function aliasUrns(request: RegisterResourceRequest, scope: Scope, own: Named): string[] {
  const given = [
    ...request.getAliasurnsList(),
    ...request.getAliasesList().map((alias) => aliasUrn(alias, scope, own)),
  ];
  const parentAlias = own.parent === "" ? undefined : scope.aliasOf(own.parent);
  if (!parentAlias) return [...new Set(given)];
  const inherited = (type: string, name: string): string => {
    const parentName = urnName(own.parent);
    // The name of a child often begins with the name of its parent. In this case, the former name of the child is
    // assumed to begin with the former name of the parent.
    const oldName = name.startsWith(parentName) ? urnName(parentAlias) + name.slice(parentName.length) : name;
    return makeUrn(scope.stack, scope.project, parentAlias, type, oldName);
  };
  const followed = given.map((urn) => inherited(urnType(urn), urnName(urn)));
  return [...new Set([...given, inherited(own.type, own.name), ...followed])];
}

function aliasUrn(alias: Alias, scope: Scope, own: Named): string {
  if (alias.hasUrn()) return alias.getUrn();
  const spec = alias.getSpec();
  let parent = own.parent;
  if (spec?.hasParenturn() && spec.getParenturn() !== "") {
    parent = scope.aliasOf(spec.getParenturn()) ?? spec.getParenturn();
  }
  if (spec?.getNoparent()) parent = "";
  return makeUrn(
    spec?.getStack() || scope.stack,
    spec?.getProject() || scope.project,
    parent,
    spec?.getType() || own.type,
    spec?.getName() || own.name,
  );
}

function unsupportedUses(request: RegisterResourceRequest, goal: Goal): UnsupportedUse[] {
  const found = new Set<UnsupportedId>();
  if (request.getRemote()) found.add("remote-component");
  if (request.getPackageref() !== "") found.add("parameterized-package");
  if (goal.custom) {
    if (goal.type.startsWith("pulumi:providers:")) found.add("explicit-provider");
    else if (goal.type === "pulumi:pulumi:StackReference") found.add("stack-reference");
    else if (!isDynamicType(goal.type)) found.add("package");
  }
  if (request.getProvider() !== "") found.add("explicit-provider");
  if (request.getTransformsList().length > 0) found.add("transforms");
  if (request.getStateMigrationsList().length > 0) found.add("state-migrations");
  if (request.hasReplacementTrigger()) found.add("replacement-trigger");
  if (request.getReplaceWithList().length > 0) found.add("replace-with");
  if (request.getEnvvarmappingsMap().getLength() > 0) found.add("env-var-mappings");
  if (request.hasHooks()) found.add("hooks");
  if ([...goal.ignoreChanges, ...goal.replaceOnChanges].some(isNested)) found.add("nested-paths");
  if (containsAsset(goal.props)) found.add("assets");
  return [...found].map((id) => unsupportedUse(id, `${goal.name} (${urnQualifiedType(goal.urn)})`));
}

/** Returns the URNs of all resources that must exist before this resource. */
export function goalReferences(goal: Goal): string[] {
  const urns = [goal.parent, goal.deletedWith, ...goal.dependencies];
  return [...new Set([...urns, ...Object.values(goal.propertyDependencies).flat()])].filter(Boolean);
}

const isNested = (path: string): boolean => path !== "*" && /[.[\]*"]/.test(path);

/** The response to a program that registered a resource. */
export interface Registered {
  readonly urn: string;
  readonly id: string;
  readonly outputs: Props;
  /** True for a resource that is excluded from the run. The values of this resource are unknown. */
  readonly unknown?: boolean;
}

export interface Monitor {
  readonly scope: Scope;
  /**
   * Registers a resource. The returned promise resolves when the object exists, and never resolves if the run stops.
   */
  register(goal: Goal, uses: readonly UnsupportedUse[]): Promise<Registered>;
  registerOutputs(urn: string, outputs: Props): void;
  finished(): Promise<void>;
  unsupported(uses: readonly UnsupportedUse[]): void;
}

/** The gRPC server that a program and the provider's process connect to. */
export interface MonitorServer {
  readonly address: string;
  /** The handler for registrations of resources. If it is undefined, the server accepts only log messages. */
  monitor: Monitor | undefined;
  /** The errors that the program threw. */
  readonly failures: readonly ProgramFailure[];
  close(): void;
}

// The features that the server reports to the SDK. The list includes features that this engine rejects, because the SDK
// advises users to update the CLI if a feature is missing from the list.
const FEATURES = [
  "secrets",
  "resourceReferences",
  "aliasSpecs",
  "deletedWith",
  "replaceWith",
  "transforms",
  "invokeTransforms",
  "parameterization",
  "resourceHooks",
  "errorHooks",
  "stateMigrations",
];
type FeatureName = keyof typeof proto.ResourceMonitorFeature;
const FEATURE_NUMBERS = FEATURES.map((name) => {
  const words = name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  return proto.ResourceMonitorFeature[`RESOURCE_MONITOR_FEATURE_${words}` as FeatureName];
});

/**
 * Maximum number of waiting requests of one connection, in addition to the requests in progress. Without a limit, a
 * program could send ten thousand requests at the same time, and these would need a gigabyte of memory. The limit
 * cannot cause a deadlock: a program registers a resource after its dependencies, so no accepted request waits for a
 * later request.
 */
const REQUESTS_WAITING = 100;

interface Call<Request> {
  readonly request: Request;
}
type Done<Answer> = (error: { code: grpc.status; details: string } | null, answer?: Answer) => void;

/** Starts the server on a free port of the loopback interface. */
export async function startMonitorServer(log: RunLog, parallel: number): Promise<MonitorServer> {
  const server = new grpc.Server({
    ...MESSAGE_LIMITS,
    "grpc.max_concurrent_streams": parallel + REQUESTS_WAITING,
  });
  const failures: ProgramFailure[] = [];
  const started = { monitor: undefined as Monitor | undefined, failures };
  addService(
    server,
    monitorRpc.ResourceMonitorService,
    monitorService(() => {
      if (started.monitor) return started.monitor;
      throw new Error("no program is running");
    }),
  );
  addService(server, engineRpc.EngineService, engineService(log, failures));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  return Object.assign(started, { address: `127.0.0.1:${port}`, close: () => server.forceShutdown() });
}

function addService(server: grpc.Server, definition: unknown, methods: object): void {
  server.addService(definition as grpc.ServiceDefinition, methods as grpc.UntypedServiceImplementation);
}

function monitorService(monitor: () => Monitor): object {
  const refuse =
    <Request>(id: UnsupportedId, resource: (request: Request) => string) =>
    (call: Call<Request>, done: Done<never>): void => {
      const use = unsupportedUse(id, resource(call.request));
      monitor().unsupported([use]);
      done({
        code: grpc.status.UNIMPLEMENTED,
        details: `${use.resource}: the embedded engine does not support ${use.feature}. ${use.hint}`,
      });
    };
  return {
    getDeploymentInfo(_call: unknown, done: Done<unknown>) {
      const { project, stack } = monitor().scope;
      const info = new proto.DeploymentInfo();
      info.setProject(project);
      info.setStack(stack);
      info.setOrganization("organization");
      info.setSupportedfeaturesList(FEATURE_NUMBERS);
      done(null, info);
    },
    supportsFeature(call: Call<wire.SupportsFeatureRequest>, done: Done<unknown>) {
      const answer = new proto.SupportsFeatureResponse();
      answer.setHassupport(FEATURES.includes(call.request.getId()));
      done(null, answer);
    },
    registerResource({ request }: Call<wire.RegisterResourceRequest>, done: Done<unknown>) {
      const goal = readGoal(request, monitor().scope);
      answer(monitor().register(goal, unsupportedUses(request, goal)).then(registeredMessage), done);
    },
    registerResourceOutputs({ request }: Call<wire.RegisterResourceOutputsRequest>, done: Done<unknown>) {
      monitor().registerOutputs(request.getUrn(), fromStruct(request.getOutputs()));
      done(null, empty());
    },
    signalAndWaitForShutdown(_call: unknown, done: Done<unknown>) {
      answer(monitor().finished().then(empty), done);
    },
    readResource: refuse(
      "read-resource",
      (request: wire.ReadResourceRequest) => `${request.getName()} (${request.getType()})`,
    ),
    invoke: refuse("invoke", (request: wire.ResourceInvokeRequest) => request.getTok()),
    call: refuse("call", (request: wire.ResourceCallRequest) => request.getTok()),
    existsResource: refuse("read-resource", () => "the program"),
    registerStackTransform: refuse("transforms", () => "the stack"),
    registerStackInvokeTransform: refuse("transforms", () => "the stack"),
    registerResourceHook: refuse("hooks", (request: wire.RegisterResourceHookRequest) => request.getName()),
    registerErrorHook: refuse("hooks", () => "the stack"),
    registerPackage: refuse("parameterized-package", (request: wire.RegisterPackageRequest) =>
      request.getName(),
    ),
  };
}

function engineService(log: RunLog, failures: ProgramFailure[]): object {
  let root = "";
  return {
    log({ request }: Call<LogRequest>, done: Done<unknown>) {
      const severity = (["debug", "info", "warning", "error"] as const)[request.getSeverity()] ?? "info";
      // The engine does not log debug messages of the SDK, since these messages contain complete resources.
      const thrown = severity === "error" ? readFailures(request.getMessage()) : undefined;
      if (thrown) failures.push(...thrown);
      else if (!request.getEphemeral() && severity !== "debug") {
        log.diagnostic({ severity, message: request.getMessage(), urn: request.getUrn() || undefined });
      }
      done(null, empty());
    },
    getRootResource(_call: unknown, done: Done<unknown>) {
      const answer = new engineProto.GetRootResourceResponse();
      answer.setUrn(root);
      done(null, answer);
    },
    setRootResource({ request }: Call<SetRootResourceRequest>, done: Done<unknown>) {
      root = request.getUrn();
      done(null, new engineProto.SetRootResourceResponse());
    },
    startDebugging(_call: unknown, done: Done<unknown>) {
      done(null, empty());
    },
    requirePulumiVersion(_call: unknown, done: Done<unknown>) {
      // Accepts every Pulumi version that a program requires, since a program cannot require a version that is newer
      // than its SDK.
      done(null, new engineProto.RequirePulumiVersionResponse());
    },
  };
}

const empty = (): Empty => new emptyProto.Empty();

function answer<Answer>(work: Promise<Answer>, done: Done<Answer>): void {
  work.then(
    (result) => done(null, result),
    (error: Error) => done({ code: grpc.status.UNKNOWN, details: error.message }),
  );
}

function registeredMessage({ urn, id, outputs, unknown = false }: Registered): wire.RegisterResourceResponse {
  const message = new proto.RegisterResourceResponse();
  message.setUrn(urn);
  message.setId(id);
  message.setObject(toStruct(outputs));
  message.setUnknown(unknown);
  return message;
}
