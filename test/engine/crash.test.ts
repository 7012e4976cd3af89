import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CancelledError, LockedError } from "../../provider/engine/index.ts";
import { testWorkspace, until } from "./workspace.ts";

const ws = testWorkspace();

const fast = Array.from({ length: 12 }, (_, i) => ({ name: `fast${i}` }));

/** The arguments of an up without a preview. */
const up = () => ["up", ws.folder, "--yes", "--stack", "test", "--engine", "embedded", "--skip-preview"];

const folder = () => join(ws.state, ".pulumi/locks/organization/cloud/test");
const locks = () => readdirSync(folder());
const foreign = () => ({
  pid: 1,
  username: "ana",
  hostname: hostname(),
  timestamp: new Date().toISOString(),
});

const JOURNAL = ".pulumi/stacks/cloud/test.gatehouse-journal";

/** Names of the `Thing` resources that, according to the journal, the engine has created. */
function journaled(): Set<string> {
  const file = join(ws.state, JOURNAL);
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const ends = text
    .split("\n")
    .slice(0, -1)
    .filter((line) => JSON.parse(line).line === "end");
  return new Set(ends.flatMap((line) => [...line.matchAll(/::(fast\d+)"/g)].map(([, name]) => `${name}`)));
}

/** Returns the commands of all processes that run in the workspace, by process id. */
function processesHere(): Map<number, string> {
  const processes = new Map<number, string>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [environment = "", stat = "", command = ""] = ["environ", "stat", "cmdline"].map((file) =>
        readFileSync(`/proc/${pid}/${file}`, "utf8"),
      );
      if (environment.includes(`CLOUD=${ws.cloud}\0`) && !/\) Z /.test(stat))
        processes.set(Number(pid), command);
    } catch {
      // The process has ended, or it belongs to another user.
    }
  }
  return processes;
}
const allProcessesEnded = () => until(() => processesHere().size === 0);

test("a killed run loses no finished step and leaves no process", { tags: ["long"] }, async () => {
  ws.plan({
    things: [...fast, { name: "slow", args: { slow: 60_000, password: "swordfish" }, secret: ["password"] }],
  });
  const run = ws.gatehouse(...up());
  await until(() => journaled().size === 12 && ws.callLog().includes("create slow"));
  run.kill("SIGKILL");
  await run.done;
  await allProcessesEnded();

  expect(locks()).toHaveLength(1);
  expect(ws.names()).toEqual([]);
  const journal = readFileSync(join(ws.state, JOURNAL), "utf8");
  expect(journal).not.toContain("swordfish");

  const preview = await ws.command("preview", ws.folder, "--stack", "test", "--engine", "embedded");
  expect(preview.output).toContain("An earlier run was killed");
  expect(preview.output).toContain("1 more steps were in flight");
  expect(ws.names()).toEqual([...fast.map((thing) => thing.name), "cloud-test", "default"].sort());
  expect(ws.stored().pending_operations).toMatchObject([
    { type: "creating", resource: { urn: expect.stringMatching(/::slow$/) } },
  ]);
  expect(locks()).toEqual([]);
  ws.calls();

  ws.plan({ things: [...fast, { name: "slow" }] });
  const result = await ws.up();
  expect(result.summary).toMatchObject({ create: 1, same: 13 });
  expect(result.diagnostics.some((d) => d.severity === "warning" && d.urn?.endsWith("::slow"))).toBe(true);
  expect(ws.stored().pending_operations).toBeUndefined();
});

// The previous test kills one run. This test kills runs at many different moments, to find a moment at which an object
// would be lost.
test("a run that is killed at any time has every object in the state or as a pending operation", {
  tags: ["long"],
}, async () => {
  const things = Array.from({ length: 70 }, (_, i) => ({
    name: `t${i}`,
    args: { slow: 5 + ((i * 37) % 60) },
  }));
  for (const [round, count] of [1, 2, 4, 7, 11].entries()) {
    // Each round declares more things, so that the killed run always has things to create.
    ws.plan({ things: things.slice(0, (round + 1) * 14) });
    const before = ws.objects().length;
    const run = ws.gatehouse(...up(), "--parallel", "4");
    await until(() => ws.objects().length >= before + count);
    run.kill("SIGKILL");
    await run.done;
    await allProcessesEnded();
    await (await ws.open()).preview();
    const pending = (ws.stored().pending_operations ?? []).map(
      (operation) => operation.resource.urn.split("::")[3],
    );
    const known = new Set([...ws.names(), ...pending]);
    expect(ws.objects().filter((name) => !known.has(name))).toEqual([]);
  }
  expect((await ws.up()).ok).toBe(true);
  expect(ws.names()).toHaveLength(72);
});

test("a run that is killed between deletion and creation of a replacement is completed by the next run", {
  tags: ["long"],
}, async () => {
  const things = (args: Record<string, unknown>) => [
    { name: "a", args, options: { deleteBeforeReplace: true } },
    { name: "b", args: { strict: true }, from: { ref: ["a", "id"] as [string, string] } },
  ];
  ws.plan({ things: things({}) });
  await ws.up();
  ws.calls();
  ws.plan({ things: things({ label: "z", slow: 60_000 }) });
  const run = ws.gatehouse(...up());
  await until(() => ws.callLog().includes("create z"));
  run.kill("SIGKILL");
  await run.done;
  await allProcessesEnded();
  expect(ws.calls().filter((call) => !call.startsWith("delete "))).toEqual([
    "deleted b",
    "deleted a",
    "create z",
  ]);

  await (await ws.open()).preview();
  const waiting = ws.stored().resources?.filter((resource) => resource.pendingReplacement);
  expect(waiting?.map((resource) => resource.urn.split("::")[3])).toEqual(["a", "b"]);
  ws.plan({ things: things({ label: "z" }) });
  expect((await ws.up()).summary).toMatchObject({ replace: 2, same: 1 });
  expect(ws.calls()).toEqual(["create z", "created z", "create b", "created b"]);
  expect(ws.names()).toEqual(["a", "b", "cloud-test", "default"]);
  expect(ws.stored().resources?.some((resource) => resource.pendingReplacement)).toBe(false);
});

// The tests of the Pulumi CLI in this file cover SIGTERM and SIGHUP.
test("SIGINT lets running steps finish and starts no others", async () => {
  ws.plan({
    things: [
      { name: "first", args: { held: true } },
      { name: "then", options: { dependsOn: ["first"] } },
    ],
  });
  const run = ws.gatehouse(...up());
  await until(() => ws.callLog().includes("create first"));
  run.kill("SIGINT");
  await until(() => run.output().includes("Finishing the operations in flight"));
  ws.release();
  const { code } = await run.done;
  expect(code).toBe(130);
  expect(ws.callLog()).toContain("created first");
  expect(ws.callLog()).not.toContain("create then");
  expect(ws.names()).toEqual(["cloud-test", "default", "first"]);
  expect(locks()).toEqual([]);
  await allProcessesEnded();
});

describe.each(["stdout", "stderr"] as const)("a run whose %s is closed", (name) => {
  test("continues to its end", async () => {
    ws.plan({
      things: [
        { name: "first", args: { held: true } },
        { name: "then", args: { text: "x".repeat(100_000) }, options: { dependsOn: ["first"] } },
      ],
      outputs: { text: ["then", "text"] },
    });
    // With --json, a run writes its progress to stderr and its result to stdout.
    const run = ws.gatehouse(...up(), "--json");
    await until(() => ws.callLog().includes("create first"));
    run.stopReading(name);
    ws.release();
    expect(await run.done).toMatchObject({ code: 0, signal: null });
    expect(run.output()).not.toContain("EPIPE");
    expect(ws.names()).toEqual(["cloud-test", "default", "first", "then"]);
    expect(locks()).toEqual([]);
    await allProcessesEnded();
  });
});

test.runIf(existsSync("/dev/full"))("a run whose output cannot be written fails", async () => {
  ws.plan({ things: [{ name: "a" }] });
  const { code, output } = await ws.gatehouseBy(["/bin/sh", "-c", 'exec "$@" >/dev/full', "sh"], ...up())
    .done;
  expect([code, output]).toEqual([
    1,
    expect.stringMatching(/^error: Cannot write the output: the disk or the quota is full\. .*\n$/),
  ]);
  expect(ws.names()).toEqual(["a", "cloud-test", "default"]);
});

test("an unhandled signal ends the processes that the process has started", async () => {
  const child = `["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" }, "SIGKILL"`;
  const module = JSON.stringify(join(import.meta.dirname, "../../provider/dist/engine/processes.js"));
  const script = `import { startInGroup } from ${module};
    startInGroup(process.execPath, ${child});
    console.log("started");`;
  const run = ws.start(process.execPath, ["--input-type=module", "-e", script]);
  await until(() => run.output().includes("started"));
  run.kill("SIGTERM");
  expect((await run.done).code).toBe(143);
  await allProcessesEnded();
});

describe("a run of the Pulumi CLI", () => {
  const lock = () => existsSync(join(ws.cloud, "pulumi.lock"));
  const start = async () => {
    const bin = join(ws.root, "bin");
    mkdirSync(bin);
    const standIn = join(import.meta.dirname, "fixtures/standInPulumi.mjs");
    writeFileSync(join(bin, "pulumi"), `#!/bin/sh\nexec "${process.execPath}" "${standIn}" "$@"\n`);
    chmodSync(join(bin, "pulumi"), 0o755);
    ws.env.PATH = `${bin}:${ws.env.PATH}`;
    const run = ws.gatehouse(...up(), "--engine", "cli");
    await until(() => ws.callLog().includes("begun") && run.output().includes("still running"));
    return run;
  };

  test.each(["stdout", "stderr"] as const)(
    "continues to its end when %s is closed",
    { tags: ["long"] },
    async (name) => {
      const run = await start();
      run.stopReading(name);
      ws.release();
      expect((await run.done).code).toBe(0);
      expect(run.output()).not.toContain("EPIPE");
      expect([ws.calls(), lock()]).toEqual([["begun", "done"], false]);
      await allProcessesEnded();
    },
  );

  test.each(["SIGTERM", "SIGHUP"] as const)("is canceled by %s, only once", async (signal) => {
    const run = await start();
    run.kill(signal);
    await until(() => ws.callLog().includes("signal 1"));
    ws.release();
    expect((await run.done).code).toBe(130);
    expect([ws.calls(), lock()]).toEqual([["begun", "signal 1", "cancelled"], false]);
    await allProcessesEnded();
  });

  test("is terminated by a second signal, and leaves no process", { tags: ["long"] }, async () => {
    const run = await start();
    run.kill("SIGINT");
    await until(() => ws.callLog().includes("signal 1"));
    run.kill("SIGINT");
    expect((await run.done).code).toBe(130);
    await allProcessesEnded();
    expect([ws.calls(), lock()]).toEqual([["begun", "signal 1", "signal 2", "terminated"], false]);
  });

  test("releases its lock even if the command is killed", { tags: ["long"] }, async () => {
    const run = await start();
    run.kill("SIGKILL");
    await run.done;
    ws.release();
    await allProcessesEnded();
    expect([ws.calls(), lock()]).toEqual([["begun", "done"], false]);
  });
});

test("an abort signal lets running steps of a programmatic run finish and starts no others", async () => {
  ws.plan({
    things: [
      { name: "first", args: { held: true } },
      { name: "then", options: { dependsOn: ["first"] } },
    ],
  });
  const abort = new AbortController();
  const running = (await ws.open({ signal: abort.signal })).up({ skipPreview: true });
  const failed = running.catch((error: unknown) => error);
  await until(() => ws.callLog().includes("create first"));
  abort.abort();
  ws.release();
  expect(await failed).toBeInstanceOf(CancelledError);
  expect(ws.names()).toEqual(["cloud-test", "default", "first"]);
});

test("the lock of another process blocks writers, but not a preview", async () => {
  ws.plan({ things: [{ name: "a" }] });
  const stack = await ws.open();
  await stack.preview();
  writeFileSync(join(folder(), "11111111-1111-1111-1111-111111111111.json"), JSON.stringify(foreign()));
  await expect(stack.up()).rejects.toBeInstanceOf(LockedError);
  await expect(stack.destroy()).rejects.toThrow(/ana@/);
  expect((await stack.preview()).summary).toMatchObject({ create: 2 });
  expect(ws.calls()).toEqual([]);
  expect(locks()).toHaveLength(1);
});

describe("the first command on a stack", () => {
  const settings = () => join(ws.folder, "Pulumi.test.yaml");
  const salts = () => [...readFileSync(settings(), "utf8").matchAll(/^encryptionsalt:/gm)].length;

  test("writes the salt once, even if another command runs concurrently", async () => {
    ws.plan({ things: [{ name: "a" }] });
    writeFileSync(settings(), "config:\n  cloud:size: 5\n");
    const both = [await ws.open(), await ws.open()];
    const ends = await Promise.allSettled(both.map((stack) => stack.preview()));
    const rejected = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
    for (const error of rejected) expect(error).toBeInstanceOf(LockedError);
    expect((await ws.up()).ok).toBe(true);
    expect(salts()).toBe(1);
  });

  test("creates no stack while another process holds the lock", async () => {
    mkdirSync(folder(), { recursive: true });
    writeFileSync(join(folder(), "11111111-1111-1111-1111-111111111111.json"), JSON.stringify(foreign()));
    await expect((await ws.open()).preview()).rejects.toBeInstanceOf(LockedError);
    expect(existsSync(settings())).toBe(false);
    expect(() => ws.stored()).toThrow(/ENOENT/);
  });

  test("does not create a stack that another command created in the meantime", async () => {
    const fifo = join(ws.root, "passphrase");
    execFileSync("mkfifo", [fifo]);
    const { PULUMI_CONFIG_PASSPHRASE, ...env } = ws.env;
    ws.plan({ things: [{ name: "a" }] });
    const waiting = (await ws.open({ env: { ...env, PULUMI_CONFIG_PASSPHRASE_FILE: fifo } })).preview();
    await ws.up();
    writeFileSync(fifo, `${PULUMI_CONFIG_PASSPHRASE}`);
    expect(await waiting).toMatchObject({ createdStack: false, summary: { same: 2 } });
    expect(ws.names()).toEqual(["a", "cloud-test", "default"]);
    expect(salts()).toBe(1);
  });
});

describe.runIf(process.platform !== "win32")("a full disk", { tags: ["long"] }, () => {
  const things = (name: string, count: number, size: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `${name}${i}`, args: { text: "x".repeat(size) } }));
  const upWithin = (limit: number) =>
    ws.gatehouseBy(
      ["/bin/sh", "-c", `ulimit -f ${limit / 512} && exec "$@"`, "sh"],
      ...up(),
      "--parallel",
      "1",
    ).done;
  const known = () => {
    const pending = (ws.stored().pending_operations ?? []).map(({ resource }) => resource.urn.split("::")[3]);
    return new Set([...ws.names(), ...pending]);
  };

  // The engine's journal reaches the file size limit. Depending on the size of the resources, this happens before an
  // operation starts or after it ends.
  test.each([2000, 2400])(
    "that prevents writing the journal stops the run, and the state is written (%i)",
    async (size) => {
      ws.plan({ things: things("t", 20, size) });
      const { code, output } = await upWithin(40 * 1024);
      expect([code, output]).toEqual([
        1,
        expect.stringContaining("test.gatehouse-journal cannot be written"),
      ]);
      expect(output).toContain("EFBIG");
      expect(ws.objects().length).toBeGreaterThan(2);
      expect(ws.objects().length).toBeLessThan(12);
      expect(ws.names()).toEqual([...ws.objects(), "cloud-test", "default"].sort());
      expect(ws.stored().pending_operations).toBeUndefined();
      expect(existsSync(join(ws.state, JOURNAL))).toBe(false);
      const remaining = 20 - ws.objects().length;
      expect((await ws.up()).summary.create).toBe(remaining);
    },
  );

  test.each([2000, 2400])(
    "that prevents writing journal and state leaves a journal, which the next run merges (%i)",
    async (size) => {
      ws.plan({ things: things("old", 20, 2000) });
      await ws.up();
      const before = ws.names();
      // Clears the test cloud's call log, since the file size limit also applies to them.
      ws.records();
      ws.plan({ things: [...things("old", 20, 2000), ...things("t", 20, size)] });
      const { code, output } = await upWithin(40 * 1024);
      expect([code, output]).toEqual([1, expect.stringContaining("The state could not be written")]);
      expect(output).toContain(JOURNAL);
      expect(ws.names()).toEqual(before);
      const preview = await (await ws.open()).preview();
      expect(preview.diagnostics[0]?.message).toMatch(
        /finished steps of the earlier run were merged into the state/,
      );
      expect(ws.objects().filter((name) => !known().has(name))).toEqual([]);
      expect(ws.names().length).toBeGreaterThan(before.length);
      for (const name of ws.objects().filter((object) => !ws.names().includes(object))) {
        expect(output).toMatch(new RegExp(`The journal does not contain .*::${name} `, "s"));
      }
    },
  );
});

