import grpc from "@grpc/grpc-js";
import rpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/engine_pb.js";

/** Milliseconds for which an engine may be unreachable before it counts as gone. */
const GONE_AFTER = 3_000;

/** The engine that a plugin serves: it shows messages of the plugin to whoever runs the program. */
export interface EngineLink {
  /** @param urn of the resource that the message is about */
  log(message: string, urn: string | undefined): void;
}

/** An engine that is not there, as for a plugin that somebody starts by hand: messages go to standard error. */
export const noEngine: EngineLink = { log: (message) => console.error(message) };

/**
 * Connects to an engine.
 * @param address host and port
 * @param gone called once the engine cannot be reached any more, as when it was killed
 */
export function linkToEngine(address: string, gone: () => void): EngineLink {
  // The engine runs on this machine: no proxy leads to it.
  const client = new rpc.EngineClient(address, grpc.credentials.createInsecure(), {
    "grpc.enable_http_proxy": 0,
  });
  watch(client, gone);
  return {
    log(message, urn) {
      const request = new proto.LogRequest();
      request.setSeverity(proto.LogSeverity.INFO);
      request.setMessage(message);
      if (urn !== undefined) request.setUrn(urn);
      client.log(request, (error: Error | null) => {
        if (error) console.error(message);
      });
    },
  };
}

/** A plugin whose engine was killed would stay for ever: nobody else ends it. One that was never there is no such. */
function watch(client: grpc.Client, gone: () => void): void {
  const channel = client.getChannel();
  const whileReady = () => {
    const state = channel.getConnectivityState(true);
    if (state === grpc.connectivityState.READY) {
      channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, whileReady);
      return;
    }
    client.waitForReady(Date.now() + GONE_AFTER, (error) => (error ? gone() : whileReady()));
  };
  client.waitForReady(Number.POSITIVE_INFINITY, (error) => {
    if (!error) whileReady();
  });
}
