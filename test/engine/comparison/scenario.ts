import type { EngineDifferenceId } from "../../../provider/engine/engineDifferences.ts";
import type { DestroyOptions, RefreshRunOptions, UpOptions } from "../../../provider/engine/index.ts";
import type { ProgramPlan, Thing, Workspace } from "../workspace.ts";

/** The outcome of one step of a scenario, without the values in which the engines may differ. */
export type Outcome = {
  step: string;
  ok: boolean;
  /** The number of resources for each operation; undefined for a failed step. */
  summary?: Record<string, number>;
  /** The provider calls with their arguments, sorted. */
  calls: string[];
  /** Pairs of provider calls for related resources: `a < b` if call a ended before call b started. */
  order: string[];
  /** The ids of the objects that exist after the step. */
  objects: string[];
  /** The resources in the state, without values that differ between runs, and with secrets in plaintext. */
  state: Record<string, unknown>[];
};

/** A command, and the change of the program or of the cloud before it. */
export type ScenarioStep = {
  what: string;
  plan?: ProgramPlan;
  tamper?: (ws: Workspace) => void;
  up?: UpOptions;
  refresh?: RefreshRunOptions;
  destroy?: DestroyOptions;
  /**
   * An intended difference between the embedded engine and the CLI: the id of its documentation, and the expected
   * outcome.
   */
  differs?: { why: EngineDifferenceId; outcome: (cli: Outcome) => Outcome };
};

export type Scenario = { name: string; steps: ScenarioStep[] };

/** Returns the URN of a resource `cloud.Thing` without a parent. */
export const urn = (name: string): string =>
  `urn:pulumi:test::cloud::pulumi-nodejs:dynamic/cloud:Thing::${name}`;

/** Returns a program that declares these resources of type `cloud.Thing`, and no components. */
export const things = (...list: Thing[]): ProgramPlan => ({ things: list });
/** The command up, without options. */
export const up = {};
/** The command destroy, without options. */
export const destroy = {};
/** The last step of a scenario that deletes all objects. */
export const cleanUp: ScenarioStep = { what: "destroyed", destroy };

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

/** A chain of things, each of which refers to the previous one. A replacement of `a` also replaces `b`. */
export const chain = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "a", args: { label }, options },
    { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
    { name: "c", from: { ref: ["b", "id"] } },
    { name: "d", options: { dependsOn: ["b"] } },
  );

/** Three things, each of which depends on the previous one. */
export const line = (last: Thing["args"], size = 1): ProgramPlan =>
  things(
    { name: "a", args: { size } },
    { name: "b", from: { ref: ["a", "id"] }, args: { size } },
    { name: "c", from: { ref: ["b", "id"] }, args: { ...last } },
  );

/** Two things that depend on `owner`. `owned` has the option `deletedWith`, and `beside` has only `dependsOn`. */
export const owned = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "owner", args: { label }, options },
    { name: "owned", options: { deletedWith: "owner" } },
    { name: "beside", options: { dependsOn: ["owner"] } },
  );
