import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, vi } from "vitest";
import {
  openStack,
  type Result,
  type Stack,
  type StackOptions,
  type UpOptions,
} from "../../provider/engine/index.ts";
import { gatehouseBy } from "../support/gatehouse.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** A resource of the test cloud that the fixture program declares; see fixtures/cloud/index.js. */
export type Thing = {
  name: string;
  args?: Record<string, unknown>;
  secret?: string[];
  from?: Record<string, [thing: string, output: string]>;
  group?: string;
  options?: Record<string, unknown>;
};

/** The behavior of the fixture program: the resources that it declares, its outputs, and errors to provoke. */
export type ProgramPlan = {
  /**
   * The component resources, which the program creates before the things. A thing's `group` is the name of its parent
   * component. In the resource option `parent`, "group <name>" refers to a component.
   */
  groups?: { name: string; type?: string; options?: Record<string, unknown> }[];
  things?: Thing[];
  outputs?: Record<string, [thing: string, output: string]>;
  throw?: string;
  /** The name of a resource with an input that is a promise which never resolves. */
  endless?: string;
  invoke?: string;
  transform?: boolean;
  /** The type of an additional resource that is not a dynamic resource. */
  foreign?: string;
  /**
   * The kind of function that the code of a dynamic provider uses: a plain one, which the SDK serializes with the
   * provider, or a native one, for which the serialization fails.
   */
  serialized?: "plain" | "native";
  config?: string;
  secretConfig?: string;
};

/** A copy of a fixture program in a new folder. The test cloud's files and the state are in sibling folders. */
export class Workspace {
  readonly root: string;
  readonly folder: string;
  readonly state: string;
  readonly cloud: string;
  readonly env: NodeJS.ProcessEnv;

