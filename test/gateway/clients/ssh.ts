import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as pass } from "node:timers/promises";
import { freePort } from "../../support/listening.ts";
import { SSHD } from "../../support/sshd.ts";
import {
  type Check,
  checksOf,
  expectContains,
  expectEqual,
  expectSameBytes,
  untilWritten,
  type Workspace,
  withoutPrograms,
} from "./check.ts";

const check = checksOf("ssh", withoutPrograms("ssh"));
/** Creates a check whose client needs a local terminal. */
const terminalCheck = checksOf("ssh", withoutPrograms("ssh", "script", "stty"));
/** Creates a check that forwards a connection to a plain sshd. */
const sshdCheck = checksOf(
  "ssh",
  withoutPrograms("ssh") ?? (existsSync(SSHD) ? undefined : `${SSHD} is not installed`),
);
/** Number of bytes that checks pipe to a command. */
export const PIPED = 5_000_000;

const sha256 = (data: Buffer): string => createHash("sha256").update(data).digest("hex");

/** Returns a command that fails unless its stdin contains the given bytes. */
export const expectInput = (data: Buffer): string => `test "$(sha256sum)" = "${sha256(data)}  -"`;

/**
 * Returns a command of about the given number of bytes. The command assigns a long text to a variable and prints the
 * length of the text.
 */
const longCommand = (bytes: number): string => `text=${"a".repeat(bytes)}; echo \${#text}`;

const longCommandCheck = (kilobytes: number): Check =>
  check(`command of ${kilobytes} kB`, async (workspace) => {
    const { stdout } = await workspace.ssh(longCommand(kilobytes * 1000));
    expectEqual("the length that the command sees", stdout.toString(), `${kilobytes * 1000}\n`);
  });

/** Runs a shell script in a local terminal. */
async function inTerminal(workspace: Workspace, lines: readonly string[]): Promise<string> {
  const file = join(workspace.here, "in-terminal");
  writeFileSync(file, `${lines.join("\n")}\n`);
  const { stdout } = await workspace.run("script", ["-qec", `sh ${file}`, "/dev/null"], { input: "open" });
  return stdout.toString();
}

/** Runs a server that sends its input back to the client. */
async function withEcho(work: (port: number) => Promise<void>): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work((server.address() as AddressInfo).port);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

/** Connects to a local port as soon as a program listens on the port. */
async function connectTo(port: number): Promise<Socket> {
  for (;;) {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const connected = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    if (connected) return socket.on("error", () => {});
    await pass(50);
  }
}

/** Expects that a connection to the echo server returns the sent bytes. Keeps both directions open. */
async function expectEcho(to: Writable, from: Readable): Promise<void> {
  const sent = randomBytes(PIPED);
  to.write(sent);
  expectSameBytes("the echo", await take(from, sent.length), sent);
}

/** Reads the given number of bytes. */
async function take(stream: Readable, length: number): Promise<Buffer> {
  let taken = Buffer.alloc(0);
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    taken = Buffer.concat([taken, chunk as Buffer]);
    if (taken.length >= length) return taken;
  }
  throw new Error(`the connection ended after ${taken.length} of ${length} bytes`);
}

/** Opens a connection through a SOCKS5 proxy. */
async function connectBySocks(proxy: number, port: number): Promise<Socket> {
  const socket = await connectTo(proxy);
  socket.write(Buffer.from([5, 1, 0]));
  expectEqual("the answer of the proxy", [...(await take(socket, 2))], [5, 0]);
  socket.write(Buffer.from([5, 1, 0, 1, 127, 0, 0, 1, port >> 8, port & 0xff]));
  expectEqual("the status of the proxy", (await take(socket, 10))[1], 0);
  return socket;
}

const forwardArgs = ({ target }: Workspace, port: number): readonly string[] => [
  "-F",
  target.config,
  "-W",
  `127.0.0.1:${port}`,
  "target",
];

/** Flags of a client that forwards connections and runs no command. */
const FORWARD = ["-N", "-o", "ExitOnForwardFailure=yes"];

/** Starts a shared connection. Returns the flags with which clients use the shared connection. */
async function shareConnection(workspace: Workspace): Promise<readonly string[]> {
  const path = join(workspace.here, "shared");
  const master = workspace.startSsh(["-N", "-M", "-S", path]);
  while (!existsSync(path)) {
    if (master.exitCode !== null) throw new Error(`the shared connection ended with ${master.exitCode}`);
    await pass(20);
  }
  // With this ProxyCommand, a client fails if the shared connection (ControlMaster) is missing. It cannot open its own
  // connection instead.
  return ["-S", path, "-o", "ProxyCommand=false"];
}

