import {
  createAccessPolicy,
  deleteAccessPolicy,
  getAccessPolicy,
  listAccessPolicies,
  updateAccessPolicy,
} from "@gatehouse-access/sdk";
import { dateTime } from "@gatehouse-access/sdk/contract";
import {
  type AccessPolicy as EvaluatedPolicy,
  networkOf,
  networkText,
  notANetwork,
  type PolicySubject,
} from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import { defineResource } from "../model/defineResource.ts";
import { filterInput, filterState, notWith } from "../model/deviceFilter.ts";
import type { Draft } from "../model/draft.ts";
import { type InputValues, optional, output, required, type State, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../model/idForm.ts";
import { type Kind, listedBy, type PlannedChange } from "../model/kind.ts";
import type { LiveObject } from "../model/object.ts";
import { hiddenValues, invalidInput, isHidden, outputOf, type PlannedStep } from "../model/plannedStep.ts";
import { stored } from "../model/stored.ts";
import { idWithin, sameInputs } from "../model/values.ts";
import { said } from "../resourceError.ts";
import type { ListingSource } from "../service/listings.ts";
import { type ItemOf, listOf, wholeSource } from "../service/wholeLists.ts";
import type { Values } from "../values.ts";

const EVERY_LOGIN = "*";
const EVERY_DEVICE = ".*";

/**
 * Matches a login that contains a pattern. Login names can contain `\`, `$` and `+`, such as `CORP\alice` and `host$`.
 */
const PATTERN = /[*?^|()[\]{}]|\.\+/;

const login = z
  .string()
  .min(1)
  .refine(
    (text) => text === EVERY_LOGIN || !PATTERN.test(text),
    'must be a login name or "*": the service compares logins literally, so a pattern matches no login',
  );

const network = z.string().superRefine((text, context) => {
  if (networkOf(text) === undefined) context.addIssue({ code: "custom", message: notANetwork(text) });
});

/**
 * Returns networks in canonical form. Two kinds of strings stay unchanged. One is a network of IPv4-mapped addresses,
 * which never contains the address of a client. The other is a string that is not a network, which only a newer service
 * returns.
 */
const canonicalNetworks = (texts: readonly string[]): string[] =>
  [...new Set(texts.map((text) => networkText(text) ?? text))].sort();

const allMembers = z
  .literal(true)
  .describe("Whether the subject is every member. Must be `true`. Service accounts are not members.");
const SUBJECT_ROLES = ["owner", "administrator", "operator", "observer", "service"] as const;

const subject = z.union(
  [
    z.strictObject({
      user: z.string().min(1).describe("The ID of a member, or of a service account (`accountId`)."),
      role: notWith("user"),
      allMembers: notWith("user"),
    }),
    z.strictObject({
      role: z
        .enum(SUBJECT_ROLES)
        .describe(
          "The role of the members. Matches exactly this role. The role `service` matches service accounts.",
        ),
      user: notWith("role"),
      allMembers: notWith("role"),
    }),
    z.strictObject({ allMembers, user: notWith("allMembers"), role: notWith("allMembers") }),
  ],
  { error: "must have exactly one of user, role and allMembers" },
);

const inputs = {
  tenant: tenantInput,
  name: required(z.string().min(1), {
    description: "The display name of the policy. Several policies can have the same name.",
    notDecisive: "the name is only displayed",
  }),
  subject: required(subject, {
    description:
      "The users or service accounts to match. Must contain exactly one of `user`, `role` and `allMembers`.",
    notDecisive: "a plan follows the reference to a principal that it creates",
  }),
  filter: filterInput,
  logins: required(
    z
      .array(login)
      .min(1)
      .refine(
        (logins) => logins.length === 1 || !logins.includes(EVERY_LOGIN),
        '"*" matches every login, so it must be the only entry',
      ),
    {
      description:
        'The login names to match, literally. Use the single entry `"*"` to match every login. Patterns are rejected.',
    },
  ),
  sourceIps: optional(z.array(network), {
    description:
      "The client addresses and networks (CIDR) to match. By default, the policy matches every address.",
    default: [],
    canonical: canonicalNetworks,
  }),
  action: optional(z.enum(["allow", "deny"]), {
    description:
      "The action for logins that match the policy. Must be `allow` or `deny`. If any matching policy denies a login, the login is denied. If no policy matches, the login is denied too.",
    default: "allow",
  }),
  requireReauth: optional(z.boolean(), {
    description:
      "Whether users must confirm a login with their password in the browser. Has no effect on service accounts.",
    default: false,
  }),
  reauthPeriod: optional(z.int().min(0).max(2_147_483_647), {
    description:
      "The number of seconds after a confirmation during which further logins need no confirmation. If `0`, each login needs a confirmation.",
    default: 0,
  }),
};

const outputs = {
  policyId: output(z.string(), { description: "The ID of the policy." }),
  createdAt: output(dateTime, { description: "The time when the policy was created." }),
};

type PolicyState = State<typeof inputs, typeof outputs>;

/** An access policy, as the service returns it. */
type AccessPolicy = ItemOf<typeof listAccessPolicies>;

/** The access policies of a namespace, by id. */
export const policies: ListingSource<AccessPolicy> = (client) =>
  wholeSource(
    "AccessPolicy",
    () => listOf(client, listAccessPolicies),
    async (id) => (await client.request(getAccessPolicy, { params: { id } })).body,
  );

const definition = defineResource({
  ...stored({
    name: "AccessPolicy",
    id: new IdForm("AccessPolicy", {
      tenant: EXAMPLE_TENANT,
      policyId: "2f1c3a52-9d0e-4c0b-8a51-6f0f6d3f0a11",
    }),
    inputs,
    outputs,
    source: policies,
    keyOf: ({ id }: AccessPolicy) => id,
    nameOf: ({ name }) => name,
    importKeys: (part) => (isUuid(part) ? [part] : []),
    derived: (policy) => ({
      policyId: policy.id,
      ...declaredValues({ ...policy, sourceIps: policy.sourceIp }),
    }),
    body: bodyOf,
    create: async (client, body) => (await client.request(createAccessPolicy, { body })).body,
    update: async (client, id, body) =>
      (await client.request(updateAccessPolicy, { params: { id }, body })).body,
    remove: (client, id) => client.request(deleteAccessPolicy, { params: { id } }),
  }),
  description:
    "An access policy that allows or denies SSH logins in a namespace with the access mode `identity`. Requires ShellHub 0.27 or later; `gatehouse-server` has no such objects.",
  tags: { needs: "filter" },
  actsIn: "identity",
  needs: (_inputs, state) => (state ? [] : [{ capability: "access policies" }]),

  rules: ({ action, requireReauth = false, reauthPeriod = 0 }) => [
    ...(requireReauth && action === "deny"
      ? [
          {
            code: "invalid_input" as const,
            field: ["requireReauth"],
            detail: said`has no effect with ${{ field: "action", value: "deny" }}`,
            remedy: said`remove it`,
          },
        ]
      : []),
    ...(!requireReauth && reauthPeriod > 0
      ? [
          {
            code: "invalid_input" as const,
            field: ["reauthPeriod"],
            detail: said`has no effect without ${{ field: "requireReauth", value: true }}`,
            remedy: said`set ${{ field: "requireReauth", value: true }}, or remove ${{ field: "reauthPeriod" }}`,
          },
        ]
      : []),
  ],
});

/**
 * Returns true if a string has the form of the service's ids. For any other id, such as a name, the service fails with
 * status 500.
 */
const isUuid = (text: string) => z.guid().safeParse(text).success;

/**
 * Returns the request body that creates or replaces a policy. The body never contains an id, because the service would
 * then replace the policy with that id instead of the policy in the path.
 */
function bodyOf({
  sourceIps,
  filter,
  reauthPeriod,
  subject,
  ...plain
}: Omit<PolicyState, "tenant" | keyof typeof outputs>) {
  return {
    ...plain,
    subject: subjectOnWire(subject),
    filter: filter.tags ? { tags: filter.tags } : { hostname: filter.hostname },
    sourceIp: sourceIps,
    reauthPeriod: reauthPeriod === 0 ? null : reauthPeriod,
  };
}

function subjectOnWire({ user, role }: InputValues<typeof inputs>["subject"]) {
  if (user !== undefined) return { type: "user", value: user };
  return role === undefined ? { type: "all-members", value: "" } : { type: "role", value: role };
}

/**
 * The part of a policy that a program declares. Its `action` and its type of `subject` can be values that only a newer
 * server has.
 */
type Declarable = Omit<EvaluatedPolicy, "id" | "subject" | "action"> &
  Pick<AccessPolicy, "subject" | "action">;

/** Returns the inputs that declare a policy. */
function declaredValues(policy: Declarable) {
  const { action, requireReauth, reauthPeriod } = policy;
  const { type, value } = policy.subject;
  // Treats settings without effect as omitted: the re-authentication of a deny policy, and the period if the policy
  // requires no re-authentication.
  const isConfirmed = requireReauth && action !== "deny";
  const filter = filterState(policy.filter);
  return {
    name: policy.name,
    // A newer server may have additional subjects, roles and actions, which no program can declare.
    subject: (type === "all-members" ? { allMembers: true } : { [type]: value }) as PolicyState["subject"],
    // A policy whose filter has neither tags nor a pattern matches every device.
    filter: filter.tags?.length === 0 ? { hostname: EVERY_DEVICE } : filter,
    logins: [...new Set(policy.logins)].sort(),
    sourceIps: canonicalNetworks(policy.sourceIps),
    action: action as PolicyState["action"],
    requireReauth: isConfirmed,
    reauthPeriod: isConfirmed ? (reauthPeriod ?? 0) : 0,
  };
}

/**
 * The maximum re-authentication period, in seconds, that servers of version 0.27 support. If the period is longer,
 * these servers fail when a login needs a re-authentication.
 */
const PERIOD_MAX = 2_147_483_647;

interface Subject {
  readonly user?: string;
  readonly role?: string;
  readonly allMembers?: true;
}

type EvaluatedState = Omit<EvaluatedPolicy, "id" | "subject" | "reauthPeriod"> & {
  readonly policyId: string;
  readonly subject: Subject;
  /** The re-authentication period in seconds, or 0 if each login needs a re-authentication. */
  readonly reauthPeriod: number;
};

export const accessPolicy: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "the access policies",
    missed: "unmanaged access policies cannot be detected",
  }),
  parts: undefined,
  watched: {
    keptBy: (_object, { isClosed }) =>
      isClosed ? "the namespace may deny every login without this policy; declare a policy first" : undefined,
  },
  operations: {
    create: ["createAccessPolicy"],
    update: ["updateAccessPolicy"],
    delete: ["deleteAccessPolicy"],
  },
  plan: {
    stage: "policies",
    keyOf: (before) => outputOf(before, "policyId"),
    newKey: adopted,
    values: (draft, change) => ({
      policyId: change.key,
      subject: subjectIn(draft, change),
    }),
  },
  quota: undefined,
  decides: {
    parts: (objects) => ({ policies: Array.from(objects).flatMap((object) => policyIn(object) ?? []) }),
    obstacle: (object) =>
      policyIn(object)
        ? undefined
        : `the access policy ${object.name} has a subject, an action or a re-authentication period that this version cannot evaluate`,
    decision: "policy",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "policies", naming: "name" },
};

