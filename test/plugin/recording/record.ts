import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";
import { SECRET, SIGNATURE, UNKNOWNS } from "../../../provider/engineMarks.ts";
import { SETTINGS, type Setting } from "../../../provider/service/newConnection.ts";
import { environmentWithout } from "../../support/command.ts";
import type { RecorderEvent } from "./events.ts";
import { decidedByRelease, markOf, withMarks } from "./marks.ts";
import type { Json } from "./messages.ts";
import type { Exchange, RecordedCommand, RecordedStep, Recording } from "./recording.ts";
import type { Named, Scenario, Step } from "./scenario.ts";
import { openStage, type Stage } from "./stage.ts";

const RECORDER = fileURLToPath(new URL("recorder.ts", import.meta.url));

/** What keeps the CLI to a folder of its own; the plugin inherits it, and reads none of it. */
const OF_CLI = [
  "PULUMI_HOME",
  "PULUMI_BACKEND_URL",
  "PULUMI_CONFIG_PASSPHRASE",
  "PULUMI_SKIP_UPDATE_CHECK",
  "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION",
];

/** The calls of a CLI that only wants to know what there is. */
const OF_SCHEMA = ["Handshake", "GetPluginInfo", "GetSchema", "Cancel"];

const STACK = "dev";

/** Runs a scenario with the Pulumi CLI on the PATH. */
export async function record(scenario: Scenario): Promise<Recording> {
  const stage = await openStage(scenario);
  try {
    const cli = new Cli(stage, scenario);
    const version = await cli.run(["version"]);
    await cli.begin(scenario.config?.(stage.named) ?? {});
    const steps: RecordedStep[] = [];
    for (const step of scenario.steps) steps.push(await cli.step(step));
    const secrets = secretsOf(steps, stage.named);
    cli.expectNotStored([...Object.values(secrets), ...credentialsOf(stage.named)]);
    return {
      cli: version.stdout.trim(),
      steps: steps.map((step) => withMarks(withoutRelease(step), { ...stage.named, ...secrets })),
    };
  } finally {
    await stage.close();
  }
}

/** The Pulumi CLI, with a project and a recorder in the stage's folder. */
class Cli {
  readonly #stage: Stage;
  readonly #env: Record<string, string>;
  readonly #project: string;
  readonly #state: string;
  /** Where recorders write. */
  readonly #events: string;
  readonly #seen = new Set<string>();
  readonly #saidOfSchema = new Set<string>();

