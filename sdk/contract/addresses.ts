import { z } from "zod";
import { mailToken } from "./accounts.ts";
import { defineOperation } from "./operation.ts";
import { userId } from "./schemas.ts";
import { currentPassword, totpCode } from "./users.ts";

export const confirmAddress = defineOperation({
  id: "confirmAddress",
  part: "Authentication and users",
  summary:
    "Take an e-mail or recovery e-mail that waits to be confirmed, by the token that was mailed to it and the user's " +
    "password. An addition of this service",
  method: "POST",
  path: "/api/user/confirm_address",
  auth: ["none"],
  scope: "public",
  body: z.object({
    id: userId,
    token: mailToken,
    password: currentPassword,
    code: totpCode.describe("Needed where the user has MFA"),
  }),
  // By address alone: else strangers could use up what the user may try. The token cannot be guessed.
  limit: { kind: "login" },
  errors: {
    400: "a field missing or of another form, password or code wrong, or code missing where there is MFA",
    401: "id or token wrong, used or older than 24 hours",
    403: "the user logs in by an identity provider and has no password here",
    409: "the address belongs to another user by now, or is the user's other one",
    429: "too many wrong passwords or codes; X-Account-Lockout is the unix second when it ends; or too many requests, Retry-After says for how many seconds",
  },
});
