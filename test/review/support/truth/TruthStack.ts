import { randomUUID } from "node:crypto";
import {
  type Command,
  type Result,
  type ShownStep,
  type Step,
  type StepOp,
  shownValues,
  summarize,
} from "../../../../provider/engine/index.ts";
import {
  changedFields,
  equal,
  fieldDiff,
  type Props,
  refreshedFields,
} from "../../../../provider/engine/value.ts";
import { ownResources } from "../../../../provider/namespace/coverage.ts";
import type { Connection } from "../../../../provider/service/connection.ts";
import { type FrontEnd, type ResourceName, StateChangedError } from "../../../provider/support/frontEnd.ts";
import { frontEnds } from "../../../provider/support/frontEnds.ts";
import type { Declared, Program } from "./programs.ts";
import { InvalidProgramError, type TruthEngine } from "./TruthRound.ts";

interface Entry {
  readonly type: string;
  readonly id: string;
  readonly inputs: Props;
  readonly outputs: Props;
  readonly retained: boolean;
}

/** The decision of the provider about one declared resource. */
interface Decided {
  readonly name: string;
  readonly type: string;
  readonly op: StepOp;
  readonly inputs: Props;
  readonly old: Entry | undefined;
  readonly deletesFirst: boolean;
  readonly retained: boolean;
}

const PROJECT = "project";

/**
 * A stack that plans and applies programs by calls of the dynamic providers, without processes. Its plans have values in
 * the same form as plans of the embedded engine.
 */
export class TruthStack implements TruthEngine {
  readonly name: string;
  readonly #env: () => Promise<Readonly<Record<string, string>>>;
  readonly #stateId = randomUUID();
  readonly #state = new Map<string, Entry>();
  readonly #secrets = new Map<string, string>();

  /** @param env returns the settings of the provider for the next run */
  constructor(name: string, env: () => Promise<Readonly<Record<string, string>>>) {
    this.name = name;
    this.#env = env;
  }

  managed(): ReadonlySet<string> {
    return new Set([...this.#state.values()].map(({ type, id }) => `${type} ${id.split("/").at(-1)}`));
  }

  async secrets(): Promise<ReadonlyMap<string, string>> {
    for (const { type, outputs } of this.#state.values()) {
      if (type === "ApiKey") this.#secrets.set(String(outputs.createdAt), String(outputs.key));
    }
    return this.#secrets;
  }

  async search(program: Program, { client }: Connection) {
    const resources = [...this.#state].map(([name, { type, id, inputs, outputs }]) => ({
      urn: this.#urn(type, name),
      type: dynamicType(type),
      id,
      inputs,
      outputs,
    }));
    const stack = { drift: () => this.drift(), preview: async () => (await this.plan(program)).plan };
    const own = ownResources(resources, client.url);
    return { stack, own, language: "typescript" as const, notEvaluated: [] };
  }

  plan(program: Program) {
    return this.#during(async (frontEnd) => {
      const steps: Step[] = [];
      for (const one of await this.#decide(frontEnd, program)) steps.push(this.#plannedStep(one));
      for (const [name, entry] of this.#state) {
        if (program[name]) continue;
        const step = this.#stepOf("delete", entry.type, name, entry.id);
        steps.push({ ...step, ...(entry.retained && { retained: true }), before: valuesOf(entry) });
      }
      return { plan: this.#result("preview", steps), notEvaluated: [] };
    });
  }

  up(program: Program): Promise<Error[]> {
    return this.#during(async (frontEnd) => {
      const failures: Error[] = [];
      const attempt = (work: Promise<unknown>) =>
        work.catch((error: unknown) => {
          failures.push(error instanceof Error ? error : new Error(String(error)));
        });
      const replaced: (() => Promise<unknown>)[] = [];
      for (const one of await this.#decide(frontEnd, program)) {
        await attempt(this.#apply(frontEnd, one, program[one.name]?.args ?? {}, replaced));
      }
      for (const [name, entry] of [...this.#state].reverse()) {
        if (program[name]) continue;
        const remove = async () => {
          await this.#delete(frontEnd, name, entry);
          this.#state.delete(name);
        };
        await attempt(remove());
      }
      for (const remove of replaced.reverse()) await attempt(remove());
      return failures;
    });
  }

