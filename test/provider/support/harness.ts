import { randomUUID } from "node:crypto";
import { afterEach } from "vitest";
import { type FrontEnd, StateChangedError } from "./frontEnd.ts";
import { isTerraform, openFrontEnd } from "./frontEnds.ts";

type Values = Record<string, unknown>;

type Env = Readonly<Record<string, string>>;

/** The resources of a program, by name. */
export type Program = Record<string, { readonly type: string; readonly args: Values }>;

interface Entry {
  readonly type: string;
  readonly id: string;
  readonly outputs: Values;
  /** The program's inputs of the last run. Undefined after an import. */
  readonly args?: Values;
}

/** The steps of a run or preview: `create key`, `update key`, `replace key data`, `delete key`. */
export type Steps = string[];

/**
 * Applies programs with the same provider calls as an engine, in the same order, but without processes. It is for tests
 * that need hundreds of runs. End-to-end tests and replays of the CLI cover real engines.
 */
export class Harness {
  readonly state = new Map<string, Entry>();
  readonly #env: Env | (() => Env);
  readonly #stack: string;
  readonly #frontEnds: FrontEnd[] = [];
  /** The id of the state. In real states it is an output of a StateIdentity resource. */
  #stateId = randomUUID();

  /** The errors of the last run, with the names of the resources that failed. */
  failures: readonly (readonly [name: string, error: unknown])[] = [];

  constructor(env: Env | (() => Env), stack = "stack") {
    this.#env = env;
    this.#stack = stack;
  }

  /**
   * @param replace names of resources to replace, like `--replace` of `gatehouse`
   * @param force names of resources that the engine replaces without the provider, like `--replace` of `pulumi`
   * @throws AggregateError with the failures, after all other steps
   */
  async up(
    program: Program,
    { replace = [], force = [] }: Partial<Record<"replace" | "force", readonly string[]>> = {},
  ): Promise<Steps> {
    return this.#run(program, true, { replace, force });
  }

  async preview(program: Program): Promise<Steps> {
    return this.#run(program, false);
  }

  /** Updates the state from the live objects. Returns the changes as `update key` and `delete key`. */
  async refresh(): Promise<Steps> {
    const frontEnd = await this.#open();
    const steps = await Promise.all(
      [...this.state].map(async ([name, entry]) => {
        const live = await frontEnd.read({ type: entry.type, name }, entry.id, entry.outputs);
        if (!live) {
          this.state.delete(name);
          return [`delete ${name}`];
        }
        const { id, outputs } = live;
        this.state.set(name, { ...entry, id, outputs });
        return JSON.stringify(sorted(outputs)) === JSON.stringify(sorted(entry.outputs))
          ? []
          : [`update ${name}`];
      }),
    );
    return steps.flat();
  }

  /** Imports the object with this id into the state. */
  async import(name: string, type: string, id: string): Promise<void> {
    const frontEnd = await this.#open();
    const found = await frontEnd.read({ type, name }, id, {});
    if (!found) throw new Error(`no ${type} has the id ${id}`);
    this.state.set(name, { type, ...found });
  }

  /** Moves an object to another resource, like aliases and `pulumi state rename`. */
  rename(from: string, to: string): void {
    const entry = this.state.get(from);
    if (!entry) throw new Error(`the state has no ${from}`);
    this.state.delete(from);
    this.state.set(to, entry);
  }

  /** Copies the state of another stack, as after a change of the service's address. */
  copyState({ state }: Harness): void {
    for (const [name, entry] of state) this.state.set(name, entry);
  }

