import type { Finding, FindingObject } from "./finding.ts";
import { quoted } from "./wording.ts";

/** An API key, as far as linting goes. */
export interface LintedApiKey {
  readonly name: string;
  readonly role: string;
  /** Null: never; see {@link expiryOf}. */
  readonly expiresAt: Date | null;
}

/** A pending invitation, as far as linting goes. */
export interface LintedInvitation {
  readonly email: string;
  readonly role: string;
  /** Null: never; see {@link expiryOf}. */
  readonly expiresAt: Date | null;
}

/** What is linted beside the policy. */
export interface ExpiryOptions {
  readonly apiKeys?: readonly LintedApiKey[];
  /** Pending ones. */
  readonly invitations?: readonly LintedInvitation[];
  /** Days that are soon; 14 where it is left out. */
  readonly soonDays?: number;
  /** The present where it is left out. */
  readonly now?: Date;
}

const SOON_DAYS = 14;
const DAY = 24 * 60 * 60 * 1000;

/**
 * When something ends, as servers say it (rules section 15, models section 0): API keys in seconds since 1970, -1 being
 * never; invitations as RFC 3339, the zero date (of year 1) being never.
 * @throws RangeError when the text is no date
 */
export function expiryOf(expires: number | string): Date | null {
  const date = new Date(typeof expires === "number" ? expires * 1000 : expires);
  if (Number.isNaN(date.getTime())) throw new RangeError("expires: must be seconds since 1970, or a date");
  return date.getTime() > 0 ? date : null;
}

/** Credentials that never end, and what ends soon. */
export function expiryFindings(options: ExpiryOptions): Finding[] {
  const { apiKeys = [], invitations = [] } = options;
  return [
    ...apiKeys.flatMap(({ name, role, expiresAt }) => {
      const object = { kind: "apiKey", id: name, name } as const;
      if (expiresAt === null) return mayChangePolicy(role) ? [endless(object, role)] : [];
      return soon(object, `API key ${quoted(name)} (${role})`, expiresAt, "Replace it before.", options);
    }),
    ...invitations.flatMap(({ email, role, expiresAt }) => {
      const object = { kind: "invitation", id: email, name: email } as const;
      const what = `The invitation of ${quoted(email)} as ${role}`;
      return expiresAt
        ? soon(object, what, expiresAt, "Ask for its acceptance, or invite again.", options)
        : [];
    }),
  ];
}

/** Rules section 4: from administrator upwards. */
const mayChangePolicy = (role: string) => role === "administrator" || role === "owner";

const endless = (object: FindingObject, role: string): Finding => ({
  rule: "api-key-without-expiry",
  severity: "warning",
  message: `API key ${quoted(object.name)} has the role ${role} and no expiry.`,
  object,
  field: "expiresAt",
  suggestion: "Replace it by one that expires, or give it a lower role.",
});

function soon(
  object: FindingObject,
  what: string,
  expiresAt: Date,
  suggestion: string,
  { soonDays = SOON_DAYS, now = new Date() }: ExpiryOptions,
): Finding[] {
  const left = expiresAt.getTime() - now.getTime();
  if (left <= 0 || left > soonDays * DAY) return [];
  const at = expiresAt.toISOString();
  return [
    {
      rule: "expires-soon",
      severity: object.kind === "apiKey" ? "warning" : "info",
      message: `${what} expires at ${at}, within ${soonDays} days.`,
      object,
      field: "expiresAt",
      suggestion,
      evidence: { expiresAt: at },
    },
  ];
}
