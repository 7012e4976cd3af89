import grpc from "@grpc/grpc-js";
import engineRpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import engineProto, { type LogRequest, type SetRootResourceRequest } from "@pulumi/pulumi/proto/engine_pb.js";
import monitorRpc from "@pulumi/pulumi/proto/resource_grpc_pb.js";
import type * as wire from "@pulumi/pulumi/proto/resource_pb.js";
import proto from "@pulumi/pulumi/proto/resource_pb.js";
import emptyProto, { type Empty } from "google-protobuf/google/protobuf/empty_pb.js";
import { type UnsupportedId, unsupportedUse } from "../../engineDifferences.ts";
import type { UnsupportedUse } from "../../errors.ts";
import type { RunLog } from "../../runLog.ts";
import type { Props } from "../../value.ts";
import { type Goal, readGoal, type Scope, unsupportedUses } from "./goal.ts";
import { fromStruct, MESSAGE_LIMITS, toStruct } from "./providerProcess.ts";

/** What a program is told about a resource that it registered. */
export interface Registered {
  readonly urn: string;
  readonly id: string;
  readonly outputs: Props;
  /** True for a resource that takes no part in the run: nobody knows its values. */
  readonly unknown?: boolean;
}

/** Decides what becomes of a program's registrations. */
export interface Monitor {
  readonly scope: Scope;
  /** Resolves once the resource is there; never, where the run is being stopped. */
  register(goal: Goal, uses: readonly UnsupportedUse[]): Promise<Registered>;
  registerOutputs(urn: string, outputs: Props): void;
  /** Called when the program has registered all that it will. */
  finished(): Promise<void>;
  unsupported(uses: readonly UnsupportedUse[]): void;
}

/** The gRPC server that a program and the provider's process talk to. */
export interface MonitorServer {
  readonly address: string;
  /** Takes the registrations from here on. Without one the server takes messages alone. */
  monitor: Monitor | undefined;
  close(): void;
}

// Features that are only refused are announced too: otherwise the SDK would tell users to update their CLI.
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
 * How many requests of one connection are taken at once beside those that are worked on; others wait in the process
 * that sends them. A program sends those of all its resources at once, and ten thousand of them would be a gigabyte
 * here. Of those that are taken, none waits for one that is not: a program registers a resource after those it depends
 * on.
 */
const REQUESTS_WAITING = 100;

interface Call<Request> {
  readonly request: Request;
}
type Done<Answer> = (error: { code: grpc.status; details: string } | null, answer?: Answer) => void;

/**
 * Starts the server on a free port of the loopback interface.
 * @param log gets the messages of the program and the provider
 * @param parallel how many objects are worked on at once
 */
export async function startMonitorServer(log: RunLog, parallel: number): Promise<MonitorServer> {
  const server = new grpc.Server({
    ...MESSAGE_LIMITS,
    "grpc.max_concurrent_streams": parallel + REQUESTS_WAITING,
  });
  const started = { monitor: undefined as Monitor | undefined };
  addService(
    server,
    monitorRpc.ResourceMonitorService,
    monitorService(() => {
      if (started.monitor) return started.monitor;
      throw new Error("no program is running");
    }),
  );
  addService(server, engineRpc.EngineService, engineService(log));
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

/** What programs ask of the monitor. */
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

/** What programs and providers ask of the engine. */
function engineService(log: RunLog): object {
  let root = "";
  return {
    log({ request }: Call<LogRequest>, done: Done<unknown>) {
      const severity = (["debug", "info", "warning", "error"] as const)[request.getSeverity()] ?? "info";
      // The SDK's own debug messages hold whole resources, which nobody asked to see.
      if (!request.getEphemeral() && severity !== "debug") {
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
      // The program can ask for no newer version than that of the SDK that it runs with.
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
