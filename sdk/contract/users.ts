import { z } from "zod";
import { defineOperation, MALFORMED } from "./operation.ts";
import { addition, email, model, password, role, tenantId, userId, username } from "./schemas.ts";

const part = "Authentication and users";

const ofUser = { part, auth: ["jwt"], scope: "user" } as const;
const open = { part, auth: ["none"], scope: "public" } as const;

/** The response to every login (models section 1). */
export const userSession = model(
  "UserSession",
  "A user's token, with the user's data for display",
  z.object({
    token: z.string(),
    id: userId,
    origin: z.string(),
    auth_methods: z.array(z.string()),
    user: z.string().describe("Username"),
    name: z.string(),
    email: z.string(),
    recovery_email: z.string(),
    tenant: z
      .union([tenantId, z.literal("")])
      .describe("Id of the current namespace; empty if the user has no namespace"),
    role: z.union([role, z.literal("")]),
    mfa: z.boolean(),
    max_namespaces: z.int().describe("Maximum number of namespaces of the user; -1: no limit"),
  }),
);

export const instanceInfo = model(
  "InstanceInfo",
  "The public data of an instance, available without a login",
  z.object({
    version: z.string(),
    endpoints: z.object({ ssh: z.string(), api: z.string() }),
    setup: z.boolean().describe("True once the first user exists"),
    authentication: z.object({ local: z.boolean(), saml: z.boolean() }),
  }),
);

export const mfaCredentials = model(
  "MfaCredentials",
  "A new TOTP secret with recovery codes. The service stores the secret and the codes only when MFA is enabled",
  z.object({ link: z.string(), secret: z.string(), recovery_codes: z.array(z.string()) }),
);

// Login does not apply the format rules for new names and passwords. It applies only generous length limits, because a
// wrong value fails when the service compares it with the stored account (rules D10, Q1).
const credentials = z.object({
  username: z.string().min(1).max(254).describe("Username or e-mail"),
  password: z.string().min(1).max(1024),
});

const loginShape = {
  ...open,
  method: "POST",
  body: credentials,
  limit: { kind: "login", account: "username" },
  success: { headers: ["X-Account-Lockout", "X-MFA-Token"], body: userSession },
  errors: {
    400: "`username` or `password` missing",
    401: "unknown user or wrong password: `X-Account-Lockout` is 0. Or the password is right and the user has MFA: `X-MFA-Token` contains a uuid",
    403: "account not confirmed yet",
    422: "body is not valid JSON",
    429: "the user is locked out for the caller's source address; `X-Account-Lockout` contains the Unix time at which the lockout ends. Or too many requests; `Retry-After` contains the seconds to wait",
  },
} as const;

export const login = defineOperation({
  ...loginShape,
  id: "login",
  summary: "Log in with a user name or e-mail address",
  path: "/api/login",
});

export const authUser = defineOperation({
  ...loginShape,
  id: "authUser",
  summary: "Log in (older path)",
  path: "/api/auth/user",
});

export const getUserInfo = defineOperation({
  ...ofUser,
  id: "getUserInfo",
  summary: "Get the session of the calling user",
  method: "GET",
  path: "/api/auth/user",
  success: { body: userSession },
  errors: { 403: "called with an API key", 404: "user no longer exists" },
});

export const authMfa = defineOperation({
  ...open,
  id: "authMfa",
  summary: "Complete a login of a user with MFA",
  method: "POST",
  path: "/api/user/mfa/auth",
  aliases: ["/api/mfa/auth"],
  edition: "enterprise",
  body: z.object({
    token: z.uuid().describe("Value of `X-MFA-Token`"),
    code: z.string().regex(/^\d{6}$/, "must be 6 digits"),
  }),
  limit: { kind: "login", account: "token" },
  success: { body: userSession },
  errors: {
    400: "`token` or `code` missing",
    401: "`token` unknown or older than 30 minutes, or `code` wrong",
    429: "too many wrong codes; `X-Account-Lockout` contains the Unix time at which the lockout ends",
  },
});

export const generateMfa = defineOperation({
  ...ofUser,
  id: "generateMfa",
  summary:
    "Create a TOTP secret and recovery codes. The service stores the secret and the codes only when `enableMfa` is called",
  method: "GET",
  path: "/api/user/mfa/generate",
  edition: "enterprise",
  success: { body: mfaCredentials },
  errors: { 403: "called with an API key" },
});