  async close(): Promise<void> {
    await Promise.all(this.#frontEnds.splice(0).map((frontEnd) => frontEnd.close()));
  }

  /** Ends the stack: deletes its objects, and continues with a new state. */
  async end(): Promise<void> {
    try {
      await this.up({});
    } finally {
      this.state.clear();
      this.#stateId = randomUUID();
      await this.close();
    }
  }

  // Opens a new front end for each run, since real engines start a new process for each run.
  async #open(replace: readonly string[] = [], force: readonly string[] = []): Promise<FrontEnd> {
    const env = typeof this.#env === "function" ? this.#env() : this.#env;
    const options = { env, stack: this.#stack, stateId: this.#stateId, replace, force };
    const frontEnd = await openFrontEnd(options);
    this.#frontEnds.push(frontEnd);
    return frontEnd;
  }

  async #run(
    program: Program,
    real: boolean,
    { replace, force }: Record<"replace" | "force", readonly string[]> = { replace: [], force: [] },
  ): Promise<Steps> {
    const frontEnd = await this.#open(replace, force);
    const steps: Steps = [];
    const deletions: [name: string, run: () => Promise<void>][] = [];
    const failures: [name: string, error: unknown][] = [];
    this.failures = failures;
    const remove = (name: string, { type, id, outputs }: Entry) =>
      deletions.unshift([name, () => frontEnd.delete({ type, name }, id, outputs)]);
    const one = async (name: string, type: string, args: Values) => {
      const resource = { type, name };
      const old = this.state.get(name);
      const checked = async (olds: Values) => {
        const { inputs, failures } = await frontEnd.check(resource, olds, args);
        if (failures.length > 0) throw new Error(failures.join("; "));
        return inputs;
      };
      const inputs = await checked(old ? (old.args ?? args) : {});
      // Usually a forced replacement needs no diff. With Terraform it needs one, since Terraform calls the provider in
      // this case too.
      const isForced = force.includes(name) && !isTerraform;
      const compared =
        old && !isForced ? await frontEnd.diff(resource, old.id, old.outputs, inputs) : undefined;
      const replaces = compared?.replaces;
      const isReplaced = isForced || (replaces?.length ?? 0) > 0;
      if (old && !replaces && !isReplaced) return;
      if (old && !isReplaced) {
        steps.push(`update ${name}`);
        if (!real) return;
        const outputs = await frontEnd.update(resource, old.id, old.outputs, inputs);
        this.state.set(name, { ...old, args, outputs });
        return;
      }
      const keys = replaces?.join(",") ?? "id";
      steps.push(`${old ? "replace" : "create"} ${name}${old ? ` ${keys}` : ""}`);
      if (!real) return;
      // Before a replacement, engines check the inputs a second time, without the old inputs.
      if (old) await checked({});
      if (old && compared?.deletesFirst) await frontEnd.delete(resource, old.id, old.outputs);
      const created = await frontEnd.create(resource, inputs);
      if (old && !compared?.deletesFirst) remove(name, old);
      this.state.set(name, { type, args, ...created });
    };
    const removeRest = () => {
      for (const [name, entry] of this.state) {
        if (program[name]) continue;
        steps.push(`delete ${name}`);
        remove(name, entry);
        const [, step] = deletions.shift() ?? [];
        // Engines keep an object in the state if its deletion fails.
        deletions.unshift([
          name,
          async () => {
            await step?.();
            this.state.delete(name);
          },
        ]);
      }
    };
    const finish = async () => {
      const pending = deletions.splice(0);
      if (!real) return;
      for (const [name, step] of pending)
        await step().catch((error: unknown) => failures.push([name, error]));
    };
    // Terraform first deletes the objects that the program no longer declares.
    if (isTerraform) removeRest();
    await finish();
    for (const [name, { type, args }] of Object.entries(program)) {
      await one(name, type, args).catch((error: unknown) => {
        failures.push([name, error]);
        if (!(error instanceof StateChangedError)) return;
        if (error.now) this.state.set(name, { type, ...error.now });
        else this.state.delete(name);
      });
    }
    if (!isTerraform) removeRest();
    await finish();
    const errors = failures.map(([, error]) => error);
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
    return steps.sort();
  }
}

/**
 * A stack for the surrounding tests. After each test, its objects are deleted, and it gets a new state.
 * @param env returns the environment, which a hook of the tests may create
 */
export function testHarness(env: () => Env, stack?: string): Harness {
  const harness = new Harness(env, stack);
  afterEach(() => harness.end());
  return harness;
}

const sorted = (values: Values) =>
  Object.fromEntries(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)));
