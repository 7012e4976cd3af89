import { isNotFound } from "@gatehouse-access/sdk";
import type { AccessRule } from "@gatehouse-access/sdk/policy";
import { definitionsByName } from "../resources/index.ts";
import { idWithin, sameInputs } from "../resources/values.ts";
import type { Connection } from "../service/connection.ts";
import type { Values } from "../values.ts";
import type { Draft } from "./draft.ts";
import { type Kind, listedBy, policyEnd } from "./kind.ts";
import type { HasObjects } from "./namespaceObjects.ts";
import type { LiveObject } from "./object.ts";
import { outputOf, type PlannedStep } from "./plannedStep.ts";

const definition = definitionsByName.FirewallRule;

const WHAT = "firewall rules";
const MISSED = "unmanaged firewall rules cannot be detected";

type RuleState = Omit<AccessRule, "id" | "expiresAt"> & {
  readonly ruleId: string;
  readonly expiresAt: string;
};

export const firewallRule: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: WHAT,
    missed: MISSED,
    isRequired: true,
    // Between rules of the same priority, the rule that was created last decides.
    inOrderOfCreation: true,
    async read(connection, tenant) {
      try {
        const rules = (await definition.list?.(connection, tenant)) ?? [];
        return { objects: rules.toSorted(byCreation) };
      } catch (error) {
        if (!isNotFound(error)) throw error;
        // A proxy may have sent the 404.
        const notEvaluated =
          "firewall rules could not be read (404 without a message); access is evaluated without rules";
        const unread = { what: WHAT, missed: MISSED, reason: error.message };
        return { objects: [], unread, notEvaluated: [notEvaluated] };
      }
    },
  }),
  parts: undefined,
  watched: {},
  operations: {
    create: ["createFirewallRule"],
    update: ["updateFirewallRule"],
    delete: ["deleteFirewallRule"],
  },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "ruleId"),
    newKey: adopted,
    values: (_draft, { key }) => ({ ruleId: key }),
  },
  decides: {
    parts: (objects) => ({ rules: Array.from(objects, ({ state }) => accessRule(state as RuleState)) }),
    decision: "rule",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "rules", nameOf: ({ action, priority }) => `${action}-${priority}` },
};

/** Sorts rules by id. Each new rule gets a higher id than all earlier rules. This also applies to text ids. */
const byCreation = (left: Pick<LiveObject, "id">, right: Pick<LiveObject, "id">): number =>
  left.id.localeCompare(right.id, "en", { numeric: true });

/**
 * Reads the firewall rules of a namespace, oldest first.
 * @throws RequestError if the rules cannot be read
 */
export async function readRules(connection: Connection, tenant: string): Promise<AccessRule[]> {
  const rules = (await definition.list?.(connection, tenant)) ?? [];
  return rules.toSorted(byCreation).map(({ state }) => accessRule(state as unknown as RuleState));
}

/** Returns the firewall rules of a namespace, oldest first. */
export const rulesOf = (state: HasObjects): AccessRule[] =>
  Array.from(state.of(definition)?.values() ?? [], ({ state }) => accessRule(state as RuleState));

function accessRule(state: RuleState): AccessRule {
  const { ruleId: id, action, active, priority, sourceIp, username, filter } = state;
  return { id, action, active, priority, sourceIp, username, filter, ...policyEnd(state) };
}

/** Returns the key of the equal live rule that a new resource adopts. Undefined if it adopts no rule. */
function adopted({ live }: Draft, { after }: PlannedStep, inputs: Values): string | undefined {
  if (!after?.inputs.adopt) return undefined;
  const rules = [...(live.of(definition) ?? [])];
  return rules.find(([, { state }]) => sameInputs(definition.inputs, state, inputs))?.[0];
}
