import { type Finding, type FindingObject, quoted } from "./finding.ts";

/** What lint looks at in an API key. */
export interface LintedApiKey {
  readonly name: string;
  readonly role: string;
  /** Null for never; {@link expiryOf} makes it of what servers say. */
  readonly expiresAt: Date | null;
}

/** What lint looks at in a pending invitation. */
export interface LintedInvitation {
  readonly email: string;
  readonly role: string;
  /** Null for never; {@link expiryOf} makes it of what servers say. */
  readonly expiresAt: Date | null;
}

/** What `lint` looks at beside the policy. */
export interface LintOptions {
  /** @default [] */
  readonly apiKeys?: readonly LintedApiKey[];
  /**
   * Pending invitations.
   * @default []
   */
  readonly invitations?: readonly LintedInvitation[];
  /**
   * What expires within so many days is a finding.
   * @default 14
   */
  readonly soonDays?: number;
  /**
   * The time from which these days count.
   * @default new Date()
   */
  readonly now?: Date;
}

/** Days before its end in which something expires soon. */
export const SOON_DAYS = 14;
const DAY = 24 * 60 * 60 * 1000;

/**
 * When something expires; null for never (rules section 15, models section 0).
 * @param expires as servers say it: of API keys in seconds since 1970, with -1 for never; of invitations as RFC 3339,
 * with the first day of year 1 for never
 * @throws RangeError when the text is no date
 */
export function expiryOf(expires: number | string): Date | null {
  const date = new Date(typeof expires === "number" ? expires * 1000 : expires);
  if (Number.isNaN(date.getTime())) throw new RangeError("expires: must be seconds since 1970, or a date");
  return date.getTime() > 0 ? date : null;
}

/** Findings for API keys that never expire, and for what expires soon. */
export function expiryFindings(options: LintOptions): Finding[] {
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
  { soonDays = SOON_DAYS, now = new Date() }: LintOptions,
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
