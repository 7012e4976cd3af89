import { printableIssuer } from "../../issuer.ts";
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

type Claims = LintedWorkload["claims"];

/**
 * A part of a program's identity that the required claims of a workload must name, besides the owner of the program: the
 * project with the code, or a place that the owner can protect, such as a branch, a tag or an environment.
 */
type Part = "project" | "place";

const PARTS: readonly Part[] = ["project", "place"];

/** A claim whose value names parts. The pattern admits only values without a wildcard. */
interface NamingClaim {
  readonly claim: string;
  readonly value: RegExp;
  readonly names: readonly Part[];
}

/** A provider of tokens, with the claims by which lint finds out which programs get a token. */
interface Provider {
  /** True for the issuers of the provider itself. Each pattern contains the whole URL. */
  readonly isIssuer: (issuer: string) => boolean;
  /** True for a server of a customer, which has an issuer of its own. */
  readonly isServer?: (workload: LintedWorkload) => boolean;
  /** Claims that name the owner, also if the rest of the value has wildcards. */
  readonly owners: readonly (readonly [claim: string, value: RegExp])[];
  /** Claims that name the project and the place. A claim that names the project also names its owner. */
  readonly exact: readonly NamingClaim[];
  /** Returns true if claims name a place only together. */
  readonly namesPlace?: (claims: Claims) => boolean;
  /** The claims to require, as the end of a sentence. The claim for the project also names the owner. */
  readonly require: Readonly<Record<Part, string>>;
}

const REF = "refs/(?:heads|tags)/[^*:]+";
const GITHUB_NAME = "[A-Za-z0-9._-]+";
const NUMBER = /^[0-9]+$/;

const exactly = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);

