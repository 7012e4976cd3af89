import { once } from "node:events";
import type { Client, ClientChannel, ExecOptions } from "ssh2";
import { openFolder, startAgent, type TestAgent } from "../support/sshFleet.ts";
import { DEVICE, FakeGateway, TENANT } from "./FakeGateway.ts";

/** An agent, and the gateway that it knows. */
export interface Pair {
  readonly gateway: FakeGateway;
  readonly agent: TestAgent;
  stop(): Promise<void>;
}

/** Starts an agent as a process, with a gateway for it alone. */
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

/** What came of a program. */
export interface Ran {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** The exit status; null where a signal ended it. */
  readonly code: number | null | undefined;
  readonly signal: string | undefined;
}

/** Opens a channel for a command, or for a shell where none is given. */
export const run = (client: Client, command: string | undefined, options: ExecOptions = {}) =>
  new Promise<ClientChannel>((resolve, reject) => {
    const opened = (error: Error | undefined, channel: ClientChannel) =>
      error ? reject(error) : resolve(channel);
    if (command !== undefined) client.exec(command, options, opened);
    else client.shell(options.pty as object, {}, opened);
  });

/** What a channel's program writes until its end. */
export async function endOf(channel: ClientChannel): Promise<Ran> {
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  channel.on("data", (data: Buffer) => stdout.push(data));
  channel.stderr.on("data", (data: Buffer) => stderr.push(data));
  channel.resume();
  // Not by "exit", which may come together with the channel.
  const closed = once(channel, "close") as Promise<[number | null | undefined, string?]>;
  const [[code, signal]] = await Promise.all([closed, once(channel.stderr, "end")]);
  return { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr), code, signal };
}

/** Runs a command to its end. */
export async function ranCommand(
  client: Client,
  command: string,
  { stdin = "", ...options }: ExecOptions & { readonly stdin?: string | Buffer } = {},
): Promise<Ran> {
  const channel = await run(client, command, options);
  channel.end(stdin);
  return endOf(channel);
}

/** Waits until a channel has written something, and gives all that it has written since. */
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

/** Sends a signal on a channel. The library's own method drops it once the client's input has ended. */
export function sendSignal(channel: ClientChannel, name: string): void {
  const { outgoing, _client: client } = channel as unknown as {
    readonly outgoing: { readonly id: number };
    readonly _client: { readonly _protocol: { signal(channel: number, name: string): void } };
  };
  client._protocol.signal(outgoing.id, name);
}