export const enableMfa = defineOperation({
  ...ofUser,
  id: "enableMfa",
  summary: "Enable MFA for the calling user",
  method: "PUT",
  path: "/api/user/mfa/enable",
  edition: "enterprise",
  body: z.object({
    code: z.string().regex(/^\d{6}$/, "must be 6 digits"),
    secret: z.string().regex(/^[A-Z2-7]{16,128}$/, "must be base32, 16 to 128 characters"),
    recovery_codes: z.array(z.string().min(8).max(64)).min(1).max(16),
  }),
  errors: {
    400: "a field is missing, the user has no recovery e-mail address, or MFA is already enabled",
    401: "no valid JWT, or `code` does not match `secret`",
    403: "called with an API key",
  },
});

const switchNamespace = {
  ...ofUser,
  method: "GET",
  params: { tenant: tenantId },
  success: { body: userSession },
} as const;

export const getToken = defineOperation({
  ...switchNamespace,
  id: "getToken",
  summary:
    "Get a token for another namespace of the user. This namespace becomes the preferred namespace of the user",
  path: "/api/token/{tenant}",
  errors: { 403: "called with an API key", 404: "namespace unknown, or caller not an accepted member" },
});

export const getNamespaceToken = defineOperation({
  ...switchNamespace,
  id: "getNamespaceToken",
  summary:
    "Get a token for another namespace of the user. This namespace becomes the preferred namespace of the user",
  path: "/api/auth/token/{tenant}",
  errors: {
    400: MALFORMED,
    403: "called with an API key",
    404: "namespace unknown, or caller not an accepted member",
  },
});

const orEmpty = <T extends z.ZodType>(schema: T) => z.union([schema, z.literal("")]).optional();

/** Fields that users may change in their own account, except the password. An empty string leaves a field unchanged. */
export const userFields = {
  name: orEmpty(z.string().max(64)),
  username: orEmpty(username),
  email: orEmpty(email),
  recovery_email: orEmpty(email),
};

export const pendingAddresses = model(
  "PendingAddresses",
  "Addresses that take effect after the user confirms them",
  z.object({ message: z.string(), pending: z.array(z.enum(["email", "recovery_email"])) }),
);

/** The user's current password. The length limits of new passwords do not apply. */
export const currentPassword = z.string().min(1).max(1024);
/** An optional TOTP code. */
export const totpCode = z
  .union([z.string().regex(/^\d{6}$/, "must be 6 digits"), z.literal("")])
  .optional()
  .describe("TOTP code; an empty string is treated as absent");

export const updateUser = defineOperation({
  ...ofUser,
  id: "updateUser",
  summary:
    "Change the calling user. An empty string leaves a field unchanged. A new e-mail or recovery e-mail " +
    "address takes effect immediately if the request contains `current_password` and, for a user with MFA, " +
    "`code`. Otherwise, the address takes effect after the user confirms it, and the response lists the " +
    "address. The first recovery e-mail address of a user without MFA always takes effect immediately. A " +
    "new password logs the user out of all other clients. The token of this request expires within one hour",
  method: "PATCH",
  path: "/api/users",
  body: z.object({
    ...userFields,
    password: orEmpty(password),
    current_password: z
      .string()
      .max(1024)
      .optional()
      .describe(
        "Current password. Required to change `password`. With this field, new addresses take effect immediately",
      ),
    code: addition(
      totpCode.describe(
        "TOTP code. If the user has MFA, new addresses take effect immediately only with this code",
      ),
    ),
  }),
  success: { body: pendingAddresses, mayBeEmpty: true },
  errors: {
    400: 'array of invalid field names; a wrong `current_password` gives `["password"]` if `password` is set',
    403: "called with an API key",
    404: "user no longer exists",
    409: "array of the names of fields whose values are already in use",
    429: "too many wrong values of `current_password` or `code`; `X-Account-Lockout` contains the Unix time at which the lockout ends. Or too many requested addresses; `Retry-After` contains the seconds to wait",
  },
});

export const setup = defineOperation({
  ...open,
  id: "setup",
  summary: "Create the first user and the user's personal namespace",
  method: "POST",
  path: "/api/setup",
  query: {
    sign: z.string().min(1).max(256).describe("Value from the link of `gatehouse-server admin setup-link`"),
  },
  body: z.object({ name: z.string().min(3).max(20), email, username, password }),
  limit: { kind: "login" },
  errors: {
    400: "`sign` missing, or a field invalid",
    403: "`sign` wrong, or setup already done",
    409: "`username`, `email` or namespace name already in use",
  },
});

export const getInfo = defineOperation({
  ...open,
  id: "getInfo",
  summary: "Get the version, the endpoints and the setup state of the instance",
  method: "GET",
  path: "/info",
  aliases: ["/api/info"],
  query: { agent_version: z.string().max(64).optional() },
  success: { body: instanceInfo },
});

export const healthcheck = defineOperation({
  ...open,
  id: "healthcheck",
  summary: "Check the health of the service. Returns 200 while the service is available",
  method: "GET",
  path: "/healthcheck",
  aliases: ["/api/healthcheck"],
});
