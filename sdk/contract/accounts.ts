import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { email, password, userId, username } from "./schemas.ts";
import { pendingAddresses, userFields, userSession } from "./users.ts";

const part = "Authentication and users";

const ofUser = { part, auth: ["jwt"], scope: "user" } as const;
const byMail = { part, edition: "cloud", auth: ["none"], scope: "public" } as const;

// In the specification, `resendEmail` accepts only user names of 3 to 20 characters. With that limit, users with a
// longer name could never request a new activation mail.
const account = z.union([username, email]).describe("Username or e-mail");

/** A token that was sent by mail: 128 random bits in the form of a UUID of any version. */
export const mailToken = z
  .string()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i, "must be a uuid")
  .describe("Token from the mail");

export const registerUser = defineOperation({
  id: "registerUser",
  part,
  summary:
    "Create an account. With the `sig` of an invitation, the account is confirmed immediately, and the " +
    "response is a session. Otherwise the response is empty, and the user confirms the account by mail. " +
    "Editions other than `cloud` require `sig`",
  method: "POST",
  path: "/api/register",
  edition: "enterprise",
  auth: ["none"],
  scope: "public",
  body: z.object({
    name: z.string().min(1).max(64),
    email,
    username,
    // The password format of the specification for registration (rules D10).
    password: z
      .string()
      .regex(/^[a-zA-Z0-9_-]{1,64}$/, "must have 1 to 64 letters, digits, - and _")
      .describe("1 to 64 letters, digits, - and _"),
    email_marketing: z.boolean(),
    sig: z.string().max(256).optional().describe("Value from the invitation link"),
  }),
  limit: { kind: "login", account: "email" },
  success: { body: userSession, mayBeEmpty: true },
  errors: {
    400: "array of invalid field names",
    401: "`sig` not valid for this e-mail address, or missing in an edition other than `cloud`",
    409: "array of the names of fields whose values are already in use",
  },
});

export const validateAccount = defineOperation({
  ...byMail,
  id: "validateAccount",
  summary:
    "Confirm an account with the token from the activation mail. The token can be used once, within 24 hours",
  method: "GET",
  path: "/api/user/validation_account",
  query: { email, token: mailToken },
  // The client must not repeat the request: the token can be used only once, so if the first attempt took effect, a
  // second attempt fails.
  repeatable: false,
  limit: { kind: "login" },
  errors: {
    400: "`email` or `token` missing or malformed",
    401: "listed in the specification; this service does not return this status",
    404: "`token` used, expired or unknown for this e-mail address",
  },
});

const mailRequest = {
  ...byMail,
  method: "POST",
  body: z.object({ username: account }),
  limit: { kind: "login", account: "username" },
} as const;

export const resendEmail = defineOperation({
  ...mailRequest,
  id: "resendEmail",
  summary:
    "Send a new activation mail, and invalidate the previous mail. The response is the same if the " +
    "account does not exist",
  path: "/api/user/resend_email",
  errors: {
    400: "`username` missing or malformed",
    401: "listed in the specification; this service does not return this status",
  },
});

export const recoverPassword = defineOperation({
  ...mailRequest,
  id: "recoverPassword",
  summary:
    "Send a mail with a link to set a new password. The response is the same if the account does not exist",
  path: "/api/user/recover_password",
  errors: {
    400: "`username` missing or malformed",
    401: "listed in the specification; this service does not return this status",
    404: "unknown user; this service does not return this status, but newer services do",
  },
});

export const updateRecoverPassword = defineOperation({
  ...byMail,
  id: "updateRecoverPassword",
  summary:
    "Set a new password with the token from the mail, and log the user out of all clients. The token can " +
    "be used once, within 24 hours",
  method: "POST",
  path: "/api/user/{uid}/update_password",
  params: { uid: userId },
  body: z.object({ password, token: mailToken }),
  limit: { kind: "login", account: "token" },
  errors: {
    400: "`password` not 5 to 30 characters long, or `token` missing",
    401: "`token` wrong, used or expired",
  },
});

export const updateUserData = defineOperation({
  ...ofUser,
  id: "updateUserData",
  summary:
    "Change the calling user, except the password (older form of `updateUser`). New addresses take effect " +
    "after their confirmation",
  method: "PATCH",
  path: "/api/users/{id}/data",
  params: { id: userId },
  body: z.object(userFields),
  success: { body: pendingAddresses, mayBeEmpty: true },
  errors: {
    400: "array of invalid field names",
    403: "called with an API key, or `id` is not the caller's id",
    404: "user no longer exists",
    409: "array of the names of fields whose values are already in use",
  },
});

export const updateUserPassword = defineOperation({
  ...ofUser,
  id: "updateUserPassword",
  summary:
    "Change the calling user's password (older form of `updateUser`), and log the user out of all other clients",
  method: "PATCH",
  path: "/api/users/{id}/password",
  params: { id: userId },
  // The length limits of `new_password` do not apply, because passwords that were set at registration have different
  // limits.
  body: z.object({ current_password: z.string().min(1).max(1024), new_password: password }),
  errors: {
    400: "a field is missing or has an invalid length, both passwords are equal, or `current_password` is wrong",
    403: "called with an API key, or `id` is not the caller's id",
    404: "user no longer exists",
    429: "too many wrong values of `current_password`; `X-Account-Lockout` contains the Unix time at which the lockout ends",
  },
});

export const deleteUser = defineOperation({
  ...ofUser,
  id: "deleteUser",
  summary: "Delete the calling user and all memberships of the user",
  method: "DELETE",
  path: "/api/user",
  edition: "cloud",
  success: { status: 204 },
  errors: { 403: "the caller owns a namespace, or the operation was called with an API key" },
});