/**
 * Returns a policy in the form that the evaluation needs. Returns undefined if the policy cannot be evaluated: it has a
 * subject or action that only a newer server has, or a re-authentication period with which the server fails.
 */
function policyIn({ state }: LiveObject): EvaluatedPolicy | undefined {
  const {
    policyId: id,
    name,
    filter,
    logins,
    sourceIps,
    action,
    requireReauth,
    ...one
  } = state as unknown as EvaluatedState;
  const subject = policySubject(one.subject);
  if (!subject || (action !== "allow" && action !== "deny")) return undefined;
  if (requireReauth && one.reauthPeriod > PERIOD_MAX) return undefined;
  const reauthPeriod = one.reauthPeriod === 0 ? null : one.reauthPeriod;
  return { id, name, subject, filter, logins, sourceIps, action, requireReauth, reauthPeriod };
}

function policySubject({ user, role, allMembers }: Subject): PolicySubject | undefined {
  if (user !== undefined) return { type: "user", value: user };
  if (role !== undefined) return { type: "role", value: role };
  return allMembers ? { type: "all-members", value: "" } : undefined;
}

/**
 * Returns the key of the live policy that a new resource adopts: a policy that equals the inputs. Returns undefined if
 * the resource adopts no policy, or if the plan creates the principal, because no live policy can refer to that
 * principal.
 */
