// The folder `recorded` contains calls of a Pulumi CLI and the plugin's responses. The tests send an engine's real
// calls to the plugin, also on machines without the CLI. Each recording also contains its commands and programs. This
// command creates the recordings again. It uses the `pulumi` on the PATH, which needs its language host for YAML:
//
//   GATEHOUSE_RECORD=1 npx vitest run test/plugin/replay.test.ts
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { SECRET, SIGNATURE, UNKNOWNS } from "../../provider/engineMarks.ts";
import { environmentWithout } from "../support/command.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { failureOf, type Message, type PluginResponse } from "../support/pluginClient.ts";
import { run } from "./support/cli.ts";
import { startPlugin } from "./support/pluginProcess.ts";
import { type Named, type Scenario, scenarios } from "./support/scenarios.ts";

/** A recorded call of the engine to a plugin process, with its response or error. */
type Exchange = {
  readonly process: number;
  readonly method: string;
  readonly request: Message;
} & PluginResponse;

/** A recorded step: a Pulumi CLI command with the calls that it caused, or an out-of-band change. */
type Step =
  | {
      readonly command: readonly string[];
      readonly code: number;
      /** The YAML program for this step and all later steps. */
      readonly program?: string;
      /** The environment variables that the plugin processes get. A new recording uses them too. */
      readonly env: Named;
      /** The calls of all plugins that the command started, with their outcomes. */
      readonly exchanges: readonly Exchange[];
    }
  | { readonly outOfBand: string };

/** A recording. In its texts, «name» represents a value that differs between runs, or a secret. */
interface Recording {
  /** Version of the Pulumi CLI. */
  readonly cli: string;
  readonly steps: readonly Step[];
}

const PACKAGE = new URL("../../provider/package.json", import.meta.url);
const fileOf = (name: string) => new URL(`recorded/${name}.json`, import.meta.url);
const markOf = (name: string) => `«${name}»`;

/**
 * Starts a service, prepares it for a scenario, and returns it with the values that the recording refers to by name.
 */
async function startScenario({ users, prepare }: Scenario): Promise<{ fleet: Fleet; named: Named }> {
  const fleet = await startFleet(users);
  onTestFinished(() => fleet.stop());
  const { GATEHOUSE_URL: url = "", GATEHOUSE_PASSWORD: password = "" } = fleet.env;
  const { version } = JSON.parse(readFileSync(PACKAGE, "utf8")) as { version: string };
  return { fleet, named: { version, url, password, tenant: fleet.tenant, ...(await prepare(fleet)) } };
}

/** Matches values that differ between runs: placeholders, ids, digests and times. */
const VARYING =
  /«[^»]+»|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:[0-9a-f]{24}|[0-9a-f]{64})\b|\b2\d{3}-\d\d-\d\dT[\d:.]+Z/g;
const TIME = /^2\d{3}-\d\d-\d\dT/;

const patternOf = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

/** Translates values of the recording to the values that correspond to them in this run, for example ids and times. */
class Values {
  readonly #live = new Map<string, string>();

  constructor(named: Named = {}) {
    for (const constant of UNKNOWNS) this.#live.set(constant, constant);
    this.name(named);
  }

  name(named: Named): void {
    for (const [name, value] of Object.entries(named)) this.#live.set(markOf(name), value);
  }

