import { describe, expect, test } from "vitest";
import { githubActions, gitlabCi } from "../../provider/helpers/workloads.ts";
import { type Finding, type LintedWorkload, lintRules } from "../../sdk/policy/index.ts";
import { linted } from "./lintSubjects.ts";

type Claims = LintedWorkload["claims"];

const GITHUB = "https://token.actions.githubusercontent.com";
const GITLAB = "https://gitlab.com";
const GOOGLE = "https://accounts.google.com";
const BUILDKITE = "https://agent.buildkite.com";
const ENTRA = "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0";
const COGNITO = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_abc";
const CLUSTER = "https://oidc.example.com/cluster";
const GITLAB_SERVER = "https://gitlab.example.com";

const main = { ref: "refs/heads/main" };
const workflow = "acme/ci/.github/workflows/x.yml";

/** Claims that only tokens of pull requests have. */
const PULL_REQUESTS: readonly Claims[] = [
  { base_ref: "main" },
  { base_ref: "ma*" },
  { head_ref: "feature" },
  { event_name: "pull_request_review" },
  { event_name: "*request*" },
  { sub: "repo:acme/app:pull_request" },
  { sub: "repo:acme/app:environment:prod:event_name:pull_request" },
  { sub: "repo:acme/app:pull*" },
  { sub: "repo:acme/app:**pull_request" },
  { sub: "repo:acme/app:event_name:pull_*" },
  { sub: "repo:acme/app:ref:refs/pull/**" },
  { workflow_ref: "acme/app/.github/workflows/x.yml@refs/pu*/**" },
];

/** Returns the findings for a workload. */
const findingsOf = (issuer: string, claims: Claims, role = "operator"): Finding[] =>
  linted({}, { trustedWorkloads: [{ id: "1", name: "deploy", issuer, claims, role }] });

/** Returns the severities of the findings for a workload. */
const severities = (...workload: Parameters<typeof findingsOf>) =>
  findingsOf(...workload).map(({ rule, severity, object, field }) => {
    expect([rule, object.kind, object.id, field]).toEqual([
      "wide-workload",
      "trustedWorkload",
      "1",
      "claims",
    ]);
    expect(lintRules["wide-workload"].severities).toContain(severity);
    return severity;
  });