function adopted({ live }: Draft, { after }: PlannedStep, inputs: Values): string | undefined {
  if (!after?.inputs.adopt || isHidden(after.inputs.subject)) return undefined;
  const policies = [...(live.of(definition) ?? [])];
  return policies.find(([, { state }]) => sameInputs(definition.inputs, state, inputs))?.[0];
}

/**
 * Returns the subject of a policy. If the plan creates the principal, a preview does not contain the id of the
 * principal. It contains the resource that will provide the id.
 * @throws UnpredictableError if the subject is not known or not valid
 */
function subjectIn({ newPrincipals }: Draft, { after, inputs }: PlannedChange): Subject {
  const { subject } = after.inputs;
  if (!isHidden(subject)) {
    const known = definition.inputs.subject?.schema.safeParse(subject);
    if (!known?.success) throw invalidInput("subject");
    return inputs.subject as Subject;
  }
  // If the subject refers to several resources, the id may belong to any of them.
  const [urn = "", ...others] = after.references?.subject ?? [];
  const isUser = typeof subject === "object" && subject !== null && Object.keys(subject).join() === "user";
  const user = isUser && others.length === 0 ? newPrincipals.get(urn) : undefined;
  if (user === undefined) throw hiddenValues(["subject"]);
  return { user };
}