describe("a lock of an ended process on a host with the same name", () => {
  const command = () => ws.gatehouse(...up());

  test.runIf(process.platform === "linux")(
    "stays, and the error contains the command that removes the lock",
    { tags: ["long"] },
    async () => {
      ws.plan({ things: [{ name: "a", args: { slow: 60_000 } }] });
      const run = command();
      await until(() => ws.callLog().includes("create a"));
      run.kill("SIGKILL");
      await run.done;
      await allProcessesEnded();
      ws.plan({ things: [{ name: "a" }] });
      const path = join(folder(), locks()[0] as string);
      const lock = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
      for (const elsewhere of [
        // A lock of a process in another PID namespace.
        { pidNamespace: "pid:[1]" },
        // A lock of a process on another machine, or on this machine before its last restart.
        { boot: "00000000-0000-0000-0000-000000000000" },
        // A lock of an older release, which did not record the boot id and the PID namespace.
        { boot: undefined, pidNamespace: undefined },
      ]) {
        writeFileSync(path, JSON.stringify({ ...lock, ...elsewhere }));
        const rejected = await (await ws.open()).up().catch((error: unknown) => error);
        expect(rejected).toBeInstanceOf(LockedError);
        const { message } = rejected as LockedError;
        expect(message).toMatch(/pulumi cancel.*delete the file.*cannot check whether the process is alive/s);
        expect(message).toContain(path);
        expect(locks()).toHaveLength(1);
      }
      rmSync(path);
      expect((await (await ws.open()).preview()).diagnostics[0]?.message).toContain(
        "An earlier run ended before",
      );
      expect(locks()).toEqual([]);
    },
  );

  const unshare = ["unshare", "--pid", "--fork", "--mount-proc"];
  const containers = spawnSync(unshare[0] as string, [...unshare.slice(1), "true"]).status === 0;
  test.runIf(containers)(
    "of a running process in another container blocks writers",
    { tags: ["long"] },
    async () => {
      ws.plan({ things: [{ name: "a", args: { held: true } }] });
      const run = command();
      await until(() => ws.callLog().includes("create a"));
      const other = await ws.gatehouseBy(unshare, ...up()).done;
      expect(other.output).toContain("The stack is locked by another process");
      expect(locks()).toHaveLength(1);
      ws.release();
      expect((await run.done).code).toBe(0);
      expect(ws.objects()).toEqual(["a"]);
    },
  );
});

test("a provider that crashes leaves its operation pending", async () => {
  ws.plan({ things: [{ name: "a", args: { slow: 60_000 } }] });
  const running = ws.up().catch((error: unknown) => error);
  await until(() => ws.callLog().includes("create a"));
  for (const [pid, command] of processesHere()) {
    if (command.includes("dynamic-provider")) process.kill(pid, "SIGKILL");
  }
  expect(await running).toMatchObject({ code: "failed" });
  expect(ws.stored().pending_operations).toMatchObject([{ type: "creating" }]);
});
