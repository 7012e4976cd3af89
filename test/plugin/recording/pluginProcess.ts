import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import type { Method } from "./messages.ts";

/** The plugin, as an installed package has it. */
const PLUGIN = fileURLToPath(new URL("../../../provider/bin/pulumi-resource-gatehouse.js", import.meta.url));

/** A plugin in a process of its own, and a channel to it. */
export interface PluginProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /**
   * Sends the bytes of a request.
   * @param sent headers of the call
   * @throws grpc.ServiceError what the plugin answers in place of a response
   */
  call(method: Method, request: Uint8Array, sent?: grpc.Metadata): Promise<Uint8Array>;
  /** Ends the process, also in the middle of a call. */
  kill(): void;
}

/**
 * Starts the plugin as engines do, and waits until it serves.
 * @param args the engine's address, and what else an engine gives
 * @param env all of its environment
 */
export async function startPlugin(args: readonly string[], env: NodeJS.ProcessEnv): Promise<PluginProcess> {
  const child = spawn(process.execPath, [PLUGIN, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  const port = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the plugin ended with ${code}`)));
  });
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
    "grpc.enable_http_proxy": 0,
  });
  return {
    child,
    call: ({ path }, request, sent = new grpc.Metadata()) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(path, asBuffer, asBuffer, request, sent, (error, response) => {
          if (error) reject(error);
          else resolve(response as Uint8Array);
        });
      }),
    kill() {
      client.close();
      child.kill("SIGKILL");
    },
  };
}

/** Bytes that gRPC shall send, or has received, as they are. */
export const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
