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
 * A part of a program's identity that the required claims of a workload must identify, in addition to the owner of the
 * program. `project`: the project that contains the code. `place`: a branch, tag or environment that the owner can
 * protect.
 */
type Part = "project" | "place";

const PARTS: readonly Part[] = ["project", "place"];

/** A claim that identifies parts of a program. The regular expression matches only claim values without a wildcard. */
interface NamingClaim {
  readonly claim: string;
  readonly value: RegExp;
  readonly names: readonly Part[];
}

/** A provider of tokens, with the claims that show which programs get a token. */
interface Provider {
  /** Returns true for the issuers that the provider itself operates. Each pattern contains the whole URL. */
  readonly isIssuer: (issuer: string) => boolean;
  /**
   * Returns true if the claims of a workload are those of a customer's own server. Such a server has a separate issuer.
   */
  readonly isServer?: (workload: LintedWorkload) => boolean;
  /** Claims that identify the owner, even if the value also contains wildcards. */
  readonly owners: readonly (readonly [claim: string, value: RegExp])[];
  /** Returns true if several claims together identify an owner. */
  readonly namesOwner?: (claims: Claims) => boolean;
  /** Claims that identify the project and the place. A claim that identifies the project also identifies its owner. */
  readonly exact: readonly NamingClaim[];
  /** Returns true if several claims together identify a place. */
  readonly namesPlace?: (claims: Claims) => boolean;
  /**
   * The claims to require for each part, as the end of a sentence. The claim for the project also identifies the owner.
   */
  readonly require: Readonly<Record<Part, string>>;
}

const REF_NAME = "[^*:\\s]+";
const REF = `refs/(?:heads|tags)/${REF_NAME}`;
/** Matches the name of an environment. The name can contain spaces, but not at its start or end. */
const ENVIRONMENT = "[^*\\s](?:[^*\\r\\n]*[^*\\s])?";
/**
 * Matches the name of an environment in a subject. The name contains no colon, since a colon separates it from the next
 * part.
 */
const SUBJECT_ENVIRONMENT = "[^*:\\s](?:[^*:\\r\\n]*[^*:\\s])?";
const GITHUB_NAME = "[A-Za-z0-9._-]+";
const NUMBER = /^[0-9]+$/;

const exactly = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);

