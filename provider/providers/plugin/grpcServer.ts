import grpc from "@grpc/grpc-js";
import type pluginProto from "@pulumi/pulumi/proto/plugin_pb.js";
import rpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import emptyProto from "google-protobuf/google/protobuf/empty_pb.js";
import type { PulumiProvider } from "./pulumiProvider.ts";
import { statusOf } from "./status.ts";
import { propsIn, secretTexts } from "./values.ts";

/** The maximum message size, in bytes. Pulumi's engines have the same maximum. */
const LARGEST = 400 * 1024 * 1024;

interface Call<Request> {
  readonly request: Request;
}
type Done<Answer> = (error: Partial<grpc.StatusObject> | null, answer?: Answer) => void;

/** A running plugin server. */
export interface ProviderServer {
  readonly port: number;
  /** Stops the server, even if a call is running. */
  close(): void;
}

/**
 * Serves a provider instance on a free port of the loopback interface. The methods `Parameterize`, `Call`, `Construct`
 * and `List` are for other kinds of providers. They return the status `UNIMPLEMENTED`, because this plugin does not
 * implement them.
 * @param attach called with the address of an engine that attaches to a manually started plugin
 */
export async function serveProvider(
  service: PulumiProvider,
  attach: (address: string) => void = () => {},
): Promise<ProviderServer> {
  const server = new grpc.Server({
    "grpc.max_receive_message_length": LARGEST,
    "grpc.max_send_message_length": LARGEST,
  });
  server.addService(
    rpc.ResourceProviderService as unknown as grpc.ServiceDefinition,
    methodsOf(service, attach) as grpc.UntypedServiceImplementation,
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  return { port, close: () => server.forceShutdown() };
}

function methodsOf(service: PulumiProvider, attach: (address: string) => void): object {
  const answering = answeringFor(service);
  return {
    handshake: answering(() => service.handshake()),
    getPluginInfo: answering(() => service.getPluginInfo()),
    getSchema: answering(() => service.getSchema()),
    getMapping: answering(() => service.getMapping()),
    getMappings: answering(() => service.getMappings()),
    attach: answering((request: pluginProto.PluginAttach) => {
      attach(request.getAddress());
      return new emptyProto.Empty();
    }),
    checkConfig: answering(service.checkConfig.bind(service)),
    diffConfig: answering(service.diffConfig.bind(service)),
    configure: answering(service.configure.bind(service)),
    invoke: answering(service.invoke.bind(service)),
    check: answering(service.check.bind(service)),
    diff: answering(service.diff.bind(service)),
    create: answering(service.create.bind(service)),
    read: answering(service.read.bind(service)),
    update: answering(service.update.bind(service)),
    delete: answering(service.delete.bind(service)),
    cancel: answering(() => service.cancel()),
  };
}

/** A request message, with accessors for all fields that may contain properties. */
interface WithProps {
  getProperties?(): Parameters<typeof propsIn>[0];
  getArgs?(): Parameters<typeof propsIn>[0];
  getOlds?(): Parameters<typeof propsIn>[0];
  getNews?(): Parameters<typeof propsIn>[0];
}

/** Returns the strings in a request that are secret. */
function secretsIn(request: WithProps): string[] {
  const all = [request.getProperties?.(), request.getArgs?.(), request.getOlds?.(), request.getNews?.()];
  return all.flatMap((struct) => secretTexts(propsIn(struct)));
}

/** Wraps the methods of a service, and converts their errors to gRPC statuses. */
const answeringFor =
  (service: PulumiProvider) =>
  <Request extends object, Answer>(work: (request: Request) => Answer | Promise<Answer>) =>
  (call: Call<Request>, done: Done<Answer>): void => {
    Promise.resolve(call.request)
      .then(work)
      .then(
        (answer) => done(null, answer),
        (error: unknown) => done(statusOf(service.withRemedy(error), secretsIn(call.request))),
      );
  };
