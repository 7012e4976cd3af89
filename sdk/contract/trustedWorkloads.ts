import { z } from "zod";
import { ISSUER_LENGTH, normalizedIssuer } from "../issuer.ts";
import { declaredBy, defineOperation } from "./operation.ts";
import { dateTime, model, paging, revision, role, TOTAL_COUNT, tenantId, userId } from "./schemas.ts";

const part = "Trusted workloads";
const NOT_ALLOWED = "role below `administrator`, or called with an API key";
const INVALID =
  "a field is missing or invalid: `issuer` is not an https URL in its normalized form, `claims` is empty, or `max_session_minutes` is out of range";
const UNKNOWN = "no such workload in the namespace";
const TAKEN = "another workload of the namespace has the name";

/** Maximum number of trusted workloads in a namespace. Each token exchange compares the token with all of them. */
export const TRUSTED_WORKLOADS_MAX = 100;
/** Maximum number of claims that a trusted workload can require of a token. */
const CLAIMS_MAX = 16;
/** Maximum length of a workload's session, in minutes: one day. */
export const SESSION_MINUTES_MAX = 24 * 60;
/** Maximum number of wildcards in a required value. The time of a comparison grows with the number of wildcards. */
const WILDCARDS_MAX = 8;

const requiredValue = z
  .string()
  .min(1)
  .max(256)
  .refine(
    (value) => value.split(/\*+/).length - 1 <= WILDCARDS_MAX,
    `must have at most ${WILDCARDS_MAX} wildcards`,
  );

const ISSUER = "URL of the OpenID Connect provider, exactly as in the `iss` claim of its tokens";

/** The issuer of a new or changed workload. */
const issuer = z
  .string()
  // Do not parse a longer string: the caller controls the string, and the parsing time grows with its length.
  .max(ISSUER_LENGTH, { abort: true })
  .superRefine((text, context) => {
    const normalized = normalizedIssuer(text);
    if (normalized === text) return;
    context.addIssue(
      normalized === undefined
        ? "must be an https URL without user, query and fragment"
        : `must be in the normalized form ${normalized}`,
    );
  })
  .meta({ format: "uri" })
  .describe(`${ISSUER}. The scheme and the host are in lower case, and the host is in ASCII (punycode)`);

/** The issuer of a stored workload. Earlier versions stored issuers that are not in their normalized form. */
const storedIssuer = z
  .url({ protocol: /^https$/ })
  .max(ISSUER_LENGTH)
  .describe(ISSUER);

type ClaimValues = Record<string, string>;

const claims: z.ZodType<ClaimValues, ClaimValues> = z
  .preprocess(
    (value: ClaimValues, context) => {
      // A zod record ignores the key `__proto__`. Without this check, the workload would require fewer claims than the
      // request contains.
      if (Object.hasOwn(Object(value), "__proto__")) context.addIssue("must not have the claim __proto__");
      return value;
    },
    z
      .record(z.string().regex(/^[A-Za-z0-9_.:/-]{1,64}$/), requiredValue)
      .refine((value) => Object.keys(value).length > 0, "must have at least one claim")
      .refine((value) => Object.keys(value).length <= CLAIMS_MAX, `must have at most ${CLAIMS_MAX} claims`),
  )
  .describe(
    "Required claims of the token, by name. In a value, `*` matches any string without a slash, and `**` matches any string",
  );

// Do not reorder these fields. A different order would change the revisions of objects, so stored revisions would no
// longer match.
const settings = z.object({
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      "must have 1 to 64 letters, digits, dots, hyphens or underscores",
    )
    .describe("Name of the workload; unique in the namespace"),
  issuer,
  audience: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, "must have 1 to 255 visible ASCII characters")
    .describe("Required value of the token's `aud` claim, for example the URL of this service"),
  claims,
  // Every operation that writes a workload needs the role `administrator`, so no caller can grant a role above the
  // caller's own role.
  role: role.exclude(["owner"]).describe("Role of the workload in the namespace"),
  max_session_minutes: z
    .int()
    .min(5)
    .max(SESSION_MINUTES_MAX)
    .default(60)
    .describe("Time for which the workload can use the service after the token was issued, in minutes"),
  single_use: z
    .boolean()
    .default(false)
    .describe(
      "Whether each token can be exchanged only once. The `jti` claim identifies a token. Use true only for providers that issue a new token for each request",
    ),
});

