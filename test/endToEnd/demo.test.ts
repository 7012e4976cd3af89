import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { withoutSsh } from "../support/sshFleet.ts";

// The demo is slow: it runs a TypeScript program with 37 resources four times, and waits for the end of a key. On a quiet
// machine, it takes 100 s; beside other work, more than twice as long. Faster tests cover each of its commands.

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const SLOW = { timeout: 600_000, tags: ["long"] };

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the demo like `npm run demo` after the setup, with a separate folder for temporary files. */
const demo = (folder: string, ...args: string[]): Promise<Ended> => runDemo({ TMPDIR: folder }, args);

/** @param onOutput called with all output so far, and the demo's process id */
function runDemo(
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
  onOutput: (output: string, pid: number) => void = () => {},
): Promise<Ended> {
  const child = spawn(process.execPath, ["examples/demo.ts", "--engine", "embedded", ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
  });
  return ended(child, onOutput);
}

/** Waits for the end of a program, and collects its output. */
async function ended(
  child: ChildProcessByStdio<Writable | null, Readable, Readable>,
  onOutput: (output: string, pid: number) => void = () => {},
): Promise<Ended> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
      onOutput(output, child.pid ?? 0);
    });
  }
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, output };
}

/** Types a line in a shell. */
const typed = (line: string, cwd: string): Promise<Ended> => ended(spawn("/bin/sh", ["-c", line], { cwd }));

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-demo-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  return folder;
}

it(
  "the demo finds manual changes, repairs and destroys the stack, and leaves no files behind",
  SLOW,
  async () => {
    const folder = temporaryFolder();
    const { code, output } = await demo(folder, "--destroy");
    expect(code, output).toBe(0);
    expect(output).toContain("36 to create");
    expect(output).toContain("36 unchanged");
    expect(output).toMatch(
      /PublicKey contractor: .*username is "\.\*" \(declared "\^support\$"\).*; last changed by user ana from/,
    );
    expect(output).toMatch(
      /PublicKey backdoor \([0-9a-f:]+\) is unmanaged; gives .*; last changed by user carla from/,
    );
    expect(output).toMatch(/DeviceTags edge-03: tags is .*; last changed by user bob from/);
    expect(output).toContain(
      "3 changed out of band, 1 deleted out of band, 2 unmanaged; 33 resources as declared.",
    );
    expect(output).toMatch(/PublicKey backdoor .*\(allow with --allow-unmanaged\)/);
    expect(output).toContain("No drift: 37 resources as declared.");
    // The demo tries to log in to three devices. After each attempt it prints the policy's decision, which must match
    // the outcome of the attempt.
    if (!withoutSsh) {
      const logins = output.split("\n").filter((line) => /^(logged in|support@|ALLOWED|DENIED)/.test(line));
      expect(logins).toEqual([
        "logged in on edge-01",
        expect.stringMatching(/^ALLOWED: key Contractor.* as support from 127\.0\.0\.1 on edge-01$/),
        "support@ana.web-01@127.0.0.1: Permission denied (publickey,password).",
        expect.stringMatching(/^DENIED: key Contractor.* on web-01$/),
        "support@ana.edge-08@127.0.0.1: Permission denied (publickey,password).",
        expect.stringMatching(/^DENIED: key Contractor.* on edge-08$/),
        // The key has expired during its last session.
        "support@ana.edge-01@127.0.0.1: Permission denied (publickey,password).",
      ]);
      expect(output).toMatch(/PublicKey "contractor": expired .* ago; delete this resource from the program/);
      expect(output).toMatch(
        /The session is open\.\naccess was revoked\nThe session ended \d+\.\d s after the end/,
      );
    }
    expect(output).toMatch(/firewall rule \S+ \(deny, priority 100\) denies the login/);
    expect(output).toContain("36 deleted");
    // The demo prints no colors if its output is not a terminal.
    expect(output).not.toContain("\u001b[");
    expect(readdirSync(folder)).toEqual([]);
    expect(
      readdirSync(join(ROOT, "examples/fleet-access")).filter((name) => /^Pulumi\../.test(name)),
    ).toEqual(["Pulumi.yaml"]);
  },
);

it(
  "the README's commands keep the service of the demo, review a changed policy and apply it",
  SLOW,
  async () => {
    const folder = join(temporaryFolder(), "fleet");
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const blocks = [...readme.matchAll(/^```(sh|console)\n(.*?)^```$/gms)];
    const blockWith = (text: string) =>
      blocks.map(([, , block = ""]) => block).find((block) => block.includes(text)) ?? "";
    const [keep = "", environment = "", ...lines] = blockWith("--keep")
      .trimEnd()
      .replaceAll("../gatehouse-demo", folder)
      .split("\n");
    expect(keep).toMatch(`npm run demo -- --keep ${folder} `);
    const { code, output } = await demo(tmpdir(), "--keep", folder);
    expect(code, output).toBe(0);
    const [, pid = ""] = /kill (\d+);/.exec(output) ?? [];
    try {
      const type = (line: string) => typed(`${environment.replace(/ #.*/, "")}; ${line}`, folder);
      let outputs = output;
      for (const line of lines) {
        const ended = await type(line.startsWith("gatehouse up ") ? `${line} --yes` : line);
        expect(ended.code, ended.output).toBe(0);
        outputs += ended.output;
      }
      const [access = ""] =
        /^gatehouse access .*$/m.exec(blockWith("gatehouse access").replaceAll("$ ", "")) ?? [];
      outputs += (await type(access)).output;
      // The fingerprint of the unmanaged key is another in each run. The README shortens a line.
      const comparable = (text: string) => text.replaceAll(/\([0-9a-f:]+…?\)/g, "(…)").replace(/, …$/, "");
      for (const line of blockWith("gatehouse access").trimEnd().split("\n")) {
        if (!line.startsWith("$ ")) expect(comparable(outputs)).toContain(comparable(line));
      }
      const again = await demo(tmpdir(), "--keep", folder);
      expect(again).toMatchObject({ code: 1, output: expect.stringContaining("fleet already exists.") });
    } finally {
      process.kill(Number(pid));
    }
  },
);

it("the demo prints the last lines of an agent that does not start, and a remedy", SLOW, async () => {
  const folder = temporaryFolder();
  const { code, output } = await runDemo({ TMPDIR: folder, GATEHOUSE_AGENT_ALLOW_FORWARDING: "perhaps" });
  expect(code, output).toBe(1);
  expect(output).toContain(
    "The demo failed: The agent of edge-01 exited with exit code 2. Last lines of the output:\n" +
      "  gatehouse-agent: --allow-forwarding (GATEHOUSE_AGENT_ALLOW_FORWARDING) must be on or off.\n" +
      "Fix the problem that the output reports, then run the demo again.",
  );
  expect(readdirSync(folder)).toEqual([]);
});

it.runIf(process.platform === "linux")(
  "the demo ends when its service is killed, and leaves no files behind",
  SLOW,
  async () => {
    const folder = temporaryFolder();
    let killed = false;
    const { code, output } = await runDemo({ TMPDIR: folder }, [], (soFar, pid) => {
      if (killed || !soFar.includes("devices enrolled")) return;
      killed = true;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
      const service = children.find((child) =>
        readFileSync(`/proc/${child}/cmdline`, "utf8").includes("gatehouse-server"),
      );
      process.kill(Number(service), "SIGKILL");
    });
    expect(code, output).toBe(1);
    expect(output).toMatch(
      /The demo failed: The service exited with signal SIGKILL\. Last lines of the output:\n {2}\{/,
    );
    expect(readdirSync(folder)).toEqual([]);
  },
);
