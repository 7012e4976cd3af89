import { unmatchedClaim } from "../workload.ts";
import { type Finding, quoted } from "./finding.ts";

/** The fields of a trusted workload that lint checks. */
export interface LintedWorkload {
  readonly id: string;
  readonly name: string;
  readonly issuer: string;
  /** The required claims by name. */
  readonly claims: Readonly<Record<string, string>>;
  readonly role: string;
}

/** Claims that tokens of every program of an issuer have. They do not identify a program. */
const COMMON = new Set(["iss", "aud", "exp", "iat", "nbf", "jti", "typ"]);

/** An issuer whose tokens the jobs of all its users get. */
interface PipelineIssuer {
  readonly is: (workload: LintedWorkload) => boolean;
  /** Ids of the owner or the repository. */
  readonly ids: readonly string[];
  /** Claims that begin with the name of the owner. `sub` has a prefix before the name. */
  readonly owned: readonly string[];
  readonly subject: string;
  /** Claims that restrict the code that runs. */
  readonly restricting: readonly string[];
  /** Parts of `sub` that restrict the code that runs. */
  readonly parts: readonly string[];
}

const GITLAB_CLAIMS = ["project_path", "project_id", "namespace_path", "namespace_id", "ref_protected"];

const ISSUERS: readonly PipelineIssuer[] = [
  {
    // GitHub Enterprise Server has the path /_services/token.
    is: ({ issuer }) =>
      issuer.startsWith("https://token.actions.githubusercontent.com") || issuer.endsWith("/_services/token"),
    ids: ["repository_id", "repository_owner_id"],
    // Other repositories can call a reusable workflow, so job_workflow_ref does not identify a repository.
    owned: ["repository", "repository_owner", "workflow_ref"],
    subject: "repo:",
    restricting: ["ref", "environment", "job_workflow_ref", "workflow_ref"],
    parts: [":ref:", ":environment:", ":job_workflow_ref:"],
  },
  {
    // GitLab servers have different issuers. The claims identify them.
    is: ({ issuer, claims }) =>
      issuer === "https://gitlab.com" ||
      GITLAB_CLAIMS.some((name) => Object.hasOwn(claims, name)) ||
      claims.sub?.startsWith("project_path:") === true,
    ids: ["project_id", "namespace_id"],
    owned: ["project_path", "namespace_path"],
    subject: "project_path:",
    restricting: ["ref", "ref_path", "ref_protected", "environment", "environment_protected"],
    parts: [":ref:"],
  },
];

const isWild = (value: string): boolean => /^[*/]*$/.test(value);

/** True if the value names the owner: the text before the first slash has no wildcard. */
const hasOwner = (value: string): boolean => value !== "" && !(value.split("/", 1)[0] ?? "").includes("*");

/** A name that no pattern contains as fixed text. A pattern that matches it matches every name. */
const ANY = "\u0001";

/** Values that a user who can create branches, tags, pull requests or jobs can choose, and the value of no protection. */
const CHOSEN = ["", "refs/heads/", "refs/tags/"]
  .flatMap((prefix) => [prefix + ANY, `${prefix}${ANY}/${ANY}`])
  .concat("refs/pull/1/merge", "refs/merge-requests/1/head", "false");

const matches = (pattern: string, value: string): boolean =>
  unmatchedClaim({ value: pattern }, { value }) === undefined;

/** Returns the part of a claim that restricts a ref or an environment. Claims of workflows have the ref after an `@`. */
function refOf(name: string, value = ""): string {
  if (!name.endsWith("workflow_ref")) return value;
  return value.includes("@") ? value.slice(value.lastIndexOf("@") + 1) : "";
}

/** True if the value restricts a ref or an environment: it matches no value that every user of the repository can choose. */
const restricts = (value: string): boolean =>
  value !== "" && !isWild(value) && !CHOSEN.some((chosen) => matches(value, chosen));

/** Returns findings for trusted workloads that accept tokens of programs that other users control. */
export function workloadFindings(workloads: readonly LintedWorkload[]): Finding[] {
  return workloads.flatMap((workload): Finding[] => {
    const { id, name, role, claims } = workload;
    const object = { kind: "trustedWorkload", id, name } as const;
    const title = `Trusted workload ${quoted(name)} (${role})`;
    const found = { rule: "wide-workload", object, field: "claims" } as const;
    const issuer = ISSUERS.find(({ is }) => is(workload));
    const open = issuer ? openTo(issuer, claims) : openToAll(claims);
    const wide = issuer && role !== "observer" ? wideFor(issuer, claims) : undefined;
    const [accepts, suggestion] = open ?? wide ?? [];
    if (accepts === undefined) return [];
    const message = `${title} accepts tokens of ${accepts}.`;
    return [{ ...found, severity: open ? "error" : "warning", message, ...(suggestion && { suggestion }) }];
  });
}

type Claims = LintedWorkload["claims"];

/** The programs whose tokens a workload accepts, and a suggestion. */
type Problem = readonly [accepts: string, suggestion: string];

/** Returns the problem that every program with a token of the issuer can use the workload. */
function openToAll(claims: Claims): Problem | undefined {
  const identifies = ([name, value]: readonly [string, string]) =>
    !COMMON.has(name) && !isWild(value) && !matches(value, `system:serviceaccount:${ANY}:${ANY}`);
  if (Object.entries(claims).some(identifies)) return undefined;
  return [
    "every program of the issuer: no required claim identifies a program",
    "Require the claim sub, or another claim that identifies the program.",
  ];
}

/** Returns the problem that every user of GitHub or GitLab can use the workload. */
function openTo({ ids, owned, subject }: PipelineIssuer, claims: Claims): Problem | undefined {
  const { sub = "" } = claims;
  const isOwned =
    ids.some((name) => !(claims[name] ?? "*").includes("*")) ||
    owned.some((name) => hasOwner(claims[name] ?? "")) ||
    (sub.startsWith(subject) ? hasOwner(sub.slice(subject.length)) : sub !== "" && !sub.includes("*"));
  if (isOwned) return undefined;
  return [
    "repositories of other owners: no required claim contains an owner without a wildcard",
    `Require ${owned[0]} with the name of the owner.`,
  ];
}

/** Returns the problem that every branch, or every pull request, can use the workload. */
function wideFor({ restricting, parts }: PipelineIssuer, claims: Claims): Problem | undefined {
  const { sub = "", event_name: event = "" } = claims;
  const isPullRequest =
    restricting.some((name) => /^refs\/(?:pull|merge-requests)\//.test(refOf(name, claims[name]))) ||
    sub.endsWith(":pull_request") ||
    event.startsWith("pull_request");
  if (isPullRequest)
    return [
      "pull requests, which can change the code that runs",
      "Require another ref, or use the role observer.",
    ];
  const isRestricted =
    restricting.some((name) => restricts(refOf(name, claims[name]))) ||
    parts.some((part) => restricts(sub.split(part).slice(1).join(part)));
  if (isRestricted) return undefined;
  const names = restricting.slice(0, 3);
  return [
    "every branch of the repository",
    `Require ${names.slice(0, -1).join(", ")} or ${names.at(-1)}, or use the role observer.`,
  ];
}
