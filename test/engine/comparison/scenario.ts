import type { EngineDifferenceId } from "../../../provider/engine/engineDifferences.ts";
import type { DestroyOptions, RefreshRunOptions, UpOptions } from "../../../provider/engine/index.ts";
import type { ProgramPlan, Thing, Workspace } from "../workspace.ts";

/** The outcome of one step of a scenario, without differences between the engines. */
export type Outcome = {
  step: string;
  ok: boolean;
  /** Numbers of resources by operation; undefined for a failed step. */
  summary?: Record<string, number>;
  /** Calls of the provider with arguments, in no order. */
  calls: string[];
  /** Ordered pairs of calls for resources that depend on each other. */
  order: string[];
  /** Ids of the existing objects. */
  objects: string[];
  /** The resources of the state without values that differ between runs; secrets are in plaintext. */
  state: Record<string, unknown>[];
};

/** One command after a change of the program or of the cloud. */
export type ScenarioStep = {
  what: string;
  plan?: ProgramPlan;
  tamper?: (ws: Workspace) => void;
  up?: UpOptions;
  refresh?: RefreshRunOptions;
  destroy?: DestroyOptions;
  /** An intended difference of the embedded engine from the CLI: its id, and the expected outcome. */
  differs?: { why: EngineDifferenceId; outcome: (cli: Outcome) => Outcome };
};

export type Scenario = { name: string; steps: ScenarioStep[] };

/** The URN of a thing without a parent. */
export const urn = (name: string): string =>
  `urn:pulumi:test::cloud::pulumi-nodejs:dynamic/cloud:Thing::${name}`;

/** A program with only things. */
export const things = (...list: Thing[]): ProgramPlan => ({ things: list });
/** An up without options. */
export const up = {};
/** A destroy without options. */
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

/** A chain in which the second thing is replaced with the first. */
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

/** One thing that is deleted with another, and one that only depends on it. */
export const owned = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "owner", args: { label }, options },
    { name: "owned", options: { deletedWith: "owner" } },
    { name: "beside", options: { dependsOn: ["owner"] } },
  );
