import { isDeepStrictEqual } from "node:util";
import { isNotFound } from "@gatehouse-access/sdk";
import type { Role } from "@gatehouse-access/sdk/contract";
import { dateTime, trustedWorkloads, userId } from "@gatehouse-access/sdk/contract";
import { printableIssuer } from "@gatehouse-access/sdk/errors";
import { z } from "zod";
import { changeList } from "../model/changes.ts";
import { defineResource } from "../model/defineResource.ts";
import { optional, output, required, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../model/idForm.ts";
import { type Kind, listedBy } from "../model/kind.ts";
import { guarded } from "../model/lockoutGuard.ts";
import type { HasObjects } from "../model/namespaceObjects.ts";
import type { LiveObject } from "../model/object.ts";
import { outputOf } from "../model/plannedStep.ts";
import { gainedRole } from "../model/roles.ts";
import { stored, valuesOf } from "../model/stored.ts";
import { idWithin } from "../model/values.ts";
import { completeList } from "../service/absence.ts";
import { hasCapability } from "../service/capabilities.ts";
import type { Connection } from "../service/connection.ts";
import {
  isSilent,
  keyOfName,
  type ListingSource,
  PAGE_SIZE,
  type TrustedWorkload,
} from "../service/listings.ts";
import { PLAIN, type Style } from "../style.ts";
import { byText, byTexts, counted } from "../words.ts";

const wire = trustedWorkloads.createTrustedWorkload.body.shape;

const inputs = {
  tenant: tenantInput,
  name: required(wire.name, {
    description: "The name of the workload. Must be unique in the namespace.",
    notDecisive: "the name is only displayed",
  }),
  issuer: required(wire.issuer, {
    description:
      "The URL of the OpenID Connect provider, exactly as in the claim `iss` of its tokens. Must be an `https` URL.",
  }),
  audience: required(wire.audience, {
    description:
      "The value that the claim `aud` of a token must contain. Clients request tokens for the address of the service by default.",
  }),
  claims: required(wire.claims, {
    description:
      "The claims that a token must have, by name. In a value, `*` matches any string without a slash, and `**` matches any string. Numbers and booleans are compared as strings, such as `true`.",
  }),
  role: required(wire.role, {
    description: "The role of the workload. Must be `observer`, `operator` or `administrator`.",
  }),
  maxSessionMinutes: optional(wire.max_session_minutes.unwrap(), {
    description:
      "The number of minutes after a token was issued during which the workload can use the service. Must be between 5 and 1440.",
    default: 60,
  }),
  singleUse: optional(z.boolean(), {
    description:
      "Whether each token can be exchanged only once. Use `true` for providers that issue a new token for each request, such as GitHub.",
    default: false,
  }),
};

const outputs = {
  workloadId: output(userId, { description: "The ID of the workload." }),
  createdBy: output(userId, { description: "The ID of the user or workload that created the workload." }),
  createdAt: output(dateTime, { description: "The time when the workload was created." }),
};

/** The trusted workloads of a namespace, by id and by name. */
const workloads: ListingSource<TrustedWorkload> = (client) => {
  const kind = "TrustedWorkload";
  const pages = () => client.pages("listTrustedWorkloads", { query: { perPage: PAGE_SIZE } });
  const keysOf = ({ id, name }: TrustedWorkload) => [id, keyOfName(name)];
  return {
    kind,
    keysOf,
    pages,
    // A lookup by name reads the whole list, because the service cannot find a workload by name.
    look: async (key) =>
      key.startsWith(keyOfName(""))
        ? (await completeList(kind, pages, ({ id }) => id)).find((item) => keysOf(item).includes(key))
        : client.getTrustedWorkload({ params: { id: key } }),
  };
};

/**
 * Returns the trusted workloads of a namespace. Returns an empty list if the server does not support trusted workloads.
 * @throws NotFoundError for a 404 that may come from a proxy in front of the service
 */
async function workloadsIn(connection: Connection, tenant: string): Promise<TrustedWorkload[]> {
  const server = await connection.server(tenant);
  if (!hasCapability(server, "trusted workloads")) return [];
  const opened = await connection.tenant(tenant);
  return opened
    .listing(workloads)
    .all()
    .catch((error: unknown) => {
      // Earlier versions of the server do not have this list. Their 404 response contains a message.
      if (isNotFound(error) && !(server.isOwn && isSilent(error))) return [];
      throw error;
    });
}

const definition = defineResource({
  ...stored({
    name: "TrustedWorkload",
    id: new IdForm("TrustedWorkload", {
      tenant: EXAMPLE_TENANT,
      workloadId: "65a1f0c2d3e4b5a697887766",
    }),
    inputs,
    outputs,
    source: workloads,
    all: workloadsIn,
    keyOf: ({ id }: TrustedWorkload) => id,
    nameOf: ({ name }) => name,
    lookupKey: ({ name }) => keyOfName(name),
    importKeys: (part) => [...(userId.safeParse(part).success ? [part] : []), keyOfName(part)],
    derived: ({ id }) => ({ workloadId: id }),
    create: (client, body, options) => client.createTrustedWorkload({ body }, options),
    update: (client, id, body) => client.updateTrustedWorkload({ params: { id }, body }),
    remove: (client, id) => client.deleteTrustedWorkload({ params: { id } }),
  }),
  description:
    "A job of a pipeline, or another program, that exchanges a token of an OpenID Connect provider for a session in a namespace. The program needs no stored credential of the service. Requires `gatehouse-server`.",
  idNote: "an import also accepts `tenant/name`",
  layers: [guarded],
  object: { kind: "trustedWorkload" },
  needs: (_inputs, state) => (state ? [] : [{ capability: "trusted workloads" }]),
  identity: {
    fields: ["tenant", "name"],
    ofInputs: ({ tenant, name }) => [{ key: `trusted workload ${tenant ?? ""} ${name}`, property: "name" }],
  },
});

/** The settings of a trusted workload, and its id. */
export type Workload = Pick<TrustedWorkload, "id" | Exclude<keyof typeof inputs, "tenant">>;

export const trustedWorkload: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "trusted workloads",
    missed: "unmanaged workloads cannot be detected",
  }),
  parts: undefined,
  watched: {
    keptBy: (object, { workloadId }) =>
      idWithin(object) === workloadId ? "this workload runs the command" : undefined,
  },
  operations: {
    create: ["createTrustedWorkload"],
    update: ["updateTrustedWorkload"],
    delete: ["deleteTrustedWorkload"],
  },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "workloadId"),
    // A new resource adopts an existing workload with the same name.
    newKey: ({ live }, _planned, { name }) =>
      [...(live.of(definition) ?? [])].find(([, { state }]) => state.name === name)?.[0],
    values: (_draft, { key }) => ({ workloadId: key }),
  },
  quota: undefined,
  decides: undefined,
  role: (object) => {
    const workload = workloadIn(object);
    return { role: workload.role, tokens: tokensPhrase(workload, PLAIN) };
  },
  changes: changeList<WorkloadChange>({
    list: "workloads",
    title: "Trusted workload changes",
    what: "workload change",
    between: (before, after) => workloadChanges(workloadsOf(before) ?? [], workloadsOf(after) ?? []),
    sentence: workloadSentence,
    roles: (change) => gainedRole(change, `workload ${change.name}`, change.acceptedBefore !== undefined),
  }),
  linted: (objects) => ({ trustedWorkloads: Array.from(objects.values(), workloadIn) }),
  imported: { file: "workloads", naming: "name" },
};

