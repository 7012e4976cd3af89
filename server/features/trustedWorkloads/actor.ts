import { withoutControls } from "@gatehouse-access/sdk/errors";
import { type Claims, claimTexts } from "@gatehouse-access/sdk/policy";

/** Maximum length of an actor's name. */
const ACTOR_LENGTH = 255;

/** Returns a text of a token for output: without control characters, and shortened to a maximum length. */
export function printable(text: string, maxLength: number): string {
  const clean = withoutControls(text);
  return clean.length > maxLength ? `${clean.slice(0, maxLength - 1)}…` : clean;
}

/** Returns the first text of a claim; undefined if the claim has none. */
const textOf = (claims: Claims, name: string): string | undefined =>
  claimTexts(claims, name).find((text) => text !== "");

/** Returns the name of the job of a pipeline; undefined if the token lacks one of the claims of the name. */
function jobName(claims: Claims, provider: string, project: string, job: string, word: string) {
  const [place, ref, id] = [textOf(claims, project), textOf(claims, "ref"), textOf(claims, job)];
  if (place === undefined || ref === undefined || id === undefined) return undefined;
  return `${provider} ${place}@${ref.replace(/^refs\/heads\//, "")}, ${word} ${id}`;
}

/**
 * Returns the name of a workload's job in the audit trail. The name has the claims of GitHub Actions, GitLab CI or
 * Kubernetes; for other issuers, it has the subject and the host of the issuer.
 */
export function actorOf(claims: Claims, issuer: string): string {
  const subject = textOf(claims, "sub") ?? "unnamed workload";
  const [, namespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(subject) ?? [];
  const name =
    jobName(claims, "GitHub", "repository", "run_id", "run") ??
    jobName(claims, "GitLab", "project_path", "job_id", "job") ??
    (account === undefined ? `${subject} of ${new URL(issuer).host}` : `Kubernetes ${namespace}/${account}`);
  return printable(name, ACTOR_LENGTH);
}