export const trustedWorkload = model(
  "TrustedWorkload",
  "A job of a pipeline, or another program, that exchanges a token of an OpenID Connect provider for a session",
  settings.extend({
    issuer: storedIssuer,
    id: userId.describe("Id of the workload"),
    tenant_id: tenantId,
    created_by: userId.describe("Id of the user or workload that created the workload"),
    created_at: dateTime,
    updated_at: dateTime,
    revision,
    declared_by: declaredBy,
  }),
);

export const workloadSession = model(
  "WorkloadSession",
  "A session of a workload, with a token that is valid for 15 minutes",
  z.object({
    token: z.string(),
    expires_at: dateTime.describe("Time when the token expires"),
    renewable_until: dateTime.describe("Time until which the session can be renewed"),
    tenant: tenantId,
    role,
    workload: z.object({ id: userId, name: z.string() }),
    actor: z.string().describe("Name of the workload in the audit trail"),
  }),
);

const common = { part, auth: ["jwt", "apikey"], scope: "namespace" } as const;
const write = {
  part,
  auth: ["jwt"],
  scope: "namespace",
  object: "trustedWorkload",
  minRole: "administrator",
} as const;
const path = "/api/trusted-workloads";
const byId = { path: "/api/trusted-workloads/{id}", params: { id: userId } } as const;

export const createTrustedWorkload = defineOperation({
  ...write,
  id: "createTrustedWorkload",
  creates: true,
  summary: "Trust a workload of an OpenID Connect provider",
  method: "POST",
  path,
  body: settings.strict(),
  idempotencyKey: true,
  success: { body: trustedWorkload },
  errors: {
    400: INVALID,
    403: `${NOT_ALLOWED}, or the namespace has ${TRUSTED_WORKLOADS_MAX} trusted workloads`,
    409: TAKEN,
  },
});

export const listTrustedWorkloads = defineOperation({
  ...common,
  id: "listTrustedWorkloads",
  summary: "List the namespace's trusted workloads, by name",
  method: "GET",
  path,
  minRole: "observer",
  query: paging,
  success: { headers: [TOTAL_COUNT], body: z.array(trustedWorkload) },
});

export const getTrustedWorkload = defineOperation({
  ...common,
  ...byId,
  id: "getTrustedWorkload",
  object: "trustedWorkload",
  summary: "Get a trusted workload",
  method: "GET",
  minRole: "observer",
  success: { body: trustedWorkload },
  errors: { 404: UNKNOWN },
});

export const updateTrustedWorkload = defineOperation({
  ...write,
  ...byId,
  id: "updateTrustedWorkload",
  summary:
    "Replace the settings of a trusted workload. A change to `issuer`, `audience` or `claims` ends the workload's sessions",
  method: "PUT",
  body: settings.strict(),
  success: { body: trustedWorkload },
  errors: { 400: INVALID, 403: NOT_ALLOWED, 404: UNKNOWN, 409: TAKEN },
});

export const deleteTrustedWorkload = defineOperation({
  ...write,
  ...byId,
  id: "deleteTrustedWorkload",
  summary: "Delete a trusted workload and end its sessions",
  method: "DELETE",
  errors: { 403: NOT_ALLOWED, 404: UNKNOWN },
});

export const exchangeWorkloadToken = defineOperation({
  part,
  auth: ["none"],
  scope: "public",
  id: "exchangeWorkloadToken",
  summary:
    "Exchange a token of an OpenID Connect provider for a session of the trusted workload that the token matches",
  method: "POST",
  path: "/api/auth/workload",
  body: z.strictObject({
    tenant: tenantId,
    token: z.string().min(1).max(16_384).describe("Token of the OpenID Connect provider"),
    nonce: z
      .string()
      .regex(/^[\x21-\x7e]{16,255}$/, "must be 16 to 255 visible ASCII characters")
      .optional()
      .describe(
        "A random string that the client chooses. After a lost response, the service accepts a single-use token again only with the same string",
      ),
  }),
  repeatable: true,
  limit: { kind: "login" },
  success: { body: workloadSession },
  errors: {
    400: "a field is missing or invalid",
    401: "no trusted workload of the namespace matches the token, or the token is invalid, expired or already used",
    429: "too many requests; `Retry-After` contains the seconds to wait",
    503: "the keys of the OpenID Connect provider cannot be read; `Retry-After` contains the seconds to wait",
  },
});

export const renewWorkloadSession = defineOperation({
  part,
  auth: ["workload"],
  scope: "namespace",
  minRole: "observer",
  id: "renewWorkloadSession",
  summary: "Renew the session of the calling workload",
  method: "POST",
  path: "/api/auth/workload/renew",
  repeatable: true,
  success: { body: workloadSession },
  errors: { 403: "called with a credential of a user, an API key or a device" },
});