  /**
   * Replaces recorded values with the values of this run. If no earlier response contains a value, the value comes from
   * the engine and stays unchanged.
   */
  live<T>(recorded: T): T {
    return mapTexts(recorded, (text) =>
      text.replace(VARYING, (value) => {
        if (!this.#live.has(value) && !value.startsWith("«")) this.#live.set(value, value);
        return this.#live.get(value) ?? value;
      }),
    );
  }

  /**
   * Compares a recorded response with the live response of the same structure, and remembers which live value
   * corresponds to each recorded value.
   */
  learn(recorded: unknown, live: unknown): void {
    if (typeof recorded === "string" && typeof live === "string") this.#learnText(recorded, live);
    else if (isParent(recorded) && isParent(live))
      for (const [name, member] of Object.entries(recorded)) this.learn(member, live[name]);
  }

  #learnText(recorded: string, live: string): void {
    const unknown: string[] = [];
    let pattern = "";
    let end = 0;
    for (const { 0: value, index } of recorded.matchAll(VARYING)) {
      const known = this.#live.get(value);
      if (known === undefined) unknown.push(value);
      pattern += `${patternOf(recorded.slice(end, index))}${known === undefined ? `(${formOf(value)})` : patternOf(known)}`;
      end = index + value.length;
    }
    const match = new RegExp(`^${pattern}${patternOf(recorded.slice(end))}$`, "s").exec(live);
    for (const [at, value] of unknown.entries()) {
      const other = match?.[at + 1];
      // Two different recorded times may be equal in this run. Two different recorded ids may not.
      const isTaken = !TIME.test(value) && [...this.#live.values()].includes(other ?? "");
      if (other !== undefined && !isTaken) this.#live.set(value, other);
    }
  }
}

/**
 * Returns a pattern that matches a recorded value and the values at the same place in other runs. The pattern for a
 * secret matches any text.
 */
function formOf(value: string): string {
  if (value.startsWith("«")) return ".+";
  return TIME.test(value) ? "2[\\dT:.-]+Z" : value.replace(/[0-9a-f]/g, "[0-9a-f]");
}

const isParent = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** Applies a function to each text in a value. */
function mapTexts<T>(value: T, map: (text: string) => string): T {
  const json = JSON.stringify(value, (_key, member) => (typeof member === "string" ? map(member) : member));
  return JSON.parse(json) as T;
}

/** Sends the recorded calls to the plugin. Each outcome must equal the recorded outcome. */
async function replay(scenario: Scenario, { steps }: Recording): Promise<void> {
  const { fleet, named } = await startScenario(scenario);
  const values = new Values({ ...named, engine: "127.0.0.1:1", folder: tmpdir() });
  for (const step of steps) {
    if ("outOfBand" in step) {
      values.name((await scenario.changes[step.outOfBand]?.(fleet, named)) ?? {});
      continue;
    }
    const env = { ...environmentWithout("GATEHOUSE_", "PULUMI_"), ...values.live(step.env) };
    const plugins = new Map<number, Awaited<ReturnType<typeof startPlugin>>>();
    const start = async () => {
      const plugin = await startPlugin([], env);
      onTestFinished(() => void plugin.child.kill("SIGKILL"));
      return plugin;
    };
    for (const [at, { process, method, request, ...recorded }] of step.exchanges.entries()) {
      const plugin = plugins.get(process) ?? (await start());
      plugins.set(process, plugin);
      const outcome = await plugin.client
        .call(method, values.live(request))
        .then((response): PluginResponse => ({ response }), failureOf);
      values.learn(recorded, outcome);
      expect(outcome, `pulumi ${step.command.join(" ")}, exchange ${at + 1}, ${method}`).toEqual(
        values.live(recorded),
      );
    }
    for (const { client, child } of plugins.values()) {
      client.close();
      child.kill();
    }
  }
}

/** Runs the commands of a recording with the CLI on the PATH. */
async function record(scenario: Scenario, recording: Recording): Promise<Recording> {
  const { fleet, named } = await startScenario(scenario);
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "exchanges");
  for (const name of ["bin", "state"]) mkdirSync(join(folder, name));
  const recorder = fileURLToPath(new URL("support/recorder.ts", import.meta.url));
  const plugin = join(folder, "bin", "pulumi-resource-gatehouse");
  writeFileSync(plugin, `#!/bin/sh\nexec '${process.execPath}' '${recorder}' "$@"\n`, { mode: 0o755 });
  const ofCli = {
    PATH: `${join(folder, "bin")}${delimiter}${process.env.PATH}`,
    PULUMI_HOME: join(folder, "home"),
    PULUMI_BACKEND_URL: `file://${join(folder, "state")}`,
    PULUMI_CONFIG_PASSPHRASE: "x",
    PULUMI_SKIP_UPDATE_CHECK: "1",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "1",
    GATEHOUSE_RECORDER: file,
  };
  const values = new Values(named);
  const pulumi = async (command: readonly string[], env: Named = {}) => {
    const args = [...values.live(command), "--non-interactive", "--color", "never"];
    return run("pulumi", args, { cwd: folder, env: { ...ofCli, ...values.live(env) } });
  };
  const writeProgram = (program = "resources: {}\n") =>
    writeFileSync(join(folder, "Pulumi.yaml"), `name: recorded\nruntime: yaml\n${values.live(program)}`);
  writeProgram();
  await pulumi(["stack", "init", "dev"]);
  const steps: Step[] = [];
  for (const step of recording.steps) {
    if ("outOfBand" in step) {
      values.name((await scenario.changes[step.outOfBand]?.(fleet, named)) ?? {});
      steps.push(step);
      continue;
    }
    if (step.program) writeProgram(step.program);
    const ended = await pulumi([...step.command, "--stack", "dev"], step.env);
    expect(ended, step.command.join(" ")).toMatchObject({ code: step.code });
    const lines = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
    rmSync(file, { force: true });
    const exchanges = lines.map((line) => JSON.parse(line) as Exchange);
    // Omits the processes that the CLI started only to read the schema.
    const configured = exchanges.flatMap(({ method, process }) => (method === "configure" ? [process] : []));
    steps.push({
      ...step,
      exchanges: exchanges
        .filter(({ process }) => configured.includes(process))
        .map((exchange) => ({
          ...exchange,
          process: configured.indexOf(exchange.process),
          // Replaces the engine's address with a placeholder, since each process has its own engine on a different
          // port.
          ...(exchange.method === "handshake" && {
            request: { ...exchange.request, engineAddress: markOf("engine") },
          }),
        })),
    });
  }
  const secrets = [...new Set(secretsIn(steps))].filter((secret) => !UNKNOWNS.includes(secret));
  const names = new Map(secrets.map((secret, at) => [secret, `secret ${at + 1}`]));
  for (const [name, value] of Object.entries({ ...named, folder })) names.set(value, name);
  const longestFirst = [...names].sort(([a], [b]) => b.length - a.length);
  const { stdout } = await pulumi(["version"]);
  const marked = mapTexts(steps, (text) =>
    longestFirst.reduce((all, [value, name]) => all.replaceAll(value, markOf(name)), text),
  );
  return { cli: stdout.trim(), steps: marked };
}

