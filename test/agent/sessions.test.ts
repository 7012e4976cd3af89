import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import type { Client } from "ssh2";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { listenOnNewPort } from "../support/listening.ts";
import { DEVICE, type FakeGateway, newRsaKey } from "./FakeGateway.ts";
import { endOf, type Pair, ranCommand, run, sendSignal, startPair, written } from "./support.ts";

const privateKey = newRsaKey();
/** Encodes terminal modes, which are pairs of an opcode and a value. */
const modesOf = (entries: readonly (readonly [opcode: number, value: number])[]): Buffer =>
  Buffer.from([...entries.flatMap(([opcode, value]) => [opcode, 0, 0, 0, value]), 0]);

/** Input that is larger than the buffers of a terminal, in 50,000 lines. */
const LARGE_INPUT = "input\n".repeat(50_000);

const PTY = { term: "vt100", cols: 80, rows: 24, width: 0, height: 0 };

let pair: Pair;
let gateway: FakeGateway;
let client: Client;
beforeAll(async () => {
  pair = await startPair({ flags: ["--allow-forwarding"] });
  gateway = pair.gateway;
  gateway.hold(privateKey);
  client = await gateway.login({ username: "deploy", privateKey });
});
afterAll(() => pair.stop());

/** Returns true if the process runs. A zombie process does not run. */
const runs = (pid: number): boolean => {
  const state = execFileSync("ps", ["-o", "stat=", "-p", `${pid},${process.pid}`], { encoding: "utf8" });
  return (
    state
      .trim()
      .split("\n")
      .filter((each) => !each.startsWith("Z")).length === 2
  );
};

/**
 * Waits until two processes have ended.
 * @param pids output of a command that contains both process ids
 */
const allEnded = async (pids: string) => {
  const ids = (pids.match(/\d+/g) ?? []).map(Number);
  expect(ids).toHaveLength(2);
  await vi.waitFor(() => expect(ids.filter(runs)).toEqual([]), { timeout: 20_000, interval: 50 });
};

it("runs a command with both outputs, its exit status, and the end of its input", async () => {
  const ran = await ranCommand(client, "cat; echo to err >&2; exit 7", { stdin: "all of it" });
  expect(ran).toMatchObject({ code: 7, signal: undefined });
  expect(ran.stdout.toString()).toBe("all of it");
  expect(ran.stderr.toString()).toBe("to err\n");
});

