import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { userId } from "./schemas.ts";
import { totpCode, userSession } from "./users.ts";

const part = "Authentication and users";

// Any string is valid, because a client may create its own recovery codes for `enableMfa`, in a different format than
// the codes of `generateMfa`.
const recoveryCode = z.string().min(1).max(64);
const identifier = z.string().min(1).max(254).describe("Username or e-mail");
const mailedCode = z.string().min(1).max(64);

const LOCKED = "too many wrong codes; `X-Account-Lockout` contains the Unix time at which the lockout ends";
const LOCKED_NETWORK = LOCKED.replace("codes", "codes from the caller's network");
/** Operations for callers who cannot log in. */
const open = {
  part,
  edition: "enterprise",
  auth: ["none"],
  scope: "public",
  limit: { kind: "login" },
} as const;

export const disableMfa = defineOperation({
  id: "disableMfa",
  part,
  summary: "Disable MFA for the calling user with a TOTP code or a recovery code",
  method: "PUT",
  path: "/api/user/mfa/disable",
  edition: "enterprise",
  auth: ["jwt"],
  scope: "user",
  body: z.object({
    code: totpCode,
    recovery_code: z
      .string()
      .max(64)
      .optional()
      .describe(
        "An unused code, or a code that `recoverMfa` consumed less than 10 minutes ago; an empty string is treated as absent",
      ),
  }),
  // The client must not repeat the request: the code can be used only once, so if the first attempt took effect, a
  // second attempt fails.
  repeatable: false,
  errors: {
    400: "the request does not have exactly one of `code` and `recovery_code`, or MFA is not enabled",
    403: "`code` wrong, `recovery_code` unknown or used, or called with an API key",
    429: LOCKED,
  },
});

export const recoverMfa = defineOperation({
  ...open,
  id: "recoverMfa",
  summary:
    "Log in with a recovery code. The code cannot be used for another login, but can disable MFA once " +
    "until the time in `X-Expires-At`",
  method: "POST",
  path: "/api/user/mfa/recover",
  body: z.object({ identifier, recovery_code: recoveryCode }),
  success: { headers: ["X-Expires-At"], body: userSession },
  errors: {
    400: "`identifier` or `recovery_code` missing",
    401: "unknown user, MFA not enabled, or `recovery_code` unknown or used",
    429: LOCKED_NETWORK,
  },
});

export const requestResetMfa = defineOperation({
  ...open,
  id: "requestResetMfa",
  summary:
    "Send one code to the user's e-mail address and another code to the recovery e-mail address. Both " +
    "codes together reset MFA",
  method: "POST",
  path: "/api/user/mfa/reset",
  body: z.object({ identifier }),
  errors: {
    400: "`identifier` missing",
    // Rules section 10 lists the status 404 for an unknown user. This service does not return 404, because the status
    // would reveal which users have an account (rules section 11, password recovery).
    401: "on other servers, the user is unknown or has no MFA. This service returns 200 for every `identifier`",
    429: "too many requests for the user from the caller's network; `X-Account-Lockout` contains the Unix time at which the lockout ends",
  },
});

export const resetMfa = defineOperation({
  ...open,
  id: "resetMfa",
  summary: "Disable MFA with both mailed codes, and log in",
  method: "PUT",
  path: "/api/user/mfa/reset/{user-id}",
  params: { "user-id": userId },
  body: z.object({ main_email_code: mailedCode, recovery_email_code: mailedCode }),
  // The client must not repeat the request: the codes can be used only once, so if the first attempt took effect, a
  // second attempt fails.
  repeatable: false,
  success: { body: userSession },
  errors: {
    400: "a code is missing",
    401: "a code is wrong or older than 1 day",
    404: "user id unknown",
    429: LOCKED_NETWORK,
  },
});
