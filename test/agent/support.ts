import { once } from "node:events";
import type { Client, ClientChannel, ExecOptions } from "ssh2";
import { openFolder, startAgent, type TestAgent } from "../support/sshFleet.ts";
import { DEVICE, FakeGateway, TENANT } from "./FakeGateway.ts";

/** An agent process and the fake gateway that it connects to. */
export interface Pair {
  readonly gateway: FakeGateway;
  readonly agent: TestAgent;
  stop(): Promise<void>;
}

/** Starts an agent process that connects to its own fake gateway. */
export async function startPair(
  options: { readonly flags?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Pair> {
  const gateway = await FakeGateway.start();
  const folder = openFolder();
  const to = { url: gateway.url, tenant: TENANT, hostname: DEVICE, folder: folder.path };
  const agent = await startAgent({ ...to, ...options });
  return {
    gateway,
    agent,
    stop: async () => {
      await agent.stop();
      await gateway.stop();
      folder.remove();
    },
  };
}

/** The output and exit status of a program. */
interface CommandResult {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** The exit status; null if a signal ended it. */
  readonly code: number | null | undefined;
  readonly signal: string | undefined;
}

/** Opens a channel for a command, or for a shell if the command is undefined. */
export const run = (client: Client, command: string | undefined, options: ExecOptions = {}) =>
  new Promise<ClientChannel>((resolve, reject) => {
    const opened = (error: Error | undefined, channel: ClientChannel) =>
      error ? reject(error) : resolve(channel);
    if (command !== undefined) client.exec(command, options, opened);
    else client.shell(options.pty as object, {}, opened);
  });

/** Reads a channel until it ends. Returns the output and the exit status. */
export async function endOf(channel: ClientChannel): Promise<CommandResult> {
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  channel.on("data", (data: Buffer) => stdout.push(data));
  channel.stderr.on("data", (data: Buffer) => stderr.push(data));
  channel.resume();
  // Waits for "close" instead of "exit", because "exit" can arrive together with the channel, before this function adds
  // a listener.
  const closed = once(channel, "close") as Promise<[number | null | undefined, string?]>;
  const [[code, signal]] = await Promise.all([closed, once(channel.stderr, "end")]);
  return { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr), code, signal };
}

/** Runs a command over SSH until it ends. */
export async function ranCommand(
  client: Client,
  command: string,
  { stdin = "", ...options }: ExecOptions & { readonly stdin?: string | Buffer } = {},
): Promise<CommandResult> {
  const channel = await run(client, command, options);
  channel.end(stdin);
  return endOf(channel);
}

/** Waits until a channel's output matches a pattern. Returns the output since the call. */
export function written(channel: ClientChannel, wanted: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const read = (data: Buffer) => {
      text += data.toString();
      if (!wanted.test(text)) return;
      channel.off("data", read);
      resolve(text);
    };
    channel.on("data", read);
    channel.once("close", () => reject(new Error(`the channel ended with: ${text}`)));
  });
}

/**
 * Sends a signal on a channel, with the SSH library's internal protocol object. The library's public method drops the
 * signal if the client has already sent EOF.
 */
export function sendSignal(channel: ClientChannel, name: string): void {
  const { outgoing, _client: client } = channel as unknown as {
    readonly outgoing: { readonly id: number };
    readonly _client: { readonly _protocol: { signal(channel: number, name: string): void } };
  };
  client._protocol.signal(outgoing.id, name);
}