function secretsIn(value: unknown): string[] {
  if (!isParent(value)) return [];
  const { [SIGNATURE]: mark, value: inside } = value;
  if (mark === SECRET && typeof inside === "string" && inside !== "") return [inside];
  return Object.values(value).flatMap(secretsIn);
}

/** Writes a recording, one line for each exchange. */
function write(name: string, { cli, steps }: Recording): void {
  const lines = steps.map((step) => {
    if ("outOfBand" in step) return JSON.stringify(step);
    const { exchanges, ...rest } = step;
    const list = exchanges.map((exchange) => `  ${JSON.stringify(exchange)}`).join(",\n");
    return `${JSON.stringify(rest).slice(0, -1)},"exchanges":[\n${list}]}`;
  });
  writeFileSync(fileOf(name), `{"cli":${JSON.stringify(cli)},"steps":[\n${lines.join(",\n")}]}\n`);
}

const isRecording = Boolean(process.env.GATEHOUSE_RECORD);
vi.setConfig({ testTimeout: isRecording ? 600_000 : 180_000 });

describe("the plugin responds to the recorded calls with the recorded responses", () => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    // A replay takes half a minute. In short runs, test/plugin/protocol.test.ts sends calls of each method.
    test(name, { tags: isRecording ? [] : ["long"] }, async () => {
      const read = () => JSON.parse(readFileSync(fileOf(name), "utf8")) as Recording;
      if (isRecording) write(name, await record(scenario, read()));
      await replay(scenario, read());
    });
  }
});

describe("the comparison with a recorded response", () => {
  const id = (digit: number) => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`;
  const compared = (recorded: unknown, live: unknown, values = new Values()) => {
    values.learn(recorded, live);
    return { live, recorded: values.live(recorded) };
  };

  test("maps each recorded value to one value of this run", () => {
    const values = new Values({ url: "http://127.0.0.1:1" });
    const [recorded, now] = [
      { id: `«url»/${id(1)}`, at: "2026-01-01T00:00:00Z", secret: "«secret 1»" },
      { id: `http://127.0.0.1:1/${id(2)}`, at: "2027-01-01T00:00:00.5Z", secret: "any text" },
    ];
    const { live, recorded: expected } = compared(recorded, now, values);
    expect(live).toEqual(expected);
    expect(values.live(`of ${id(1)}, «secret 1»`)).toBe(`of ${id(2)}, any text`);
    for (const [was, is] of [
      [id(1), id(3)],
      [id(4), id(2)],
      [id(4), "gone"],
      [`${id(4)}/a`, `${id(5)}/b`],
    ]) {
      const other = compared(was, is, values);
      expect(other.live).not.toEqual(other.recorded);
    }
  });
});