const GITHUB: Provider = {
  // An enterprise can have its own issuer, which ends with the name of the enterprise.
  isIssuer: (issuer) => /^https:\/\/token\.actions\.githubusercontent\.com(?:\/[A-Za-z0-9-]+)?$/.test(issuer),
  // GitHub Enterprise Server has the path /_services/token.
  isServer: ({ issuer }) => issuer.endsWith("/_services/token"),
  owners: [
    ["repository_id", NUMBER],
    ["repository_owner_id", NUMBER],
    ["repository", /^[^/*]+\//],
    ["repository_owner", /^[^*]+$/],
    // Other repositories can call a reusable workflow, so job_workflow_ref does not identify a repository.
    ["workflow_ref", /^[^/*]+\//],
    ["sub", /^repo:[^/*]+\/|^(?!repo:)[^*]+$/],
  ],
  exact: [
    { claim: "repository", value: exactly(`${GITHUB_NAME}/${GITHUB_NAME}`), names: ["project"] },
    { claim: "repository_id", value: NUMBER, names: ["project"] },
    { claim: "ref", value: exactly(REF), names: ["place"] },
    { claim: "environment", value: /^[^*]+$/, names: ["place"] },
    {
      claim: "sub",
      value: exactly(`repo:${GITHUB_NAME}/${GITHUB_NAME}:(?:ref:${REF}|environment:[^*:]+)`),
      names: PARTS,
    },
  ],
  namesPlace: isGithubWorkflow,
  require: { project: "repository", place: "ref or environment" },
};

/**
 * Returns true if the claims name a workflow file at a branch or tag, and the file belongs to the owner of the
 * repository. The job then runs the code of this file, even if a job of another branch calls it.
 */
function isGithubWorkflow(claims: Claims): boolean {
  const owner = claims.repository?.split("/")[0];
  const file = exactly(`(${GITHUB_NAME})/${GITHUB_NAME}/\\.github/workflows/[^*@/:]+@${REF}`);
  return ["workflow_ref", "job_workflow_ref"].some(
    (name) => owner !== undefined && file.exec(claims[name] ?? "")?.[1] === owner,
  );
}

const GITLAB_CLAIMS = ["project_path", "project_id", "namespace_path", "namespace_id", "ref_protected"];
const GITLAB_PATH = "[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+";

const GITLAB: Provider = {
  isIssuer: (issuer) => issuer === "https://gitlab.com",
  // GitLab servers have different issuers. The claims identify them.
  isServer: ({ claims }) =>
    GITLAB_CLAIMS.some((name) => Object.hasOwn(claims, name)) ||
    claims.sub?.startsWith("project_path:") === true,
  owners: [
    ["project_id", NUMBER],
    ["namespace_id", NUMBER],
    ["project_path", /^[^/*]+\//],
    ["namespace_path", /^[^/*]+(?:\/|$)/],
    ["sub", /^project_path:[^/*]+\/|^(?!project_path:)[^*]+$/],
  ],
  exact: [
    { claim: "project_path", value: exactly(GITLAB_PATH), names: ["project"] },
    { claim: "project_id", value: NUMBER, names: ["project"] },
    { claim: "ref_path", value: exactly(REF), names: ["place"] },
    { claim: "ref_protected", value: /^true$/, names: ["place"] },
    { claim: "environment", value: /^[^*]+$/, names: ["place"] },
    { claim: "environment_protected", value: /^true$/, names: ["place"] },
    {
      claim: "sub",
      value: exactly(`project_path:${GITLAB_PATH}:ref_type:(?:branch|tag):ref:[^*:]+`),
      names: PARTS,
    },
  ],
  // A branch and a tag can have the same name.
  namesPlace: ({ ref = "*", ref_type: type = "" }) => /^[^*]+$/.test(ref) && /^(?:branch|tag)$/.test(type),
  require: {
    project: "project_path",
    place: "ref with ref_type, ref_path, ref_protected or environment",
  },
};

/** The parts that a service account names: it belongs to one project, and its owner decides who can use it. */
const ACCOUNT = {
  value: /^[a-z0-9-]+@[a-z0-9.-]+\.iam\.gserviceaccount\.com$/,
  require: "email with the address of a service account, or sub with its number",
};

const GOOGLE: Provider = {
  isIssuer: (issuer) => issuer === "https://accounts.google.com",
  owners: [
    ["sub", NUMBER],
    ["email", /^[^*]*@[^*]+$/],
    ["hd", /^[^*]+$/],
  ],
  exact: [
    { claim: "sub", value: NUMBER, names: PARTS },
    { claim: "email", value: ACCOUNT.value, names: PARTS },
  ],
  require: { project: ACCOUNT.require, place: ACCOUNT.require },
};

const PROVIDERS = [GITHUB, GITLAB, GOOGLE];

/** Claims that tokens of every program of an issuer have. They do not identify a program. */
const COMMON = new Set(["iss", "aud", "exp", "iat", "nbf", "jti", "typ", "idtyp", "token_use"]);

/** True if a value does not distinguish programs: it matches every text, or it is a switch. */
const isCommon = (value: string): boolean => /^[*/]*$/.test(value) || value === "true" || value === "false";

/** A name that no pattern contains as fixed text. A pattern that matches it matches every name. */
const ANY = "\u0001";

const matches = (pattern: string, value: string): boolean =>
  unmatchedClaim({ value: pattern }, { value }) === undefined;

/** Returns the value of a required claim; an empty text if the claim is not required. */
const requiredValue = (claims: Claims, name: string): string =>
  // A claim such as `constructor` must not be read from the prototype.
  (Object.hasOwn(claims, name) ? claims[name] : undefined) ?? "";

/** A problem of a workload, as the rest of a sentence about it, and a suggestion. */
interface Problem {
  readonly text: string;
  readonly suggestion: string;
}

/**
 * Returns findings for trusted workloads that accept tokens of programs that other users control. A workload with a
 * role above observer has no finding only if its claims name the owner, the project and a place that can be protected,
 * for an issuer whose claims are known. A workload with the role observer must only name the owner or the program.
 */
export function workloadFindings(workloads: readonly LintedWorkload[]): Finding[] {
  return workloads.flatMap((workload): Finding[] => {
    const { id, name, role } = workload;
    const problem = openTo(workload) ?? (role === "observer" ? undefined : unprotected(workload));
    if (problem === undefined) return [];
    // A review blocks on new messages. The message therefore changes with the role, the issuer and the claims.
    const message = `Trusted workload ${quoted(name)} (${role}) accepts tokens of ${tokensOf(workload)}: ${problem.text}.`;
    const object = { kind: "trustedWorkload", id, name } as const;
    const { suggestion } = problem;
    return [{ rule: "wide-workload", severity: "error", object, field: "claims", message, suggestion }];
  });
}

/** Returns the issuer and the required claims of a workload, as part of a sentence. */
function tokensOf({ issuer, claims }: LintedWorkload): string {
  const conditions = Object.entries(claims)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, value]) => `${name} ${quoted(value)}`);
  return `${printableIssuer(issuer)} with ${conditions.join(" and ")}`;
}

/** Returns the problem that programs of other owners, or all programs of the issuer, can use the workload. */
function openTo(workload: LintedWorkload): Problem | undefined {
  const { issuer, claims } = workload;
  const provider = PROVIDERS.find(({ isIssuer, isServer }) => isIssuer(issuer) || isServer?.(workload));
  if (provider) {
    if (provider.owners.some(([name, value]) => value.test(requiredValue(claims, name)))) return undefined;
    return {
      text: "no required claim names an owner, so programs of other owners have such tokens",
      suggestion: `Require ${provider.require.project}.`,
    };
  }
  const identifies = ([name, value]: readonly [string, string]) =>
    !COMMON.has(name) && !isCommon(value) && !matches(value, `system:serviceaccount:${ANY}:${ANY}`);
  if (Object.entries(claims).some(identifies)) return undefined;
  return {
    text: "no required claim identifies a program, so every program of the issuer has such tokens",
    suggestion: "Require the claim sub, or another claim that identifies the program.",
  };
}

/** Returns the problem that the claims of a workload with a role above observer do not name all parts. */
function unprotected({ issuer, claims }: LintedWorkload): Problem | undefined {
  const provider = PROVIDERS.find(({ isIssuer }) => isIssuer(issuer));
  if (!provider) {
    return {
      text: "lint does not know the issuer, so it cannot find out which programs have such tokens",
      suggestion:
        "Check who controls the issuer and these programs. Use the role observer if the workload only reads.",
    };
  }
  if (isForPullRequests(claims)) {
    return {
      text: "these are jobs of pull requests, which can change the code that runs",
      suggestion: "Require another ref, or use the role observer.",
    };
  }
  const named = new Set(
    provider.exact
      .filter(({ claim, value }) => value.test(requiredValue(claims, claim)))
      .flatMap(({ names }) => names)
      .concat(provider.namesPlace?.(claims) ? ["place"] : []),
  );
  const missing = PARTS.filter((part) => !named.has(part));
  if (missing.length === 0) return undefined;
  const required = [...new Set(missing.map((part) => provider.require[part]))];
  return {
    text: `no required claim names ${missing.map((part) => PART_TEXTS[part]).join(" and ")} without a wildcard`,
    suggestion: `Require ${required.join(", and ")}, without wildcards, or use the role observer.`,
  };
}

const PART_TEXTS: Readonly<Record<Part, string>> = {
  project: "a project",
  place: "a branch, a tag or an environment",
};

const PULL_REQUEST_EVENTS = ["pull_request", "pull_request_target"];
const OTHER_EVENTS = ["push", "schedule", "workflow_dispatch"];

/** True if the claims require tokens of pull requests or merge requests. */
function isForPullRequests(claims: Claims): boolean {
  const refs = ["ref", "ref_path", "workflow_ref", "job_workflow_ref"].map((name) =>
    requiredValue(claims, name),
  );
  const event = requiredValue(claims, "event_name");
  return (
    refs.some((ref) => /(?:^|@)refs\/(?:pull|merge-requests)\//.test(ref)) ||
    requiredValue(claims, "sub").endsWith(":pull_request") ||
    requiredValue(claims, "pipeline_source") === "merge_request_event" ||
    (PULL_REQUEST_EVENTS.some((name) => matches(event, name)) &&
      !OTHER_EVENTS.some((name) => matches(event, name)))
  );
}