it("sets the modes of the client's terminal", async () => {
  const [INTR, QUIT, ERASE, SUSP, IXON, ECHO] = [1, 2, 3, 10, 38, 53] as const;
  const modes = modesOf([
    [INTR, 7],
    [QUIT, 255],
    [ERASE, 8],
    [SUSP, 39],
    [IXON, 0],
    [ECHO, 1],
    // A terminal mode opcode that no operating system defines.
    [99, 1],
  ]);
  const { stdout } = await ranCommand(client, "stty -a", { pty: { ...PTY, modes: modes as never } });
  expect(stdout.toString()).toMatch(/intr = \^G; quit = <undef>; erase = \^H;/);
  expect(stdout.toString()).toMatch(/susp = ';/);
  expect(stdout.toString()).toMatch(/ -ixon /);
  expect(stdout.toString()).toMatch(/ echo /);
});

it("does not wait for input that a command leaves unread", async () => {
  expect(await ranCommand(client, "exit 3", { stdin: Buffer.alloc(8 * 1024 * 1024) })).toMatchObject({
    code: 3,
  });
});

it("passes on both outputs completely to a slow client", async () => {
  const size = 9_000_000;
  const both = `head -c ${size} /dev/zero & head -c ${size} /dev/zero >&2; wait`;
  const channel = await run(client, `${both}; head -c ${size} /dev/zero; head -c ${size} /dev/zero >&2`);
  for (const output of [channel, channel.stderr]) {
    output.on("data", () => {
      output.pause();
      setImmediate(() => output.resume());
    });
  }
  channel.end();
  const { stdout, stderr, code } = await endOf(channel);
  expect([stdout.length, stderr.length, code]).toEqual([2 * size, 2 * size, 0]);
});

it("gives a command its user's environment, and the variables that the client may set", async () => {
  const { stdout } = await ranCommand(client, "env", {
    env: { LC_TIME: "C", TERM: "vt52", LD_PRELOAD: "x" },
  });
  const lines = stdout.toString().split("\n");
  const names = lines.map((line) => line.split("=")[0]);
  expect(lines).toEqual(expect.arrayContaining(["LC_TIME=C", "TERM=vt52", `GATEHOUSE_HOST=${DEVICE}`]));
  expect(names).toEqual(expect.arrayContaining(["HOME", "SHELL", "USER", "LOGNAME", "PATH"]));
  expect(names).not.toContain("LD_PRELOAD");
  expect(lines.filter((line) => line.startsWith("GATEHOUSE_"))).toHaveLength(1);
});

it.each([
  ["with pipes", {}],
  ["in a terminal", { pty: PTY }],
])("reports the signal that ended a command %s", async (_how, options) => {
  expect(await ranCommand(client, "kill -TERM $$; sleep 60", options)).toMatchObject({
    code: null,
    signal: "SIGTERM",
  });
});

it("reports a signal that has no name in SSH with the exit status that shells use", async () => {
  expect(await ranCommand(client, "kill -XCPU $$; sleep 60")).toMatchObject({ code: 152 });
});

it("sends a client's signals to the command's processes", async () => {
  const channel = await run(
    client,
    "trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.02; done",
  );
  await written(channel, /ready/);
  const ended = endOf(channel);
  channel.signal("USR1");
  expect(await ended).toMatchObject({ code: 5, stdout: Buffer.from("caught\n") });
});

it("sends signals to a command whose input has ended", async () => {
  const channel = await run(client, "trap 'exit 5' USR1; echo ready; while :; do sleep 0.02; done");
  await written(channel, /ready/);
  const ended = endOf(channel);
  channel.end();
  sendSignal(channel, "USR1");
  expect(await ended).toMatchObject({ code: 5 });
});

it("opens a shell in a terminal of the latest size, and reports its exit status", async () => {
  const session = client.shell.bind(client);
  const channel = await new Promise<Awaited<ReturnType<typeof run>>>((resolve, reject) => {
    session({ ...PTY, cols: 91, rows: 33 }, (error, opened) => (error ? reject(error) : resolve(opened)));
  });
  channel.write("stty size; stty -echo; echo go''ne\n");
  expect(await written(channel, /gone/)).toContain("33 91");
  channel.setWindow(44, 120, 0, 0);
  channel.write("stty size; echo $TERM\n");
  expect(await written(channel, /vt100/)).toContain("44 120");
  channel.write("exit 9\n");
  expect(await endOf(channel)).toMatchObject({ code: 9 });
});

it("accepts input and sizes for a terminal after the program has closed it", async () => {
  const channel = await run(client, "trap '' HUP; echo re''ady; exec sleep 0.5 <&- >&- 2>&-", { pty: PTY });
  await written(channel, /ready/);
  const ended = endOf(channel);
  const more = setInterval(() => {
    channel.write("input\n");
    channel.setWindow(10, 20, 0, 0);
  }, 5);
  onTestFinished(() => clearInterval(more));
  expect(await ended).toMatchObject({ code: 0 });
});

it("serves other channels while a program leaves the input of its terminal unread", async () => {
  const channel = await run(client, "stty -echo; echo $$ re''ady; exec sleep 600", { pty: PTY });
  const [pid] = /\d+/.exec(await written(channel, /ready/)) ?? [];
  const ended = endOf(channel);
  channel.write(LARGE_INPUT);
  expect(await ranCommand(client, `kill -TERM ${pid}`)).toMatchObject({ code: 0 });
  expect(await ended).toMatchObject({ signal: "SIGTERM" });
});

it("passes on input that exceeds the buffers of a terminal completely", async () => {
  const channel = await run(client, "stty -echo; echo re''ady; head -n 50000 | wc -c", { pty: PTY });
  await written(channel, /ready/);
  channel.write(LARGE_INPUT);
  expect((await endOf(channel)).stdout.toString()).toContain(String(LARGE_INPUT.length));
});

it("accepts a change of the terminal's size before the program starts", async () => {
  // The SSH library requests the terminal and the shell together. The test therefore changes the size with the
  // library's internal protocol object.
  const { _protocol: protocol } = client as unknown as {
    readonly _protocol: { pty(...args: unknown[]): void; windowChange(...args: unknown[]): void };
  };
  const pty = vi.spyOn(protocol, "pty").mockImplementationOnce((...args) => {
    pty.mockRestore();
    protocol.pty(...args);
    protocol.windowChange(args[0], 55, 99, 0, 0);
  });
  const { stdout, code } = await ranCommand(client, "stty size", { pty: PTY });
  expect([stdout.toString().trim(), code]).toEqual(["55 99", 0]);
});

it("passes on a terminal's output completely if it ends before the client reads it", async () => {
  const ends = () => pair.agent.output().split('"kind":"exec"').length;
  const before = ends();
  // The output is larger than the channel windows of the client and the agent together. The agent therefore cannot read
  // all output before the command ends, and the terminal's buffer contains the remaining bytes.
  const size = 2 * 2 * 1024 * 1024 + 6000;
  const channel = await run(client, `stty raw; head -c ${size} /dev/zero; printf end`, { pty: PTY });
  channel.pause();
  await vi.waitFor(() => expect(ends()).toBe(before + 1), { timeout: 20_000, interval: 20 });
  const { stdout } = await endOf(channel);
  expect([stdout.length, stdout.subarray(-4).toString()]).toEqual([size + 3, "\0end"]);
});

it.concurrent.each([
  ["with pipes", {}],
  ["in a terminal", { pty: PTY }],
])(
  "ends processes started %s when their channel is closed, even if they ignore a hang-up",
  async (_how, options) => {
    const command = "trap '' HUP; sleep 600 & echo $$ $!; echo read''y; wait";
    const channel = await run(client, command, options);
    const pids = await written(channel, /ready/);
    channel.close();
    await allEnded(pids);
  },
);

it.concurrent.each([
  ["with pipes", {}],
  ["in a terminal", { pty: PTY }],
])("ends processes started %s when the connection breaks off with unread input", async (_how, options) => {
  const stream = await gateway.open("broken");
  const other = await gateway.login({ username: "deploy", privateKey }, stream);
  other.on("error", () => {});
  const channel = await run(other, "stty raw; sleep 600 & echo $$ $!; echo read''y; wait", options);
  const pids = await written(channel, /ready/);
  channel.write(Buffer.alloc(6 * 1024 * 1024));
  stream.destroy();
  await allEnded(pids);
});

it("serves many sessions of a connection at once", async () => {
  const numbers = Array.from({ length: 10 }, (_, number) => String(number));
  const ran = await Promise.all(numbers.map((stdin) => ranCommand(client, "cat", { stdin })));
  expect(ran.map(({ stdout }) => stdout.toString())).toEqual(numbers);
});

it("forwards a connection, and keeps one direction open after the other direction has ended", async () => {
  const reply = (socket: Socket) => {
    socket.write("hello");
    socket.end();
    let input = "";
    socket.on("data", (data) => {
      input += data;
    });
    socket.on("end", () => onEnd(input));
  };
  let onEnd = (_input: string) => {};
  const receivedByServer = new Promise<string>((resolve) => {
    onEnd = resolve;
  });
  const server = createServer({ allowHalfOpen: true }, reply);
  onTestFinished(() => void server.close());
  const port = await listenOnNewPort(server);
  const channel = await new Promise<Awaited<ReturnType<typeof run>>>((resolve, reject) => {
    client.forwardOut("127.0.0.1", 1, "127.0.0.1", port, (error, opened) =>
      error ? reject(error) : resolve(opened),
    );
  });
  const received: Buffer[] = [];
  channel.on("data", (data: Buffer) => received.push(data));
  await once(channel, "end");
  // The server has closed its side of the connection (EOF). The client can still send data.
  channel.end("still here");
  expect(await receivedByServer).toBe("still here");
  expect(Buffer.concat(received).toString()).toBe("hello");
});

it("refuses a connection to a port without a listener", async () => {
  const opened = new Promise((resolve, reject) => {
    client.forwardOut("127.0.0.1", 1, "127.0.0.1", 1, (error, channel) =>
      error ? reject(error) : resolve(channel),
    );
  });
  await expect(opened).rejects.toThrow();
});
