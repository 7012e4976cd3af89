import { randomUUID } from "node:crypto";
import { dynamicProvider } from "../../../provider/pulumi/dynamicProvider.ts";
import { opens } from "../../../provider/pulumi/newConnection.ts";
import { Run } from "../../../provider/pulumi/run.ts";
import { Connection } from "../../../provider/resources/connection.ts";
import { definitions } from "../../../provider/resources/index.ts";
import { type Client, createClient, passwordCredential } from "../../../sdk/index.ts";

type Values = Record<string, unknown>;

/** A program as data: resources by name. */
export type Program = Record<string, { readonly type: string; readonly args: Values }>;

interface Entry {
  readonly type: string;
  readonly id: string;
  readonly outputs: Values;
}

/** What a run did or would do: `create key`, `update key`, `replace key data`, `delete key`. */
export type Steps = string[];

const SECRET = "4dabf18193072939515e22adb298388d";

/**
 * Applies programs by the dynamic providers' own methods in the order in which engines call them, without
 * processes: for tests that need hundreds of runs. What real engines make of the same is tested end to end.
 */
export class Harness {
  readonly state = new Map<string, Entry>();
  readonly #env: Readonly<Record<string, string>>;
  readonly #stack: string;
  readonly #clients: Client[] = [];
  /** As a resource of its own gives it to each of a state's resources. */
  readonly #stateId = randomUUID();

  constructor(env: Readonly<Record<string, string>>, stack = "stack") {
    this.#env = env;
    this.#stack = stack;
  }

  /**
   * @param replace names of resources that are replaced, as by the `--replace` of `gatehouse`
   * @param force the same, by an engine that asks no provider about them, as by that of `pulumi`
   * @throws AggregateError with what failed, after everything else was done
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

  /** Reads all objects; answers what changed, as `update key` and `delete key`. */
  async refresh(): Promise<Steps> {
    const providers = this.#providers();
    const steps = await Promise.all(
      [...this.state].map(async ([name, entry]) => {
        const found = await providers[entry.type]?.read?.(entry.id, entry.outputs);
        if (!found?.id) {
          this.state.delete(name);
          return [`delete ${name}`];
        }
        const outputs = plain(found.props);
        this.state.set(name, { ...entry, id: found.id, outputs });
        return JSON.stringify(sorted(outputs)) === JSON.stringify(sorted(entry.outputs))
          ? []
          : [`update ${name}`];
      }),
    );
    return steps.flat();
  }

  /** What aliases and `pulumi state rename` do: the object is another resource's from now on. */
  rename(from: string, to: string): void {
    const entry = this.state.get(from);
    if (!entry) throw new Error(`the state has no ${from}`);
    this.state.delete(from);
    this.state.set(to, entry);
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  // Each run is a process of its own.
  #providers(replace: readonly string[] = []) {
    const { GATEHOUSE_URL = "", GATEHOUSE_USERNAME = "", GATEHOUSE_PASSWORD = "" } = this.#env;
    const credential = passwordCredential({ username: GATEHOUSE_USERNAME, password: GATEHOUSE_PASSWORD });
    const client = createClient({ url: GATEHOUSE_URL, credential });
    this.#clients.push(client);
    const defaultTenant = this.#env.GATEHOUSE_TENANT;
    const connection = new Connection(client, {
      defaultTenant,
      opens: (secret) => opens({ url: GATEHOUSE_URL }, secret),
    });
    const runtime = {
      run: new Run(),
      configure: () => {},
      connection: () => connection,
      tell: (message: string) => console.log(message),
      defaultTenant: () => defaultTenant,
      isReplacementAsked: (urn: string) => replace.some((name) => urn.endsWith(`::${name}`)),
    };
    return Object.fromEntries(
      definitions.map((definition) => [definition.name, dynamicProvider(definition, runtime)]),
    );
  }

  async #run(
    program: Program,
    real: boolean,
    { replace, force }: Record<"replace" | "force", readonly string[]> = { replace: [], force: [] },
  ): Promise<Steps> {
    const providers = this.#providers(replace);
    const steps: Steps = [];
    const gone: (() => Promise<void>)[] = [];
    const errors: unknown[] = [];
    const remove = (name: string, { type, id, outputs }: Entry) => {
      gone.unshift(async () => providers[type]?.delete?.(id, outputs));
      return name;
    };
    const one = async (name: string, type: string, args: Values) => {
      const provider = providers[type];
      if (!provider?.check || !provider.diff || !provider.update) throw new Error(`no provider ${type}`);
      const old = this.state.get(name);
      const urn = `urn:pulumi:${this.#stack}::project::pulumi-nodejs:dynamic/gatehouse:${type}::${name}`;
      const given = { ...args, __provider: "x", __logicalId: urn, __stateId: this.#stateId };
      const { inputs, failures } = await provider.check(old ? { ...args, __logicalId: urn } : {}, given);
      if (failures?.length) throw new Error(failures.map((failure) => failure.reason).join("; "));
      const isForced = force.includes(name);
      const diff = old && !isForced ? await provider.diff(old.id, old.outputs, inputs) : undefined;
      const isReplaced = isForced || diff?.replaces?.length;
      if (diff && !diff.changes && !isReplaced) return;
      if (old && !isReplaced) {
        steps.push(`update ${name}`);
        if (!real) return;
        const { outs } = await provider.update(old.id, old.outputs, inputs);
        this.state.set(name, { ...old, outputs: plain(outs) });
        return;
      }
      const keys = diff ? diff.replaces?.join(",") : "id";
      steps.push(`${old ? "replace" : "create"} ${name}${old ? ` ${keys}` : ""}`);
      if (!real) return;
      // As engines do before a replacement.
      if (old) await provider.check({}, given);
      const made = await provider.create(inputs);
      if (old) remove(name, old);
      this.state.set(name, { type, id: made.id, outputs: plain(made.outs) });
    };
    for (const [name, { type, args }] of Object.entries(program)) {
      await one(name, type, args).catch((error: unknown) => errors.push(error));
    }
    for (const [name, entry] of this.state) {
      if (program[name]) continue;
      steps.push(`delete ${remove(name, entry)}`);
      if (real) this.state.delete(name);
    }
    if (real) for (const step of gone) await step().catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
    return steps.sort();
  }
}

function plain(values: unknown): Values {
  return unwrap(values) as Values;
}

function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrap);
  if (typeof value !== "object" || value === null) return value;
  if (SECRET in value) return (value as { value?: unknown }).value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, unwrap(member)]));
}

const sorted = (values: Values) =>
  Object.fromEntries(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)));