const SETTINGS = Object.keys(inputs).filter((name) => name !== "tenant");

const workloadIn = ({ state }: LiveObject): Workload =>
  ({ id: state.workloadId, ...valuesOf(state, SETTINGS) }) as Workload;

/** Returns the trusted workloads of a namespace, or undefined if they could not be read. */
export function workloadsOf(state: HasObjects): Workload[] | undefined {
  const objects = state.of(definition);
  return objects && Array.from(objects.values(), workloadIn);
}

/**
 * The conditions that a token must meet so that a trusted workload accepts it, and the maximum duration of the session.
 */
export interface AcceptedTokens {
  readonly issuer: string;
  readonly audience: string;
  /** The required claims by name. */
  readonly claims: Readonly<Record<string, string>>;
  readonly maxSessionMinutes: number;
  readonly singleUse: boolean;
}

/**
 * A change to a trusted workload: the workload is added or removed, gets a different role, or accepts different tokens.
 */
export interface WorkloadChange {
  readonly change: "added" | "removed" | "altered";
  readonly name: string;
  /** The role before the change. Omitted for a new workload. */
  readonly from?: Role;
  /** The role after the change. Omitted for a removed workload. */
  readonly to?: Role;
  /** The tokens that the workload accepts after the change. Omitted for a removed workload. */
  readonly accepts?: AcceptedTokens;
  /** The tokens that the workload accepted before the change. Omitted if the accepted tokens do not change. */
  readonly acceptedBefore?: AcceptedTokens;
}

