import type { EngineDifferenceId } from "../../../provider/engine/engineDifferences.ts";
import type { DestroyOptions, RefreshRunOptions, UpOptions } from "../../../provider/engine/index.ts";
import type { ProgramPlan, Thing, Workspace } from "../workspace.ts";

/** The outcome of one scenario step, without values that may differ between the two engines. */
export type StepResult = {
  step: string;
  ok: boolean;
  /** The number of resources for each operation (create, update, …). Undefined if the step failed. */
  summary?: Record<string, number>;
  /** The provider calls with their arguments, sorted. */
  calls: string[];
  /** Pairs of provider calls for related resources: `a < b` if call a ended before call b started. */
  order: string[];
  /** The ids of the objects in the test cloud after the step. */
  objects: string[];
  /** The resources in the state, without values that differ between runs, and with secrets in plaintext. */
  state: Record<string, unknown>[];
};

/**
 * A command to run in both engines. Before the command, a step can change the program, or the objects in the test
 * cloud.
 */
export type ScenarioStep = {
  what: string;
  plan?: ProgramPlan;
  tamper?: (ws: Workspace) => void;
  up?: UpOptions;
  refresh?: RefreshRunOptions;
  destroy?: DestroyOptions;
  /**
   * An intended difference between the two engines: the id of the section that documents it, and a function that
   * computes the embedded engine's expected outcome from the CLI's outcome.
   */
  differs?: { why: EngineDifferenceId; outcome: (cli: StepResult) => StepResult };
};

export type Scenario = { name: string; steps: ScenarioStep[] };

/** Returns a step that applies a program. Without a program, the step applies the program of the step before. */
export const applied = (what: string, plan?: ProgramPlan, up: UpOptions = {}): ScenarioStep => ({
  what,
  up,
  ...(plan && { plan }),
});

/** Returns a step that applies a program of these resources, without components. */
export const declared = (what: string, ...list: Thing[]): ScenarioStep => applied(what, things(...list));

/** Returns a step that deletes objects. */
export const destroyed = (what = "destroyed", destroy: DestroyOptions = {}): ScenarioStep => ({
  what,
  destroy,
});

/** Returns a step that reads the objects after the test has changed some of them. */
export const refreshed = (
  what: string,
  tamper?: (ws: Workspace) => void,
  refresh: RefreshRunOptions = {},
): ScenarioStep => ({ what, refresh, ...(tamper && { tamper }) });

/** Returns the URN of a resource `cloud.Thing` without a parent. */
export const urn = (name: string): string =>
  `urn:pulumi:test::cloud::pulumi-nodejs:dynamic/cloud:Thing::${name}`;

/** Returns a program that declares these resources of type `cloud.Thing`, and no components. */
export const things = (...list: Thing[]): ProgramPlan => ({ things: list });
/** Components with children, secrets and outputs. */
export const family = (size: number, password: string): ProgramPlan => ({
  groups: [{ name: "outer" }, { name: "inner", options: { parent: "group outer" } }],
  things: [
    { name: "a", args: { size, password }, secret: ["password"], group: "outer" },
    { name: "b", from: { ref: ["a", "serial"] }, group: "inner" },
    { name: "c", from: { ref: ["b", "id"], password: ["a", "password"] } },
    { name: "d", args: { nested: { pin: password } }, secret: ["nested"], options: { dependsOn: ["c"] } },
  ],
  outputs: { serial: ["b", "serial"], password: ["c", "password"] },
});

/** A chain of resources, each of which uses an output of the previous one. A replacement of `a` also replaces `b`. */
export const chain = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "a", args: { label }, options },
    { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
    { name: "c", from: { ref: ["b", "id"] } },
    { name: "d", options: { dependsOn: ["b"] } },
  );

/** Three resources, each of which depends on the previous one. */
export const line = (last: Thing["args"], size = 1): ProgramPlan =>
  things(
    { name: "a", args: { size } },
    { name: "b", from: { ref: ["a", "id"] }, args: { size } },
    { name: "c", from: { ref: ["b", "id"] }, args: { ...last } },
  );

/** Two resources that depend on `owner`: `owned` also has the option `deletedWith`, `beside` has only `dependsOn`. */
export const owned = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "owner", args: { label }, options },
    { name: "owned", options: { deletedWith: "owner" } },
    { name: "beside", options: { dependsOn: ["owner"] } },
  );
