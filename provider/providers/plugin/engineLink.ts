import grpc from "@grpc/grpc-js";
import rpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/engine_pb.js";

/** The time, in milliseconds, after which an unreachable engine is considered terminated. */
const ENDED_AFTER = 3_000;

/**
 * The connection from a plugin to the engine that started it or attached to it. The engine prints the plugin's messages
 * to the user.
 */
export interface EngineLink {
  /**
   * Sends a message to the user.
   * @param urn the URN of the resource that the message refers to
   */
  log(message: string, urn: string | undefined): void;
}

/**
 * The link for a plugin without an engine, such as a manually started plugin. It prints messages to standard error.
 */
export const noEngine: EngineLink = { log: (message) => console.error(message) };

/**
 * Connects to an engine.
 * @param address the host and port of the engine
 * @param ended called when the engine can no longer be reached, for example because it was killed
 */
export function linkToEngine(address: string, ended: () => void): EngineLink {
  // The engine runs on this machine, so no proxy is needed.
  const client = new rpc.EngineClient(address, grpc.credentials.createInsecure(), {
    "grpc.enable_http_proxy": 0,
  });
  watch(client, ended);
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

/**
 * Watches the connection to the engine. Without this watch, a plugin would run forever after its engine was killed. An
 * engine that has never connected is not considered terminated.
 */
function watch(client: grpc.Client, ended: () => void): void {
  const channel = client.getChannel();
  const whileReady = () => {
    const state = channel.getConnectivityState(true);
    if (state === grpc.connectivityState.READY) {
      channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, whileReady);
      return;
    }
    client.waitForReady(Date.now() + ENDED_AFTER, (error) => (error ? ended() : whileReady()));
  };
  client.waitForReady(Number.POSITIVE_INFINITY, (error) => {
    if (!error) whileReady();
  });
}