  constructor(stage: Stage, { env }: Scenario) {
    const { folder = "" } = stage.named;
    const [project, home, state, bin, events] = ["project", "home", "state", "bin", "events"].map((name) => {
      const path = join(folder, name);
      mkdirSync(path);
      return path;
    }) as [string, string, string, string, string];
    this.#stage = stage;
    this.#project = project;
    this.#state = state;
    this.#events = events;
    const script = `#!/bin/sh\nexec '${process.execPath}' '${RECORDER}' "$@"\n`;
    writeFileSync(join(bin, "pulumi-resource-gatehouse"), script, { mode: 0o755 });
    this.#env = {
      ...environmentWithout("GATEHOUSE_", "PULUMI_", "NODE_OPTIONS", "VITEST"),
      PATH: `${bin}${delimiter}${process.env.PATH}`,
      PULUMI_HOME: home,
      PULUMI_BACKEND_URL: `file://${state}`,
      PULUMI_CONFIG_PASSPHRASE: "x",
      PULUMI_SKIP_UPDATE_CHECK: "1",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "1",
      GATEHOUSE_RECORDER: events,
      ...env?.(stage.named),
    };
  }

  /** Makes the stack. */
  async begin(config: Named): Promise<void> {
    this.#write("resources: {}\n");
    await this.run(["stack", "init", STACK]);
    for (const [key, value] of Object.entries(config)) {
      const setting: Setting = SETTINGS[key as keyof typeof SETTINGS];
      const secrecy = setting.secret ? "--secret" : "--plaintext";
      await this.run(["config", "set", "--stack", STACK, secrecy, `gatehouse:${key}`, value]);
    }
    this.#eventsSince();
  }

  async step(step: Step): Promise<RecordedStep> {
    const stage = this.#stage;
    if ("byHand" in step) {
      stage.named = { ...stage.named, ...(await step.act(stage.fleet, stage.named)) };
      return { byHand: step.byHand };
    }
    const { named } = stage;
    if (step.program) this.#write(step.program(named));
    const command = typeof step.command === "function" ? step.command(named) : step.command;
    const args = [...command, "--stack", STACK, "--non-interactive", "--color", "never"];
    const { code } = await this.run(args, step);
    return { command, code, ...exchangesOf(this.#eventsSince().filter((events) => this.#saysMore(events))) };
  }

  /** @throws Error when one of the secrets is in clear in what the CLI stored: states, their history and backups */
  expectNotStored(secrets: readonly string[]): void {
    const files = readdirSync(this.#state, { recursive: true, withFileTypes: true }).filter((file) =>
      file.isFile(),
    );
    for (const { parentPath, name } of files) {
      const stored = readFileSync(join(parentPath, name), "utf8");
      if (secrets.some((secret) => stored.includes(secret)))
        throw new Error(`${name}: has a secret in clear`);
    }
  }

  /** Runs the CLI to its end. */
  async run(
    args: readonly string[],
    { code: expected = 0, interruptedAt }: { readonly code?: number; readonly interruptedAt?: string } = {},
  ): Promise<{ readonly code: number; readonly stdout: string }> {
    const held = interruptedAt === undefined ? undefined : this.#stage.proxy.hold(interruptedAt);
    const child = spawn("pulumi", args, {
      cwd: this.#project,
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(child, "close") as Promise<[number | null]>;
    const printed = Promise.all([text(child.stdout), text(child.stderr)]);
    if (held) {
      await held.arrived;
      child.kill("SIGINT");
      await vi.waitUntil(() => isCancelAnswered(this.#processes()), { timeout: 20_000 });
      held.release();
    }
    const [code] = await ended;
    const [stdout, stderr] = await printed;
    if (code !== expected) {
      throw new Error(`pulumi ${args.join(" ")} ended with ${code}:\n${stdout}\n${stderr}`);
    }
    if (process.env.GATEHOUSE_RECORD === "show")
      console.log(`pulumi ${args.join(" ")}\n${stdout}\n${stderr}`);
    return { code: code ?? 0, stdout };
  }

  #write(program: string): void {
    writeFileSync(join(this.#project, "Pulumi.yaml"), `name: recorded\nruntime: yaml\n${program}`);
  }

  /** False for another one of the plugins of which the CLI only wants the schema: it starts one in each command. */
  #saysMore(events: readonly RecorderEvent[]): boolean {
    const methods = events.flatMap((event) => (event.what === "call" ? [event.method] : []));
    if (!methods.every((method) => OF_SCHEMA.includes(method))) return true;
    const said = methods.join();
    if (this.#saidOfSchema.has(said)) return false;
    this.#saidOfSchema.add(said);
    return true;
  }

  /** The events of the processes that were not asked for before. */
  #eventsSince(): RecorderEvent[][] {
    const processes = this.#processes();
    for (const name of this.#files()) this.#seen.add(name);
    return processes;
  }

  #processes(): RecorderEvent[][] {
    return this.#files().map((name) =>
      readFileSync(join(this.#events, name), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as RecorderEvent),
    );
  }

  #files = () => readdirSync(this.#events).filter((name) => !this.#seen.has(name));
}

function isCancelAnswered(processes: readonly RecorderEvent[][]): boolean {
  return processes.some((events) =>
    events.some(
      (event) =>
        event.what === "outcome" &&
        events.some((of) => of.what === "call" && of.call === event.call && of.method === "Cancel"),
    ),
  );
}

/** What a command did, out of what the recorders of its plugins wrote. */
function exchangesOf(found: readonly RecorderEvent[][]): Omit<RecordedCommand, "command" | "code"> {
  const begun = found.toSorted(([a], [b]) => byTime(a, b));
  const starts = begun.map(([start]) => {
    if (start?.what !== "start") throw new Error("a recorder did not begin with its start");
    const env = Object.entries(start.env).filter(([name]) => !OF_CLI.includes(name));
    return { args: start.args, env: Object.fromEntries(env.sort()), engine: { engine: start.args[0] ?? "" } };
  });
  const [env, ...others] = [...new Set(starts.map((start) => JSON.stringify(start.env)))];
  if (env === undefined || others.length > 0)
    throw new Error("plugins of a command differ in their environment");
  const events = begun
    .flatMap((list, process) => list.map((event) => ({ ...event, process })))
    .toSorted(byTime);
  const calls = events.filter((event) => event.what === "call");
  const exchanges = calls.map(({ process, call, method, request }, place): Exchange => {
    const answer = events.findIndex(
      (event) => event.what === "outcome" && event.process === process && event.call === call,
    );
    const answered = events[answer];
    if (answered?.what !== "outcome") throw new Error(`${method} was never answered`);
    const answeredAfter = events.slice(0, answer).filter(({ what }) => what === "call").length - 1;
    const exchange = {
      process,
      method,
      request,
      ...(answeredAfter > place && { answeredAfter }),
      ...answered.outcome,
    };
    return withMarks(exchange, starts[process]?.engine ?? {});
  });
  return {
    env: JSON.parse(env) as Record<string, string>,
    processes: starts.map(({ args, engine }) => withMarks(args, engine)),
    exchanges,
  };
}

function byTime(a?: { readonly at: string }, b?: { readonly at: string }): number {
  const difference = BigInt(a?.at ?? 0) - BigInt(b?.at ?? 0);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** The secrets that the plugin was given or has answered; those that the set-up does not know are numbered. */
function secretsOf(steps: readonly RecordedStep[], named: Named): Named {
  const all = [...new Set(secretsIn(steps as unknown as Json))].filter(
    (secret) => !UNKNOWNS.includes(secret),
  );
  const nameOf = (secret: string) => Object.keys(named).find((name) => named[name] === secret);
  let made = 0;
  return Object.fromEntries(all.map((secret) => [nameOf(secret) ?? `secret ${++made}`, secret]));
}

/** Those that the set-up knows, also where the plugin gets them from its environment alone. */
const credentialsOf = (named: Named): string[] =>
  Object.entries(named).flatMap(([name, value]) => (/password|token|key/.test(name) ? [value] : []));

/** The step with marks in place of what the package's release decides. */
function withoutRelease(step: RecordedStep): RecordedStep {
  if ("byHand" in step) return step;
  const exchanges = step.exchanges.map((exchange): Exchange => {
    const fields = decidedByRelease[exchange.method];
    if (!fields || !("response" in exchange)) return exchange;
    const marks = Object.keys(fields).map((field) => [field, markOf(field)]);
    return { ...exchange, response: { ...(exchange.response as object), ...Object.fromEntries(marks) } };
  });
  return { ...step, exchanges };
}

function secretsIn(value: Json): string[] {
  if (typeof value !== "object" || value === null) return [];
  const { [SIGNATURE]: mark, value: inside } = value as Readonly<Record<string, Json>>;
  if (mark === SECRET && typeof inside === "string" && inside !== "") return [inside];
  return Object.values(value).flatMap(secretsIn);
}
