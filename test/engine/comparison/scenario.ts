import type { EngineDifferenceId } from "../../../provider/engine/engineDifferences.ts";
import type { DestroyOptions, RefreshRunOptions, UpOptions } from "../../../provider/engine/index.ts";
import type { ProgramPlan, Thing, Workspace } from "../workspace.ts";

/** What one step of a scenario did: all that must not depend on the engine. */
export type Outcome = {
  step: string;
  ok: boolean;
  /** Number of resources by what happened to them, of a step that did not fail. */
  summary?: Record<string, number>;
  /** Calls that the provider got, with arguments, in no order. */
  calls: string[];
  /** Pairs of calls about resources of which one depends on the other, in their order. */
  order: string[];
  /** Ids of the objects that are there. */
  objects: string[];
  /** The state's resources, without what no two runs have in common; secrets in clear. */
  state: Record<string, unknown>[];
};

/** One command after the program, or the cloud, was changed. */
export type ScenarioStep = {
  what: string;
  plan?: ProgramPlan;
  tamper?: (ws: Workspace) => void;
  up?: UpOptions;
  refresh?: RefreshRunOptions;
  destroy?: DestroyOptions;
  /** Where the embedded engine is meant to differ from the CLI: why, and what follows from it. */
  differs?: { why: EngineDifferenceId; outcome: (cli: Outcome) => Outcome };
};

export type Scenario = { name: string; steps: ScenarioStep[] };

/** The urn of a thing without parent. */
export const urn = (name: string): string =>
  `urn:pulumi:test::cloud::pulumi-nodejs:dynamic/cloud:Thing::${name}`;

/** A program of things alone. */
export const things = (...list: Thing[]): ProgramPlan => ({ things: list });
/** An update, and a destruction, without options. */
export const up = {};
export const destroy = {};
/** The last step of a scenario that leaves nothing behind. */
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

/** A chain whose second is replaced with the first. */
export const chain = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "a", args: { label }, options },
    { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
    { name: "c", from: { ref: ["b", "id"] } },
    { name: "d", options: { dependsOn: ["b"] } },
  );

/** Three, each of which needs the one before. */
export const line = (last: Thing["args"], size = 1): ProgramPlan =>
  things(
    { name: "a", args: { size } },
    { name: "b", from: { ref: ["a", "id"] }, args: { size } },
    { name: "c", from: { ref: ["b", "id"] }, args: { ...last } },
  );

/** One that goes with another, and one that only depends on it. */
export const owned = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "owner", args: { label }, options },
    { name: "owned", options: { deletedWith: "owner" } },
    { name: "beside", options: { dependsOn: ["owner"] } },
  );
