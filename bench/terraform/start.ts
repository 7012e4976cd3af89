import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { rootCertificates } from "node:tls";
import { environmentWithout } from "../../test/support/command.ts";
import { PATH } from "./modules.ts";

/** What Terraform tells its plugins. */
const HANDSHAKE = {
  TF_PLUGIN_MAGIC_COOKIE: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
  PLUGIN_PROTOCOL_VERSIONS: "5,6",
  // Any certificate: nobody connects, but the provider makes its own for it.
  PLUGIN_CLIENT_CERT: rootCertificates[0] ?? "",
};

/** Milliseconds from the start of the provider's process to the line that Terraform waits for. */
async function startOnce(file: string, folder: string): Promise<number> {
  const started = performance.now();
  const child = spawn(file, [], {
    // The socket is left in the folder by a process that is killed.
    env: { ...environmentWithout("GATEHOUSE_", "TF_"), PATH, ...HANDSHAKE, PLUGIN_UNIX_SOCKET_DIR: folder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  for await (const line of createInterface({ input: child.stdout })) {
    const milliseconds = performance.now() - started;
    child.kill("SIGKILL");
    await ended;
    if (!line.startsWith("1|6|unix|")) throw new Error(`the provider says ${line}`);
    return milliseconds;
  }
  throw new Error("the provider ended without a word");
}

/**
 * The median of some starts, in milliseconds.
 * @param file the provider
 * @param folder takes the sockets
 */
export async function startOfProvider(file: string, folder: string, times: number): Promise<number> {
  const all: number[] = [];
  for (let time = 0; time < times; time += 1) all.push(await startOnce(file, folder));
  return all.sort((a, b) => a - b)[times >> 1] ?? Number.NaN;
}