describe("a trusted workload", () => {
  test.each<[string, Claims]>([
    [GITHUB, { repository: "acme/fleet", ...main }],
    [`${GITHUB}/acme`, { repository: "acme/fleet", ref: "refs/tags/v1" }],
    [GITHUB, { repository_id: "74", environment: "prod" }],
    [
      GITHUB,
      { repository: "acme/fleet", repository_owner_id: "65", ref: "refs/heads/*", environment: "prod" },
    ],
    [GITHUB, { sub: "repo:acme/fleet:environment:prod" }],
    [GITHUB, { sub: "repo:acme/fleet:ref:refs/heads/main" }],
    [GITHUB, { sub: "repo:acme/fleet:*", ...main, repository: "acme/fleet" }],
    [GITHUB, { repository: "acme/fleet", job_workflow_ref: `${workflow}@refs/heads/main`, ...main }],
    [
      GITHUB,
      { repository: "acme/fleet", workflow_ref: "acme/fleet/.github/workflows/x.yml@refs/heads/main" },
    ],
    [GITHUB, { repository: "acme/fleet", environment: "prod", event_name: "p*" }],
    [GITHUB, { repository: "acme/fleet", environment: "production EU" }],
    [GITHUB, { repository: "acme/fleet", ...main, head_ref: "*", base_ref: "**" }],
    [GITHUB, { repository: "acme/fleet", ...main, sub: "repo:acme/fleet:environment:p*" }],
    [GITHUB, { sub: "repo:acme/fleet:ref:refs/heads/fix-pull_request" }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "true", pipeline_source: "*" }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "true", pipeline_source: "ex*" }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "true" }],
    [GITLAB, { project_path: "acme/sub/fleet", ref: "main", ref_type: "branch" }],
    [GITLAB, { project_id: "7", ref_path: "refs/heads/main" }],
    [GITLAB, { project_path: "acme/fleet", environment: "prod" }],
    [GITLAB, { sub: "project_path:acme/fleet:ref_type:branch:ref:main" }],
    [GOOGLE, { email: "deploy@acme-fleet.iam.gserviceaccount.com", email_verified: "true" }],
    [GOOGLE, { sub: "113774264463038321964" }],
  ])("of %s with %j has no finding, because it names owner, project and place", (issuer, claims) => {
    expect(severities(issuer, claims)).toEqual([]);
    expect(severities(issuer, claims, "observer")).toEqual([]);
  });

  test.each<[shape: string, issuer: string, claims: Claims]>([
    ["a host that starts like GitHub's", `${GITHUB}.evil.example`, { repository: "acme/fleet", ...main }],
    [
      "a user name that looks like GitHub's host",
      `https://evil.example/${GITHUB}`,
      { sub: "repo:acme/fleet:ref:refs/heads/main" },
    ],
    [
      "a path that looks like GitHub's server",
      "https://evil.example/_services/token",
      { repository: "acme/fleet", ...main },
    ],
    [
      "a host that starts like GitLab's",
      `${GITLAB}.evil.example`,
      { project_path: "acme/fleet", ref_protected: "true" },
    ],
    [
      "a Cyrillic letter in GitLab's host",
      "https://gitl\u0430b.com",
      { project_path: "acme/fleet", ref_protected: "true" },
    ],
    [
      "branches that every user can create",
      GITHUB,
      { repository: "acme/fleet", ref: "refs/heads/release-*" },
    ],
    ["tags that every user can create", GITHUB, { repository: "acme/fleet", ref: "refs/tags/v*" }],
    ["environments that every user can create", GITHUB, { repository: "acme/fleet", environment: "*prod*" }],
    [
      "all repositories of an owner, with an environment",
      GITHUB,
      { repository: "acme/**", environment: "prod" },
    ],
    ["an owner without a repository", GITHUB, { repository_owner_id: "65", environment: "prod" }],
    [
      "workflows of every owner",
      GITHUB,
      { repository: "acme/fleet", job_workflow_ref: "**@refs/heads/main" },
    ],
    [
      "the workflow of another owner",
      GITHUB,
      { repository: "acme/fleet", job_workflow_ref: "evil/ci/.github/workflows/x.yml@refs/heads/main" },
    ],
    [
      "every branch that calls a reusable workflow, with its own inputs and code",
      GITHUB,
      { repository: "acme/fleet", job_workflow_ref: `${workflow}@refs/heads/main` },
    ],
    [
      "every branch that calls a workflow of its own repository",
      GITHUB,
      {
        repository: "acme/fleet",
        job_workflow_ref: "acme/fleet/.github/workflows/x.yml@refs/heads/main",
      },
    ],
    [
      "the workflow of another repository of the owner",
      GITHUB,
      { repository: "acme/fleet", workflow_ref: `${workflow}@refs/heads/main` },
    ],
    [
      "the workflow of one of several repositories",
      GITHUB,
      { repository: "acme/*", workflow_ref: "acme/fleet/.github/workflows/x.yml@refs/heads/main" },
    ],
    ["a branch with a space", GITHUB, { repository: "acme/fleet", ref: "refs/heads/main evil" }],
    ["a branch with a line break", GITHUB, { repository: "acme/fleet", ref: "refs/heads/main\n" }],
    ["a blank environment", GITHUB, { repository: "acme/fleet", environment: " " }],
    ["an environment with a line break", GITHUB, { repository: "acme/fleet", environment: "prod\nx" }],
    ["a subject with a blank environment", GITHUB, { sub: "repo:acme/fleet:environment: " }],
    ["a blank branch of GitLab", GITLAB, { project_path: "acme/fleet", ref: " ", ref_type: "branch" }],
    ["a branch in the middle of a subject", GITHUB, { sub: "repo:acme/fleet:*:ref:refs/heads/main" }],
    ["a branch that can also be a tag", GITLAB, { project_path: "acme/fleet", ref: "main" }],
    ["all projects of a group, with an environment", GITLAB, { project_path: "acme/*", environment: "prod" }],
    [
      "environments of a project that every user can create",
      GITLAB,
      { project_path: "acme/fleet", environment: "review/*" },
    ],
    ["every Google account", GOOGLE, { email_verified: "true" }],
    ["every Google account of a domain", GOOGLE, { hd: "acme.example" }],
    ["every service account of a Google project", GOOGLE, { email: "*@acme-fleet.iam.gserviceaccount.com" }],
    [
      "every machine with a default service account",
      GOOGLE,
      { email: "7-compute@developer.gserviceaccount.com" },
    ],
    ["every Buildkite organization", BUILDKITE, { pipeline_slug: "access", build_branch: "main" }],
    [
      "a Buildkite pipeline, where the user who starts a build chooses the branch",
      BUILDKITE,
      { organization_slug: "acme", pipeline_slug: "access", build_branch: "main" },
    ],
    ["every application of an Entra ID tenant", ENTRA, { idtyp: "app" }],
    ["every user of a Cognito pool", COGNITO, { token_use: "id" }],
    ["a cluster whose operator lint does not know", CLUSTER, { sub: "system:serviceaccount:ops:sync" }],
    [
      "GitHub Enterprise Server",
      "https://github.example.com/_services/token",
      { repository: "acme/fleet", ...main },
    ],
    ["a GitLab server", GITLAB_SERVER, { project_path: "acme/fleet", environment: "prod" }],
  ])("that accepts %s is an error", (_shape, issuer, claims) => {
    expect(severities(issuer, claims)).toEqual(["error"]);
    expect(severities(issuer, claims, "administrator")).toEqual(["error"]);
  });

  test.each<[string, Claims]>([
    [GITHUB, { repository: "acme/fleet" }],
    [GITHUB, { repository: "acme/fleet", ref: "**" }],
    [GITHUB, { repository: "acme/fleet", ref: "refs/heads/**" }],
    [GITHUB, { repository: "acme/fleet", ref: "refs/**" }],
    [GITHUB, { repository: "acme/fleet", ref: "**/merge" }],
    [GITHUB, { repository: "acme/fleet", ref: "main" }],
    [GITHUB, { repository: "acme/fleet", workflow_ref: "acme/fleet/**" }],
    [GITHUB, { workflow_ref: "acme/fleet/.github/workflows/x.yml@refs/heads/main" }],
    [GITHUB, { repository: "acme/fleet", job_workflow_ref: `${workflow}*` }],
    [GITHUB, { sub: "repo:acme/fleet:ref:refs/**" }],
    [GITHUB, { repository: "acme/fleet", ref: "refs/pull/7/merge" }],
    [GITHUB, { repository: "acme/fleet", environment: "prod", event_name: "pull_request" }],
    [GITHUB, { repository: "acme/fleet", environment: "prod", event_name: "pull_*" }],
    [
      GITHUB,
      { repository: "acme/fleet", environment: "prod", workflow_ref: `${workflow}@refs/pull/*/merge` },
    ],
    ...PULL_REQUESTS.map((claims): [string, Claims] => [
      GITHUB,
      { repository: "acme/app", ref: "refs/heads/main", environment: "prod", ...claims },
    ]),
    [GITHUB, { repository: "acme/fleet", environment: "prod", ref: "refs/pul*/**" }],
    [GITHUB, { repository: "acme/fleet", job_workflow_ref: `${workflow}@**` }],
    [GITHUB, { sub: "repo:acme/fleet:*" }],
    [GITHUB, { sub: "repo:acme/fleet:environment:*" }],
    [GITHUB, { sub: "repo:acme/fleet:pull_request" }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "false" }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "*e" }],
    [GITLAB, { project_path: "acme/fleet", ref_path: "refs/merge-requests/**" }],
    [GITLAB, { project_path: "acme/fleet", environment: "prod", pipeline_source: "merge_request_event" }],
    ...["merge_request*", "merge_*", "external_pull_request_event", "*_event"].map(
      (source): [string, Claims] => [
        GITLAB,
        { project_path: "acme/fleet", ref_protected: "true", pipeline_source: source },
      ],
    ),
    [GITLAB_SERVER, { project_path: "acme/**" }],
    [GITLAB_SERVER, { project_id: "7" }],
    [CLUSTER, { sub: "*", client_id: "sync" }],
    [CLUSTER, { sub: "system:serviceaccount:ops:*" }],
    [BUILDKITE, { sub: "organization:acme:**" }],
    [BUILDKITE, { organization_slug: "acme" }],
    [ENTRA, { oid: "0ba5a7a5-0b5e-4d3a-9d0f-3d2c1f4b5a69" }],
    [ENTRA, { azp: "sync" }],
    [CLUSTER, { email: "sync@acme.example", email_verified: "true" }],
    [GOOGLE, { email: "ceo@acme.example", email_verified: "true" }],
    [GOOGLE, { email: "7-compute@developer.gserviceaccount.com" }],
  ])("of %s with %j is an error, except for an observer", (issuer, claims) => {
    expect(severities(issuer, claims)).toEqual(["error"]);
    expect(severities(issuer, claims, "observer")).toEqual([]);
  });

  test.each<[string, Claims]>([
    [GITHUB, main],
    [GITHUB, { repository: "*/fleet", ...main }],
    [GITHUB, { repository: "ac*/fleet", ...main }],
    [GITHUB, { repository: "**", ...main }],
    [GITHUB, { sub: "repo:*:ref:refs/heads/main" }],
    [GITHUB, { sub: "**" }],
    // A repository of another owner can call a reusable workflow.
    [GITHUB, { job_workflow_ref: `${workflow}@refs/heads/main` }],
    // An owner can change the format of subjects, so tokens of all owners can have these subjects.
    [GITHUB, { sub: "environment:production" }],
    [GITHUB, { sub: "ref:refs/heads/main" }],
    [GITHUB, { sub: "owner:acme:x:y", ...main }],
    [GITHUB, { repository_owner: " " }],
    [GITLAB, { ref_protected: "true" }],
    [GITLAB, { project_path: "*/fleet" }],
    [GITLAB, { sub: "ref:main" }],
    [GITLAB_SERVER, { sub: "ref:main", ref_protected: "true" }],
    [GOOGLE, { email_verified: "true" }],
    [GOOGLE, { email: "ceo@acme.example" }],
    [GOOGLE, { email: "ceo@acme.example", email_verified: "*" }],
    [GOOGLE, { email: "ceo@gserviceaccount.com.evil.example" }],
    // These claims belong to other providers.
    [GOOGLE, { project_id: "7" }],
    [GITHUB, { project_path: "acme/fleet" }],
    [BUILDKITE, { build_branch: "main" }],
    [BUILDKITE, { pipeline_slug: "access" }],
    [BUILDKITE, { sub: "organization:*:pipeline:access:**" }],
    [ENTRA, { ver: "2.0" }],
    [ENTRA, { email: "ceo@acme.example" }],
    [CLUSTER, { sub: " " }],
    [CLUSTER, { sub: "*:sync" }],
    [CLUSTER, { sub: "system:serviceaccount:*:sync" }],
    [CLUSTER, { sub: "**" }],
    [CLUSTER, { sub: "system:serviceaccount:**" }],
    [CLUSTER, { sub: "system:serviceaccount:*:*" }],
    [CLUSTER, { iss: CLUSTER, aud: "gatehouse" }],
    [ENTRA, { idtyp: "app", email_verified: "true" }],
  ])("of %s with %j accepts tokens of others, for every role", (issuer, claims) => {
    expect(severities(issuer, claims)).toEqual(["error"]);
    expect(severities(issuer, claims, "observer")).toEqual(["error"]);
  });

  test.each([
    ["GitHub", githubActions({ repository: "acme/fleet", ref: "refs/heads/main" })],
    ["a GitHub environment", githubActions({ repository: "acme/fleet", environment: "prod" })],
    [
      "a file of a GitHub repository",
      githubActions({ repository: "acme/fleet", ...main, workflow: "x.yml" }),
    ],
    [
      "a reusable workflow",
      githubActions({ repository: "acme/fleet", ...main, workflow: `${workflow}@refs/heads/main` }),
    ],
    ["GitLab", gitlabCi({ project: "acme/fleet", ref: "main" })],
    ["a GitLab tag", gitlabCi({ project: "acme/fleet", ref: "refs/tags/v1" })],
    ["protected refs of GitLab", gitlabCi({ project: "acme/fleet", refProtected: true })],
  ])("of the helper for %s has no finding", (_name, { issuer, claims }) => {
    expect(severities(issuer, claims)).toEqual([]);
  });

  test.each<[string, string, Claims, string, string]>([
    [
      "the missing parts",
      GITHUB,
      { repository: "acme/*" },
      `accepts tokens of ${GITHUB} with repository "acme/*": no required claim identifies a project and a branch, a tag or an environment without a wildcard.`,
      "Require repository, and ref or environment, without wildcards, or use the role observer.",
    ],
    [
      "the missing place",
      GITLAB,
      { project_path: "acme/fleet" },
      `accepts tokens of ${GITLAB} with project_path "acme/fleet": no required claim identifies a branch, a tag or an environment without a wildcard.`,
      "Require ref with ref_type, ref_path, ref_protected or environment, without wildcards, or use the role observer.",
    ],
    [
      "an unknown issuer, in ASCII",
      "https://gitl\u0430b.com",
      { sub: "project_path:acme/fleet:ref_type:branch:ref:main", iat: "1" },
      'accepts tokens of https://xn--gitlb-7ve.com (written as "https://gitl\\u{430}b.com") with iat "1" and sub "project_path:acme/fleet:ref_type:branch:ref:main": lint does not know the issuer, so it cannot determine which programs get matching tokens.',
      "Check who controls the issuer and these programs. Use the role observer if the workload only reads.",
    ],
  ])("has a message that contains %s", (_what, issuer, claims, message, suggestion) => {
    expect(findingsOf(issuer, claims, "administrator")).toMatchObject([
      { message: `Trusted workload "deploy" (administrator) ${message}`, suggestion },
    ]);
  });

  test("has another message after a change of its role, its issuer or a claim, so that a review reports it as new", () => {
    const messages = [
      findingsOf(CLUSTER, { sub: "a" }),
      findingsOf(CLUSTER, { sub: "a" }, "administrator"),
      findingsOf(`${CLUSTER}2`, { sub: "a" }),
      findingsOf(CLUSTER, { sub: "b" }),
    ].map(([finding]) => finding?.message);
    expect(new Set(messages).size).toBe(4);
  });
});