  constructor(fixture = "cloud") {
    this.root = mkdtempSync(join(tmpdir(), "gatehouse-engine-"));
    this.folder = join(this.root, fixture);
    this.state = join(this.root, "state");
    this.cloud = join(this.root, "objects");
    cpSync(join(import.meta.dirname, "fixtures", fixture), this.folder, { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(this.folder, "node_modules"));
    mkdirSync(this.state);
    mkdirSync(this.cloud);
    this.env = {
      ...process.env,
      CLOUD: this.cloud,
      PLAN: join(this.root, "plan.json"),
      PULUMI_BACKEND_URL: `file://${this.state}`,
      PULUMI_CONFIG_PASSPHRASE: "correct horse",
      PULUMI_SKIP_UPDATE_CHECK: "true",
    };
    this.plan({});
  }

  /** Sets the program that the next runs execute. */
  plan(plan: ProgramPlan): void {
    writeFileSync(join(this.root, "plan.json"), JSON.stringify(plan));
  }

  /** Opens the stack `test` with the embedded engine. */
  open(options: StackOptions = {}): Promise<Stack> {
    return openStack({ folder: this.folder, stack: "test", engine: "embedded", env: this.env, ...options });
  }

  /** Runs up without a preview, which starts half as many processes as up with a preview. */
  async up(options: UpOptions = {}): Promise<Result> {
    return (await this.open()).up({ skipPreview: true, ...options });
  }

  /** Returns the calls that the test cloud received, without reads, and clears the call log. */
  calls(): string[] {
    const text = this.callLog();
    rmSync(join(this.cloud, "calls.log"), { force: true });
    return text.split("\n").filter((line) => line !== "" && !line.startsWith("read "));
  }

  /** Returns the test cloud's call log as text, without clearing it. Can be called during a run. */
  callLog(): string {
    const file = join(this.cloud, "calls.log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }

  /** Returns how many times the fixture program ran, and resets this counter. */
  runs(): number {
    const file = join(this.cloud, "runs.log");
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    rmSync(file, { force: true });
    return text.split("\n").length - 1;
  }

  /** Lets the cloud finish the calls of all things that have the argument `held`. Until then, these calls wait. */
  release(): void {
    writeFileSync(join(this.cloud, "released"), "");
  }

  /**
   * Returns the start and the end of each call that the test cloud received, and clears this log. The start of a call
   * contains its arguments.
   */
  records(): CloudRecord[] {
    const file = join(this.cloud, "calls.jsonl");
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, "utf8").trim().split("\n");
    rmSync(file);
    return lines.map((line) => JSON.parse(line) as CloudRecord);
  }

  /** Returns the ids of the objects in the test cloud, without their random suffixes. */
  objects(): string[] {
    return filesIn(this.cloud).map((name) => name.replace(/-[0-9a-f]*\.json$/, ""));
  }

  /** Creates an unmanaged object in the test cloud. */
  place(id: string, object: Record<string, unknown>): void {
    writeFileSync(join(this.cloud, `${id}.json`), JSON.stringify(object));
  }

  /** Changes an object in the test cloud out of band. Without `change`, deletes the object. */
  tamper(name: string, change?: Record<string, unknown>): void {
    const file = filesIn(this.cloud).find((entry) => entry.startsWith(`${name}-`));
    if (!file) throw new Error(`there is no object ${name}`);
    const path = join(this.cloud, file);
    if (!change) rmSync(path);
    else writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
  }

  /** The state file, parsed. */
  stored(project = "cloud"): StoredState {
    const path = join(this.state, ".pulumi", "stacks", project, "test.json");
    return (JSON.parse(readFileSync(path, "utf8")) as { checkpoint: { latest: StoredState } }).checkpoint
      .latest;
  }

  /**
   * Names of the resources in the state; empty if the stack does not exist. Resources that are pending deletion end with
   * "(delete)".
   */
  names(): string[] {
    if (!existsSync(join(this.state, ".pulumi", "stacks", "cloud", "test.json"))) return [];
    return (this.stored().resources ?? [])
      .map((r) => `${r.urn.split("::")[3]}${r.delete ? " (delete)" : ""}`)
      .sort();
  }

  /**
   * Runs the gatehouse command to its end. Uses this process if the engine supports it, and otherwise a separate
   * process.
   */
  async command(...args: string[]): Promise<{ code: number | null; output: string }> {
    const engine = args[args.indexOf("--engine") + 1] === "cli" ? "cli" : "embedded";
    const { code, stdout, stderr } = await gatehouseBy(engine)(args, this.env as Record<string, string>);
    return { code, output: stdout + stderr };
  }

  /**
   * Starts the gatehouse command as a process that can receive signals. `done` resolves with its exit code and output.
   */
  gatehouse(...args: string[]): Running {
    return this.gatehouseBy([], ...args);
  }

  /** Starts the gatehouse command through another command. */
  gatehouseBy(starter: readonly string[], ...args: string[]): Running {
    const [command = "", ...rest] = [...starter, process.execPath, join(ROOT, "provider/bin/gatehouse.js")];
    return this.start(command, [...rest, ...args]);
  }

  /** Starts any command in the environment of the programs. */
  start(command: string, args: readonly string[]): Running {
    const child = spawn(command, args, { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const take = (chunk: string): void => {
      output += chunk;
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    return {
      pid: child.pid ?? 0,
      kill: (signal) => child.kill(signal),
      stopReading: (name) => child[name].destroy(),
      output: () => output,
      done: new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal, output }))),
    };
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Returns the names of the files with the objects of a test cloud. */
const filesIn = (cloud: string): string[] =>
  readdirSync(cloud)
    .filter((name) => name.endsWith(".json"))
    .sort();

/** A new workspace for each test of the surrounding file. */
export function testWorkspace(): Workspace {
  // Every run starts its own processes, which is slow on a busy machine.
  vi.setConfig({ testTimeout: 180_000 });
  const current: Workspace = Object.create(Workspace.prototype);
  beforeEach(() => void Object.assign(current, new Workspace()));
  afterEach(() => current.remove());
  return current;
}

/** A log record of the test cloud: the start or the end (`done`) of a call. */
export type CloudRecord =
  | { kind: "create" | "update" | "delete" | "read"; label: string; [argument: string]: unknown }
  | { done: "create" | "update" | "delete" | "read"; label: string };

type Running = {
  pid: number;
  kill(signal: NodeJS.Signals): boolean;
  /** Closes the pipe from which the test reads this output of the process. */
  stopReading(name: "stdout" | "stderr"): void;
  output(): string;
  done: Promise<{ code: number | null; signal: NodeJS.Signals | null; output: string }>;
};

export type StoredState = {
  resources?: {
    urn: string;
    parent?: string;
    importID?: string;
    pendingReplacement?: boolean;
    protect?: boolean;
    id?: string;
    delete?: boolean;
    inputs?: Record<string, unknown>;
    outputs?: Record<string, unknown>;
    initErrors?: string[];
    sourcePosition?: string;
    stackTrace?: unknown;
  }[];
  pending_operations?: { type: string; resource: { urn: string } }[];
};

/** Waits until the test is true. Fails after two minutes, since a busy machine starts a run slowly. */
export async function until(test: () => boolean): Promise<void> {
  const end = Date.now() + 120_000;
  while (!test()) {
    if (Date.now() > end) throw new Error(`it never came true: ${test}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
