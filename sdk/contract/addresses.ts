import { z } from "zod";
import { mailToken } from "./accounts.ts";
import { defineOperation } from "./operation.ts";
import { userId } from "./schemas.ts";
import { currentPassword, totpCode } from "./users.ts";

export const confirmAddress = defineOperation({
  id: "confirmAddress",
  part: "Authentication and users",
  summary:
    "Confirm a pending e-mail or recovery e-mail address with the mailed token and the user's password. " +
    "Only this service has this operation",
  method: "POST",
  path: "/api/user/confirm_address",
  auth: ["none"],
  scope: "public",
  body: z.strictObject({
    id: userId,
    token: mailToken,
    password: currentPassword,
    code: totpCode.describe("TOTP code; required if the user has MFA"),
  }),
  // Attempts are counted for each client address and not for each user, because attackers could otherwise use up a
  // user's attempts. The limit is sufficient, because attackers cannot guess the token.
  limit: { kind: "login" },
  errors: {
    400: "a field is missing or malformed, `password` or `code` is wrong, or `code` is missing for a user with MFA",
    401: "`id` or `token` wrong, or `token` used or older than 24 hours",
    403: "the user logs in with an identity provider and has no password",
    409: "the address is in use by another user, or is the user's other address",
    429: "too many wrong passwords or codes; `X-Account-Lockout` contains the Unix time at which the lockout ends. Or too many requests; `Retry-After` contains the seconds to wait",
  },
});
