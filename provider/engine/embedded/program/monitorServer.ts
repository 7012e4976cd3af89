import grpc from "@grpc/grpc-js";
import engineRpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import engineProto from "@pulumi/pulumi/proto/engine_pb.js";
import monitorRpc from "@pulumi/pulumi/proto/resource_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/resource_pb.js";
import emptyProto from "google-protobuf/google/protobuf/empty_pb.js";
import type { UnsupportedUse } from "../../errors.ts";
import type { Diagnostic } from "../../model.ts";
import { unsupportedUse } from "../../unsupported.ts";
import type { Props } from "../../value.ts";
import { type Goal, readGoal, type Scope, unsupportedUses } from "./goal.ts";
import { MESSAGE_LIMITS } from "./providerProcess.ts";
import { fromStruct, toStruct } from "./struct.ts";

/** What a program is told about a resource it registered. */
export type Registered = {
  urn: string;
  id: string;
  outputs: Props;
  /** True for a resource that was left out, whose values nobody knows. */
  unknown?: boolean;
};

/** Who answers the program. */
export type Monitor = {
  scope: Scope;
  /** Resolves once the resource is there; never, where the run is being stopped. */
  register(goal: Goal, uses: UnsupportedUse[]): Promise<Registered>;
  registerOutputs(urn: string, outputs: Props): void;
  /** Called when the program has registered all it will. */
  finished(): Promise<void>;
  unsupported(uses: UnsupportedUse[]): void;
  diagnostic(diagnostic: Diagnostic): void;
};

/** The gRPC server that programs and providers talk to. */
export type MonitorServer = { address: string; close(): void };

const Feature = proto.ResourceMonitorFeature;
// Features that are only refused are announced too: otherwise the SDK would tell users to update their CLI.
const FEATURES = [
  Feature.RESOURCE_MONITOR_FEATURE_SECRETS,
  Feature.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
  Feature.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
  Feature.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
  Feature.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
  Feature.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
  Feature.RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
  Feature.RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
  Feature.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
  Feature.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
  Feature.RESOURCE_MONITOR_FEATURE_STATE_MIGRATIONS,
];
const FEATURE_IDS = new Set([
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
]);

type Call<Req> = { request: Req };
type Done<Res> = (error: { code: grpc.status; details: string } | null, response?: Res) => void;

/** Starts the server on a free port of the loopback interface. */
export async function startMonitorServer(monitor: Monitor): Promise<MonitorServer> {
  const server = new grpc.Server(MESSAGE_LIMITS);
  const empty = (): InstanceType<typeof emptyProto.Empty> => new emptyProto.Empty();

  const refuse =
    <Req>(id: string, resource: (request: Req) => string) =>
    (call: Call<Req>, done: Done<never>): void => {
      const use = unsupportedUse(id, resource(call.request));
      monitor.unsupported([use]);
      done({
        code: grpc.status.UNIMPLEMENTED,
        details: `${use.resource}: the embedded engine does not support ${use.feature}. ${use.hint}`,
      });
    };
  const answer = <Res>(work: Promise<Res>, done: Done<Res>): void => {
    work.then(
      (response) => done(null, response),
      (error: Error) => done({ code: grpc.status.UNKNOWN, details: error.message }),
    );
  };

  server.addService(
    monitorRpc.ResourceMonitorService as unknown as grpc.ServiceDefinition,
    {
      getDeploymentInfo(_call: unknown, done: Done<unknown>) {
        const info = new proto.DeploymentInfo();
        info.setProject(monitor.scope.project);
        info.setStack(monitor.scope.stack);
        info.setOrganization("organization");
        info.setSupportedfeaturesList(FEATURES);
        done(null, info);
      },
      supportsFeature(call: Call<InstanceType<typeof proto.SupportsFeatureRequest>>, done: Done<unknown>) {
        const response = new proto.SupportsFeatureResponse();
        response.setHassupport(FEATURE_IDS.has(call.request.getId()));
        done(null, response);
      },
      registerResource(call: Call<InstanceType<typeof proto.RegisterResourceRequest>>, done: Done<unknown>) {
        const goal = readGoal(call.request, monitor.scope);
        const uses = unsupportedUses(call.request, goal);
        answer(monitor.register(goal, uses).then(registeredMessage), done);
      },
      registerResourceOutputs(
        call: Call<InstanceType<typeof proto.RegisterResourceOutputsRequest>>,
        done: Done<unknown>,
      ) {
        monitor.registerOutputs(call.request.getUrn(), fromStruct(call.request.getOutputs()));
        done(null, empty());
      },
      signalAndWaitForShutdown(_call: unknown, done: Done<unknown>) {
        answer(monitor.finished().then(empty), done);
      },
      readResource: refuse("read-resource", (request: InstanceType<typeof proto.ReadResourceRequest>) => {
        return `${request.getName()} (${request.getType()})`;
      }),
      invoke: refuse("invoke", (request: InstanceType<typeof proto.ResourceInvokeRequest>) =>
        request.getTok(),
      ),
      call: refuse("call", (request: InstanceType<typeof proto.ResourceCallRequest>) => request.getTok()),
      existsResource: refuse("read-resource", () => "the program"),
      registerStackTransform: refuse("transforms", () => "the stack"),
      registerStackInvokeTransform: refuse("transforms", () => "the stack"),
      registerResourceHook: refuse(
        "hooks",
        (request: InstanceType<typeof proto.RegisterResourceHookRequest>) => request.getName(),
      ),
      registerErrorHook: refuse("hooks", () => "the stack"),
      registerPackage: refuse(
        "parameterized-package",
        (request: InstanceType<typeof proto.RegisterPackageRequest>) => request.getName(),
      ),
    } as unknown as grpc.UntypedServiceImplementation,
  );

  let root = "";
  server.addService(
    engineRpc.EngineService as unknown as grpc.ServiceDefinition,
    {
      log(call: Call<InstanceType<typeof engineProto.LogRequest>>, done: Done<unknown>) {
        const request = call.request;
        const severity = (["debug", "info", "warning", "error"] as const)[request.getSeverity()] ?? "info";
        // The SDK's own debug messages hold whole resources, which nobody asked to see.
        if (!request.getEphemeral() && severity !== "debug") {
          const diagnostic: Diagnostic = { severity, message: request.getMessage() };
          if (request.getUrn() !== "") diagnostic.urn = request.getUrn();
          monitor.diagnostic(diagnostic);
        }
        done(null, empty());
      },
      getRootResource(_call: unknown, done: Done<unknown>) {
        const response = new engineProto.GetRootResourceResponse();
        response.setUrn(root);
        done(null, response);
      },
      setRootResource(
        call: Call<InstanceType<typeof engineProto.SetRootResourceRequest>>,
        done: Done<unknown>,
      ) {
        root = call.request.getUrn();
        done(null, new engineProto.SetRootResourceResponse());
      },
      startDebugging(_call: unknown, done: Done<unknown>) {
        done(null, empty());
      },
      requirePulumiVersion(_call: unknown, done: Done<unknown>) {
        // The SDK that runs the program is at least as new as what it can ask for.
        done(null, new engineProto.RequirePulumiVersionResponse());
      },
    } as unknown as grpc.UntypedServiceImplementation,
  );

  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  return { address: `127.0.0.1:${port}`, close: () => server.forceShutdown() };
}

function registeredMessage(registered: Registered): InstanceType<typeof proto.RegisterResourceResponse> {
  const response = new proto.RegisterResourceResponse();
  response.setUrn(registered.urn);
  response.setId(registered.id);
  response.setObject(toStruct(registered.outputs));
  response.setUnknown(registered.unknown === true);
  return response;
}
