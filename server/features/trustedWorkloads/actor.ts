import { printableIssuer, withoutControls } from "@gatehouse-access/sdk/errors";
import type { TokenClaims } from "@gatehouse-access/sdk/policy";
import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";

/**
 * Maximum lengths of strings in the name of an actor, in characters: of the issuer, and of each string from the token.
 */
const ISSUER_SHOWN = 80;
const TEXT_SHOWN = 80;

/**
 * The pipelines whose jobs are shown with a name, by issuer. Each entry contains the names of the claims that identify
 * the project and the job. A claim is a named value in a token.
 */
const PIPELINES: Readonly<Record<string, { provider: string; project: string; job: string; word: string }>> =
  {
    "https://token.actions.githubusercontent.com": {
      provider: "GitHub",
      project: "repository",
      job: "run_id",
      word: "run",
    },
    "https://gitlab.com": { provider: "GitLab", project: "project_path", job: "job_id", word: "job" },
  };

/**
 * Returns a string from a token for output. Removes control characters, and shortens the string to a maximum length.
 */
export function printable(text: string, maxLength: number): string {
  const clean = withoutControls(text);
  return clean.length > maxLength ? `${clean.slice(0, maxLength - 1)}…` : clean;
}

/**
 * Returns a string from a token in quotation marks, so that a reader can see where it ends. Quotation marks and
 * backslashes in the string are replaced.
 */
const quoted = (text: string): string => `"${printable(text, TEXT_SHOWN).replaceAll(/["\\]/g, "'")}"`;

/** Returns the first non-empty string in a claim. Returns undefined if the claim has no such string. */
function textClaim(claims: TokenClaims, name: string): string | undefined {
  for (const text of claims.texts(name)) if (text !== "") return text;
  return undefined;
}

/** Returns the name of a pipeline job. Returns undefined if the token does not contain all claims for the name. */
function jobName(claims: TokenClaims, issuer: string): string | undefined {
  const pipeline = Object.hasOwn(PIPELINES, issuer) ? PIPELINES[issuer] : undefined;
  if (pipeline === undefined) return undefined;
  const [project, ref, id] = [pipeline.project, "ref", pipeline.job].map((name) => textClaim(claims, name));
  if (project === undefined || ref === undefined || id === undefined) return undefined;
  const place = quoted(`${project}@${ref.replace(/^refs\/heads\//, "")}`);
  return `${pipeline.provider} ${place}, ${pipeline.word} ${quoted(id)}`;
}

/**
 * Returns the name of a workload's job in the audit trail: the name of the workload, its issuer, and quoted strings
 * from the token. Only tokens of GitHub and GitLab.com are shown as jobs of these services, because tokens of other
 * issuers can contain any strings.
 */
export function actorOf(
  { name, issuer }: Pick<TrustedWorkload, "name" | "issuer">,
  claims: TokenClaims,
): string {
  const subject = quoted(textClaim(claims, "sub") ?? "");
  const job = jobName(claims, issuer) ?? `${printable(printableIssuer(issuer), ISSUER_SHOWN)} ${subject}`;
  return `${name}: ${job}`;
}