  /** Compares the state with the live objects. */
  drift(): Promise<Result> {
    return this.#during(async (frontEnd) =>
      this.#result(
        "drift",
        (await this.#read(frontEnd)).map(({ step }) => step),
      ),
    );
  }

  async refresh(): Promise<void> {
    await this.#during(async (frontEnd) => {
      for (const { name, entry } of await this.#read(frontEnd)) {
        if (entry) this.#state.set(name, entry);
        else this.#state.delete(name);
      }
    });
  }

  async #during<T>(work: (frontEnd: FrontEnd) => Promise<T>): Promise<T> {
    const options = { env: await this.#env(), stack: this.name, stateId: this.#stateId, replace: [] };
    const frontEnd = await frontEnds.dynamic(options);
    try {
      return await work(frontEnd);
    } finally {
      await frontEnd.close();
    }
  }

  async #decide(frontEnd: FrontEnd, program: Program): Promise<Decided[]> {
    const decided: Decided[] = [];
    for (const [name, { type, args, retained = false }] of Object.entries(program)) {
      const resource = { type, name };
      const old = this.#state.get(name);
      const { inputs, failures } = await frontEnd.check(resource, old?.inputs ?? {}, args);
      if (failures.length > 0) throw new InvalidProgramError(`${type} ${name}: ${failures.join("; ")}`);
      const about = { name, type, inputs: inputs as Props, old, retained };
      if (!old) {
        decided.push({ ...about, op: "create", deletesFirst: false });
        continue;
      }
      const diff = await frontEnd.diff(resource, old.id, old.outputs, inputs);
      const op = !diff ? "same" : diff.replaces.length > 0 ? "replace" : "update";
      decided.push({ ...about, op, deletesFirst: diff?.deletesFirst ?? false });
    }
    return decided;
  }

  #plannedStep({ name, type, op, inputs, old, retained }: Decided): Step {
    const outputs = op === "same" && old ? old.outputs : inputs;
    return {
      ...this.#stepOf(op, type, name, old?.id),
      ...(op !== "same" && { fields: changedFields(old, inputs) }),
      ...(op === "replace" && old?.retained && { retained: true }),
      ...(old && { before: valuesOf(old) }),
      after: shownValues({ inputs, outputs, retainOnDelete: retained }),
    };
  }

  async #apply(
    frontEnd: FrontEnd,
    { name, type, op, inputs, old, deletesFirst, retained }: Decided,
    args: Declared["args"],
    replaced: (() => Promise<unknown>)[],
  ): Promise<void> {
    const resource: ResourceName = { type, name };
    const put = ({ id, outputs }: { readonly id: string; readonly outputs: object }) =>
      this.#state.set(name, { type, id, inputs, outputs: outputs as Props, retained });
    if (old && op === "same") put(old);
    else if (old && op === "update") {
      put({ id: old.id, outputs: await frontEnd.update(resource, old.id, old.outputs, inputs) });
    } else {
      if (old) {
        // Before a replacement, engines check the inputs a second time, without the old inputs.
        await frontEnd.check(resource, {}, args);
        if (deletesFirst) await this.#delete(frontEnd, name, old);
      }
      const created = await frontEnd.create(resource, inputs).catch((error: unknown) => {
        if (error instanceof StateChangedError) {
          if (error.now) put(error.now);
          else this.#state.delete(name);
        } else if (deletesFirst) this.#state.delete(name);
        throw error;
      });
      put(created);
      if (old && !deletesFirst) replaced.push(() => this.#delete(frontEnd, name, old));
    }
  }

  async #delete(frontEnd: FrontEnd, name: string, { type, id, outputs, retained }: Entry): Promise<void> {
    if (!retained) await frontEnd.delete({ type, name }, id, outputs);
  }

  /** Reads all objects of the state. */
  async #read(frontEnd: FrontEnd) {
    const found: { name: string; step: Step; entry: Entry | undefined }[] = [];
    for (const [name, entry] of this.#state) {
      const { type, id } = entry;
      const live = await frontEnd.read({ type, name }, id, entry.outputs);
      const step = this.#stepOf("same", type, name, id);
      if (!live) {
        const fields = fieldDiff(entry.inputs, undefined);
        found.push({ name, step: { ...step, op: "delete", fields }, entry: undefined });
        continue;
      }
      const now = {
        inputs: (live.inputs as Props | undefined) ?? entry.inputs,
        outputs: live.outputs as Props,
      };
      const isChanged =
        !equal(now.inputs, entry.inputs) || !equal(now.outputs, entry.outputs) || live.id !== id;
      const changed = isChanged
        ? { ...step, op: "update" as const, fields: refreshedFields(entry, now) }
        : step;
      found.push({ name, step: changed, entry: { ...entry, ...now, id: live.id } });
    }
    return found;
  }

  #urn = (type: string, name: string) => `urn:pulumi:${this.name}::${PROJECT}::${dynamicType(type)}::${name}`;

  #stepOf(op: StepOp, type: string, name: string, id: string | undefined): ShownStep {
    const step = { op, urn: this.#urn(type, name), type: dynamicType(type), name, fields: [] };
    return { ...step, ...(id !== undefined && { id }) };
  }

  #result(command: Command, steps: readonly Step[]): Result {
    return {
      engine: "embedded",
      command,
      project: PROJECT,
      stack: this.name,
      ok: true,
      planned: true,
      createdStack: false,
      steps,
      summary: summarize(steps),
      outputs: {},
      diagnostics: [],
      durationMs: 0,
    };
  }
}

const dynamicType = (type: string) => `pulumi-nodejs:dynamic/gatehouse:${type}`;

const valuesOf = ({ inputs, outputs, retained }: Entry) =>
  shownValues({ inputs, outputs, retainOnDelete: retained });