/** Checks of OpenSSH's `ssh`. */
export const sshChecks: readonly Check[] = [
  check("exit codes", async (workspace) => {
    for (const code of [0, 1, 7, 126, 127, 254]) await workspace.ssh(`exit ${code}`, { code });
  }),
  check("stdout and stderr separate", async (workspace) => {
    const { stdout, stderr } = await workspace.ssh("echo out; echo err >&2");
    expectEqual("stdout and stderr", [stdout.toString(), stderr], ["out\n", "err\n"]);
  }),
  check("stdin, 5 MB", async (workspace) => {
    const input = randomBytes(PIPED);
    await workspace.ssh(expectInput(input), { input });
  }),
  check("stdin and stdout, 5 MB each", async (workspace) => {
    const input = randomBytes(PIPED);
    expectSameBytes("stdout", (await workspace.ssh("cat", { input })).stdout, input);
  }),
  check("stdin that the command does not read", async (workspace) => {
    await workspace.ssh("exit 3", { input: randomBytes(PIPED), code: 3 });
  }),
  check("stdin that stays open", async (workspace) => {
    await workspace.ssh("exit 3", { input: "open", code: 3 });
  }),
  check("output, 50 MB", async (workspace) => {
    const command = "seq 1 8000000 | head -c 50000000";
    const { stdout } = await workspace.ssh(command);
    const local = await workspace.run("sh", ["-c", command]);
    expectSameBytes("stdout", stdout, local.stdout);
  }),
  check("both outputs, 5 MB each", async (workspace) => {
    const command = "seq 1 800000 | head -c 5000000; seq 1 800000 | head -c 5000000 >&2";
    const { stdout, stderr } = await workspace.ssh(command);
    expectSameBytes("stderr", Buffer.from(stderr), stdout);
    expectEqual("bytes of stdout", stdout.length, 5_000_000);
  }),
  ...[34, 40, 100].map(longCommandCheck),
  check("environment (LANG, LC_*)", async (workspace) => {
    const flags = ["-o", "SetEnv=LANG=C.UTF-8 LC_GATEHOUSE=x=y"];
    const { stdout } = await workspace.ssh('echo "$LANG $LC_GATEHOUSE"', { flags });
    expectEqual("the environment", stdout.toString(), "C.UTF-8 x=y\n");
  }),
  check("command killed by a signal", async (workspace) => {
    await workspace.ssh("kill -TERM $$", { code: 255 });
  }),
  check("login shell, commands on stdin", async (workspace) => {
    // `-T` requests no terminal, and the arguments contain no command.
    const args = ["-F", workspace.target.config, "-T", "target"];
    const { stdout } = await workspace.run("ssh", args, { input: 'echo "<$0>"; exit 3\n', code: 3 });
    expectContains("stdout", stdout.toString(), "<-");
  }),
  check("background process", async (workspace) => {
    const file = join(workspace.there, "done");
    const begun = performance.now();
    await workspace.ssh(`(sleep 3; echo x > ${file}) < /dev/null > /dev/null 2>&1 & exit 0`);
    const took = performance.now() - begun;
    if (took > 3000) throw new Error(`the client waited for the background process: ${took.toFixed(0)} ms`);
    await pass(4500 - took);
    if (!existsSync(file)) throw new Error("the background process ended with the session");
  }),
  check("20 logins in sequence", async (workspace) => {
    for (let index = 0; index < 20; index += 1) {
      const { stdout } = await workspace.ssh(`echo ${index}; exit ${index}`, { code: index });
      expectEqual("stdout", stdout.toString(), `${index}\n`);
    }
  }),
  check("ControlMaster, 3 commands at a time", async (workspace) => {
    const flags = await shareConnection(workspace);
    const input = randomBytes(PIPED);
    const work = [1, 2, 3].map((code) =>
      workspace.ssh(`${expectInput(input)} && exit ${code}`, { flags, input, code }),
    );
    await Promise.all(work);
  }),
  check("ControlMaster, 50 commands in sequence", async (workspace) => {
    const flags = await shareConnection(workspace);
    for (let index = 0; index < 50; index += 1) {
      const { stdout } = await workspace.ssh(`echo ${index}; exit ${index}`, { flags, code: index });
      expectEqual("stdout", stdout.toString(), `${index}\n`);
    }
  }),
  check("terminal: exit code, TERM", async (workspace) => {
    const { stdout } = await workspace.ssh('test -t 0 -a -t 1 -a -t 2 || exit 1; echo "<$TERM>"; exit 5', {
      flags: ["-tt"],
      env: { TERM: "vt100" },
      code: 5,
    });
    expectContains("stdout", stdout.toString(), "<vt100>");
  }),
  check("terminal: output, 5 MB", async (workspace) => {
    const { stdout } = await workspace.ssh("stty -opost; seq 1 800000 | head -c 5000000", {
      flags: ["-tt"],
      input: "open",
    });
    const local = await workspace.run("sh", ["-c", "seq 1 800000 | head -c 5000000"]);
    expectSameBytes("stdout", stdout, local.stdout);
  }),
  terminalCheck("terminal: size and modes", async (workspace) => {
    const output = await inTerminal(workspace, [
      "stty rows 33 cols 77 erase '^H' intr '^G' -ixon -echoe",
      `exec ssh -F ${workspace.target.config} -tt target 'stty size; stty -a'`,
    ]);
    const wanted = ["33 77", "erase = ^H;", "intr = ^G;", "-ixon", "-echoe"];
    const missing = wanted.filter((mode) => !output.includes(mode));
    if (missing.length > 0) throw new Error(`\`stty -a\` does not report: ${missing.join(" ")}`);
  }),
  terminalCheck("terminal: change of its size", async (workspace) => {
    const command = "trap 'stty size; exit 0' WINCH; for i in $(seq 100); do sleep 0.1; done; exit 1";
    const output = await inTerminal(workspace, [
      "stty rows 33 cols 77; terminal=$(tty)",
      "(sleep 2; stty rows 40 cols 100 < $terminal) &",
      `exec ssh -F ${workspace.target.config} -tt target "${command.replaceAll("$", "\\$")}"`,
    ]);
    expectContains("`stty size` after the change", output, "40 100");
  }),
  check("terminal: Ctrl-C", async (workspace) => {
    const command = "trap 'exit 5' INT; echo ready; for i in $(seq 100); do sleep 0.1; done; exit 1";
    const child = workspace.startSsh(["-tt"], command);
    const exit = new Promise<number | null>((resolve) => child.once("exit", resolve));
    await untilWritten(child.stdout, "ready");
    child.stdin.write("\x03");
    child.stdout.resume();
    expectEqual("the exit code", await exit, 5);
  }),
  check("terminal: end of stdin (Ctrl-D)", async (workspace) => {
    const { stdout } = await workspace.ssh("cat; echo after", { flags: ["-tt"], input: "text\n\x04" });
    expectContains("stdout", stdout.toString(), "after");
  }),
  check("programs end with the client", async (workspace) => {
    const file = join(workspace.there, "pid");
    const child = workspace.startSsh(["-tt"], `echo $$ > ${file}; echo ready; exec sleep 1000`);
    await untilWritten(child.stdout, "ready");
    const pid = Number(readFileSync(file, "utf8"));
    child.kill("SIGKILL");
    const deadline = Date.now() + 10_000;
    while (existsSync(`/proc/${pid}`)) {
      if (Date.now() > deadline) throw new Error("the program still runs 10 s after the client has ended");
      await pass(50);
    }
  }),
  check("forwarding: -W", (workspace) =>
    withEcho(async (port) => {
      const child = workspace.start("ssh", forwardArgs(workspace, port));
      await expectEcho(child.stdin, child.stdout);
    }),
  ),
  check("forwarding: -W, end of stdin before the answer", (workspace) =>
    withEcho(async (port) => {
      const input = randomBytes(1000);
      const { stdout } = await workspace.run("ssh", forwardArgs(workspace, port), { input });
      expectSameBytes("the echo", stdout, input);
    }),
  ),
  check("forwarding: -L", (workspace) =>
    withEcho(async (port) => {
      const local = await freePort();
      workspace.startSsh([...FORWARD, "-L", `127.0.0.1:${local}:127.0.0.1:${port}`]);
      const socket = await connectTo(local);
      await expectEcho(socket, socket);
    }),
  ),
  check("forwarding: -D", (workspace) =>
    withEcho(async (port) => {
      const local = await freePort();
      workspace.startSsh([...FORWARD, "-D", `127.0.0.1:${local}`]);
      const socket = await connectBySocks(local, port);
      await expectEcho(socket, socket);
    }),
  ),
  sshdCheck("forwarding: -J", async (workspace) => {
    const args = ["-F", workspace.target.config, "-J", "target", "behind"];
    const input = randomBytes(PIPED);
    await workspace.run("ssh", [...args, `${expectInput(input)} && exit 7`], { input, code: 7 });
  }),
];