const GITHUB: Provider = {
  // An enterprise can have its own issuer URL, which ends with the name of the enterprise.
  isIssuer: (issuer) => /^https:\/\/token\.actions\.githubusercontent\.com(?:\/[A-Za-z0-9-]+)?$/.test(issuer),
  // The issuer URL of GitHub Enterprise Server ends with /_services/token.
  isServer: ({ issuer }) => issuer.endsWith("/_services/token"),
  owners: [
    ["repository_id", NUMBER],
    ["repository_owner_id", NUMBER],
    ["repository", /^[^/*\s]+\//],
    ["repository_owner", exactly(GITHUB_NAME)],
    // The claim `job_workflow_ref` does not identify the repository of a job, because other repositories can call a
    // reusable workflow.
    ["workflow_ref", /^[^/*\s]+\//],
    // An owner can change the format of subjects, so a subject such as `environment:production` does not identify an
    // owner.
    ["sub", /^repo:[^/*\s]+\//],
  ],
  exact: [
    { claim: "repository", value: exactly(`${GITHUB_NAME}/${GITHUB_NAME}`), names: ["project"] },
    { claim: "repository_id", value: NUMBER, names: ["project"] },
    { claim: "ref", value: exactly(REF), names: ["place"] },
    { claim: "environment", value: exactly(ENVIRONMENT), names: ["place"] },
    {
      claim: "sub",
      value: exactly(`repo:${GITHUB_NAME}/${GITHUB_NAME}:(?:ref:${REF}|environment:${SUBJECT_ENVIRONMENT})`),
      names: PARTS,
    },
  ],
  namesPlace: isGithubWorkflow,
  require: { project: "repository", place: "ref or environment" },
};

/**
 * Returns true if the claims identify a workflow file of the repository, at a branch or tag. A reusable workflow
 * (`job_workflow_ref`) is not a place. Jobs on every branch can call it with their own inputs, and can run their own
 * code after it.
 */
function isGithubWorkflow(claims: Claims): boolean {
  const file = exactly(`(${GITHUB_NAME}/${GITHUB_NAME})/\\.github/workflows/[^*@/:\\r\\n]+@${REF}`);
  const repository = file.exec(requiredValue(claims, "workflow_ref"))?.[1];
  return repository !== undefined && repository === requiredValue(claims, "repository");
}

const GITLAB_CLAIMS = ["project_path", "project_id", "namespace_path", "namespace_id", "ref_protected"];
const GITLAB_PATH = "[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+";

const GITLAB: Provider = {
  isIssuer: (issuer) => issuer === "https://gitlab.com",
  // GitLab servers have different issuers, so they are recognized by their claims.
  isServer: ({ claims }) =>
    GITLAB_CLAIMS.some((name) => Object.hasOwn(claims, name)) ||
    claims.sub?.startsWith("project_path:") === true,
  owners: [
    ["project_id", NUMBER],
    ["namespace_id", NUMBER],
    ["project_path", /^[^/*\s]+\//],
    ["namespace_path", /^[^/*\s]+(?:\/|$)/],
    ["sub", /^project_path:[^/*\s]+\//],
  ],
  exact: [
    { claim: "project_path", value: exactly(GITLAB_PATH), names: ["project"] },
    { claim: "project_id", value: NUMBER, names: ["project"] },
    { claim: "ref_path", value: exactly(REF), names: ["place"] },
    { claim: "ref_protected", value: /^true$/, names: ["place"] },
    { claim: "environment", value: exactly(ENVIRONMENT), names: ["place"] },
    { claim: "environment_protected", value: /^true$/, names: ["place"] },
    {
      claim: "sub",
      value: exactly(`project_path:${GITLAB_PATH}:ref_type:(?:branch|tag):ref:${REF_NAME}`),
      names: PARTS,
    },
  ],
  // The claim `ref_type` is required, because a branch and a tag can have the same name.
  namesPlace: ({ ref = "*", ref_type: type = "" }) =>
    exactly(REF_NAME).test(ref) && /^(?:branch|tag)$/.test(type),
  require: {
    project: "project_path",
    place: "ref with ref_type, ref_path, ref_protected or environment",
  },
};

/**
 * The address of a service account. It identifies both the project and the place: the account belongs to one project,
 * and the owner of the project decides who can use the account.
 */
const ACCOUNT = {
  value: /^[a-z0-9-]+@[a-z0-9.-]+\.iam\.gserviceaccount\.com$/,
  require: "email with the address of a service account, or sub with its number",
};

const GOOGLE: Provider = {
  isIssuer: (issuer) => issuer === "https://accounts.google.com",
  owners: [
    ["sub", NUMBER],
    // Google assigns the addresses of service accounts. For other addresses, the claim `email_verified` must show that
    // the user owns the address.
    ["email", /^[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com$/],
    ["hd", /^[^*\s]+$/],
  ],
  namesOwner: hasVerifiedAddress,
  exact: [
    { claim: "sub", value: NUMBER, names: PARTS },
    { claim: "email", value: ACCOUNT.value, names: PARTS },
  ],
  require: { project: ACCOUNT.require, place: ACCOUNT.require },
};

const PROVIDERS = [GITHUB, GITLAB, GOOGLE];

/**
 * Claims whose value a provider assigns to one program or to one customer. For an unknown issuer, lint accepts only
 * these claims. For example, the name of a branch is not sufficient, since the programs of other customers can also
 * have a branch `main`.
 */
const IDENTIFYING = [
  "sub",
  "oid",
  "appid",
  "azp",
  "client_id",
  "cid",
  "repository",
  "repository_id",
  "repository_owner",
  "repository_owner_id",
  "organization_slug",
  "organization_id",
  "pipeline_id",
  "oidc.circleci.com/project-id",
  "workspaceUuid",
  "repositoryUuid",
  "terraform_organization_id",
  "terraform_organization_name",
  "terraform_workspace_id",
  "owner_id",
];

/** Prefixes that the subjects of all programs of an issuer can have in common. */
const COMMON_STARTS = [
  "system:serviceaccount:",
  "organization:",
  "org/",
  "owner:",
  "repo:",
  "project_path:",
  "spiffe://",
  "arn:aws:iam::",
  "sc://",
];

/** Returns true if the part of the value before the first wildcard distinguishes programs. */
const identifies = (value: string): boolean => {
  const [start = ""] = value.split("*");
  return value === start ? value.trim() !== "" : !COMMON_STARTS.some((common) => common.startsWith(start));
};

/** Returns true if the claims require an e-mail address that the provider has verified. */
function hasVerifiedAddress(claims: Claims): boolean {
  return (
    requiredValue(claims, "email_verified") === "true" && /^[^*]*@[^*]+$/.test(requiredValue(claims, "email"))
  );
}

/** A name that no pattern contains as a literal. If a pattern matches this name, it matches every name. */
const ANY = "\u0001";

const matches = (pattern: string, value: string): boolean =>
  unmatchedClaim({ value: pattern }, { value }) === undefined;

/** Returns the value of a required claim. Returns an empty string if the claim is not required. */
const requiredValue = (claims: Claims, name: string): string =>
  // The value of a claim such as `constructor` must not come from the prototype.
  (Object.hasOwn(claims, name) ? claims[name] : undefined) ?? "";

/** A problem with a workload, as the end of a sentence, and a suggestion. */
interface Problem {
  readonly text: string;
  readonly suggestion: string;
}

/**
 * Returns findings for trusted workloads that accept tokens of programs that other users control. For a workload with
 * the role `observer`, the claims must identify the owner or the program. For a workload with a higher role, the issuer
 * must be one that lint supports. The claims must then identify the owner, the project, and a place that the owner can
 * protect.
 */
export function workloadFindings(workloads: readonly LintedWorkload[]): Finding[] {
  return workloads.flatMap((workload): Finding[] => {
    const { id, name, role } = workload;
    const problem = openTo(workload) ?? (role === "observer" ? undefined : unprotected(workload));
    if (problem === undefined) return [];
    // The message contains the role, the issuer and the claims, since a review blocks only on new messages.
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

/** Returns a problem if programs of other owners, or all programs of the issuer, can use the workload. */
function openTo(workload: LintedWorkload): Problem | undefined {
  const { issuer, claims } = workload;
  // Known issuers have precedence, since their claims can look like the claims of a customer's server.
  const provider =
    PROVIDERS.find(({ isIssuer }) => isIssuer(issuer)) ??
    PROVIDERS.find(({ isServer }) => isServer?.(workload));
  if (provider) {
    if (provider.owners.some(([name, value]) => value.test(requiredValue(claims, name)))) return undefined;
    if (provider.namesOwner?.(claims)) return undefined;
    return {
      text: "no required claim identifies an owner, so programs of other owners get matching tokens",
      suggestion: `Require ${provider.require.project}.`,
    };
  }
  if (IDENTIFYING.some((name) => identifies(requiredValue(claims, name)))) return undefined;
  if (hasVerifiedAddress(claims)) return undefined;
  return {
    text: "no required claim is known to identify a program, so other programs of the issuer may get matching tokens",
    suggestion:
      "Require the claim sub, or the claim of the provider that identifies the program or your organization.",
  };
}

/** Returns a problem if the claims of a workload do not identify all parts. Required for a role above `observer`. */
function unprotected({ issuer, claims }: LintedWorkload): Problem | undefined {
  const provider = PROVIDERS.find(({ isIssuer }) => isIssuer(issuer));
  if (!provider) {
    return {
      text: "lint does not know the issuer, so it cannot determine which programs get matching tokens",
      suggestion:
        "Check who controls the issuer and these programs. Use the role observer if the workload only reads.",
    };
  }
  if (isForPullRequests(claims)) {
    return {
      text: "these tokens belong to jobs of pull requests, which can change the code that runs",
      suggestion: "Require a different ref, or use the role observer.",
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
    text: `no required claim identifies ${missing.map((part) => PART_TEXTS[part]).join(" and ")} without a wildcard`,
    suggestion: `Require ${required.join(", and ")}, without wildcards, or use the role observer.`,
  };
}

const PART_TEXTS: Readonly<Record<Part, string>> = {
  project: "a project",
  place: "a branch, a tag or an environment",
};

/**
 * The values that a claim has for jobs of pull requests, and for other jobs. A pattern can match values of both kinds.
 */
interface Values {
  readonly pullRequest: readonly string[];
  readonly other: readonly string[];
}

/** Values of GitHub's claim `event_name`. */
const EVENTS: Values = {
  pullRequest: ["pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment"],
  other: ["push", "schedule", "workflow_dispatch"],
};

/** Values of GitLab's claim `pipeline_source`. */
const SOURCES: Values = {
  pullRequest: ["merge_request_event", "external_pull_request_event"],
  other: [
    "push",
    "web",
    "webide",
    "schedule",
    "api",
    "trigger",
    "pipeline",
    "parent_pipeline",
    "chat",
    "external",
    "security_orchestration_policy",
  ],
};

/** Values of the last part of GitHub's claim `sub`, after the repository. */
const CONTEXTS: Values = {
  pullRequest: ["pull_request", ...EVENTS.pullRequest.map((event) => `event_name:${event}`)],
  other: [
    `ref:refs/heads/${ANY}`,
    `ref:refs/tags/${ANY}`,
    `environment:${ANY}`,
    ...EVENTS.other.map((event) => `event_name:${event}`),
  ],
};

const PULL_REQUEST_REFS = ["refs/pull/", "refs/merge-requests/"];
const OTHER_REFS = ["refs/heads/", "refs/tags/"];

/** Returns true if a pattern matches only values of pull requests. */
const onlyPullRequests = (pattern: string, { pullRequest, other }: Values): boolean =>
  pullRequest.some((value) => matches(pattern, value)) && !other.some((value) => matches(pattern, value));

/**
 * Returns true if a pattern matches only refs of pull requests. The ref can be the whole pattern, or follow a file name
 * or the start of a subject.
 */
function onlyPullRequestRefs(pattern: string): boolean {
  const [start = ""] = (/(?:^|[@:])(refs\/.*)$/s.exec(pattern)?.[1] ?? "").split("*");
  const canBe = (kind: string) => kind.startsWith(start) || start.startsWith(kind);
  return PULL_REQUEST_REFS.some(canBe) && !OTHER_REFS.some(canBe);
}

/** Returns true if the claims require tokens of pull requests or merge requests. */
function isForPullRequests(claims: Claims): boolean {
  const value = (name: string) => requiredValue(claims, name);
  const context = /^repo:[^:]*:(.*)$/s.exec(value("sub"))?.[1] ?? "";
  return (
    ["ref", "ref_path", "workflow_ref", "job_workflow_ref", "sub"].map(value).some(onlyPullRequestRefs) ||
    // For jobs of other events, GitHub sets these claims to an empty string.
    ["head_ref", "base_ref"].map(value).some((pattern) => !matches(pattern, "")) ||
    /[*:]pull_request$/.test(value("sub")) ||
    onlyPullRequests(context, CONTEXTS) ||
    onlyPullRequests(value("event_name"), EVENTS) ||
    onlyPullRequests(value("pipeline_source"), SOURCES)
  );
}