/** Returns the changes to the trusted workloads, sorted by name. */
function workloadChanges(before: readonly Workload[], after: readonly Workload[]): WorkloadChange[] {
  const was = new Map(before.map((workload) => [workload.id, workload]));
  const is = new Map(after.map((workload) => [workload.id, workload]));
  const changes = [...new Map([...was, ...is]).values()].flatMap(({ id, name }): WorkloadChange[] => {
    const [old, now] = [was.get(id), is.get(id)];
    const [acceptedBefore, accepts] = [old && tokensOf(old), now && tokensOf(now)];
    const isSame = isDeepStrictEqual(acceptedBefore, accepts);
    if (old?.role === now?.role && isSame) return [];
    const change = !old ? "added" : !now ? "removed" : "altered";
    return [
      {
        change,
        name,
        ...(old && { from: old.role }),
        ...(now && { to: now.role, accepts }),
        ...(now && acceptedBefore && !isSame && { acceptedBefore }),
      },
    ];
  });
  return changes.sort(byTexts(({ name }) => name));
}

const tokensOf = ({ issuer, audience, claims, maxSessionMinutes, singleUse }: Workload): AcceptedTokens => ({
  issuer,
  audience,
  claims,
  maxSessionMinutes,
  singleUse,
});

/**
 * Returns a sentence about a changed trusted workload: `deploy becomes administrator (was operator)`. If the accepted
 * tokens change, the sentence describes them.
 */
export function workloadSentence(change: WorkloadChange, style: Style): string {
  const { from, to, accepts, acceptedBefore } = change;
  const name = style.name(change.name);
  if (accepts === undefined) return `${name} is removed (was ${from})`;
  const tokens = tokensPhrase(accepts, style);
  if (change.change === "added") return `${name} is added as ${to}, for ${tokens}`;
  const role = from === to ? `${name} (${to})` : `${name} becomes ${to} (was ${from})`;
  return acceptedBefore ? `${role}: ${tokens} (before: ${tokensPhrase(acceptedBefore, style)})` : role;
}

/**
 * Describes the tokens that a trusted workload accepts, as a phrase: `tokens of <issuer> with repository "acme/fleet",
 * used once`.
 */
function tokensPhrase(
  { issuer, audience, claims, maxSessionMinutes, singleUse }: AcceptedTokens,
  style: Style,
): string {
  const conditions = Object.entries(claims)
    .toSorted(([left], [right]) => byText(left, right))
    .map(([name, value]) => style.text(`${name} ${JSON.stringify(value)}`));
  return `tokens of ${style.text(printableIssuer(issuer))} for ${style.text(audience)} with ${conditions.join(" and ")}, up to ${counted(maxSessionMinutes, "minute")}${singleUse ? ", used once" : ""}`;
}
