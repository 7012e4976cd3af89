import { describe, expect, test } from "vitest";
import { type LintedWorkload, lintRules } from "../../sdk/policy/index.ts";
import { linted } from "./lintSubjects.ts";

const GITHUB = "https://token.actions.githubusercontent.com";
const GITLAB = "https://gitlab.com";
const OTHER = "https://oidc.example.com/cluster";

/** Returns the severities of the findings for a workload. */
const severities = (issuer: string, claims: LintedWorkload["claims"], role = "operator") =>
  linted({}, { trustedWorkloads: [{ id: "1", name: "deploy", issuer, claims, role }] }).map(
    ({ rule, severity, object, field }) => {
      expect([rule, object.kind, object.id, field]).toEqual([
        "wide-workload",
        "trustedWorkload",
        "1",
        "claims",
      ]);
      expect(lintRules["wide-workload"].severities).toContain(severity);
      return severity;
    },
  );

const main = { ref: "refs/heads/main" };

describe("a trusted workload", () => {
  test.each<[string, LintedWorkload["claims"]]>([
    [GITHUB, { repository: "acme/fleet", ...main }],
    [GITHUB, { repository: "acme/*", ref: "refs/heads/release-*" }],
    [GITHUB, { repository_owner_id: "65", environment: "prod" }],
    [GITHUB, { sub: "repo:acme/fleet:environment:prod" }],
    [GITHUB, { sub: "repo:acme/fleet:ref:refs/heads/main" }],
    [GITHUB, { sub: "owner:acme:x:y", ...main }],
    [
      GITHUB,
      { repository: "acme/fleet", job_workflow_ref: "acme/ci/.github/workflows/x.yml@refs/heads/main" },
    ],
    ["https://github.example.com/_services/token", { repository: "acme/fleet", ...main }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "true" }],
    [GITLAB, { sub: "project_path:acme/fleet:ref_type:branch:ref:main" }],
    ["https://gitlab.example.com", { project_path: "acme/fleet", environment: "prod" }],
    [OTHER, { sub: "system:serviceaccount:ops:sync" }],
    [OTHER, { sub: "*", client_id: "sync" }],
  ])("of %s with %j has no finding", (issuer, claims) => {
    expect(severities(issuer, claims)).toEqual([]);
  });

  test.each<[string, LintedWorkload["claims"]]>([
    [GITHUB, { repository: "acme/fleet" }],
    [GITHUB, { repository: "acme/fleet", ref: "**" }],
    [GITHUB, { repository: "acme/fleet", ref: "refs/heads/**" }],
    [GITHUB, { repository: "acme/fleet", ref: "refs/**" }],
    [GITHUB, { repository: "acme/fleet", ref: "refs/heads/*/*" }],
    [GITHUB, { repository: "acme/fleet", ref: "**/merge" }],
    [GITHUB, { repository: "acme/fleet", workflow_ref: "acme/fleet/**" }],
    [GITHUB, { repository: "acme/fleet", job_workflow_ref: "acme/ci/.github/workflows/x.yml*" }],
    [GITHUB, { sub: "repo:acme/fleet:ref:refs/**" }],
    [GITHUB, { repository: "acme/fleet", ref: "refs/pull/7/merge" }],
    [GITHUB, { repository: "acme/fleet", environment: "prod", event_name: "pull_request" }],
    [
      GITHUB,
      { repository: "acme/fleet", workflow_ref: "acme/fleet/.github/workflows/x.yml@refs/pull/*/merge" },
    ],
    [GITHUB, { repository: "acme/fleet", job_workflow_ref: "acme/ci/.github/workflows/x.yml@**" }],
    [GITHUB, { sub: "repo:acme/fleet:*" }],
    [GITHUB, { sub: "repo:acme/fleet:environment:*" }],
    [GITHUB, { sub: "repo:acme/fleet:pull_request" }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "false" }],
    [GITLAB, { project_path: "acme/fleet", ref_protected: "*e" }],
    [GITLAB, { project_path: "acme/fleet", ref_path: "refs/merge-requests/**" }],
    ["https://gitlab.example.com", { project_path: "acme/**" }],
    ["https://gitlab.example.com", { project_id: "7" }],
    ["https://gitlab.example.com", { sub: "project_path:acme/fleet:*" }],
  ])("of %s with %j is wide, except for an observer", (issuer, claims) => {
    expect(severities(issuer, claims)).toEqual(["warning"]);
    expect(severities(issuer, claims, "observer")).toEqual([]);
  });

  test.each<[string, LintedWorkload["claims"]]>([
    [GITHUB, main],
    [GITHUB, { repository: "*/fleet", ...main }],
    [GITHUB, { repository: "ac*/fleet", ...main }],
    [GITHUB, { repository: "**", ...main }],
    [GITHUB, { sub: "repo:*:ref:refs/heads/main" }],
    [GITHUB, { sub: "**" }],
    // A repository of another owner can call a reusable workflow.
    [GITHUB, { job_workflow_ref: "acme/ci/.github/workflows/x.yml@refs/heads/main" }],
    [GITLAB, { ref_protected: "true" }],
    [GITLAB, { project_path: "*/fleet" }],
    [OTHER, { sub: "**" }],
    [OTHER, { sub: "system:serviceaccount:**" }],
    [OTHER, { sub: "system:serviceaccount:*:*" }],
    [OTHER, { iss: OTHER, aud: "gatehouse" }],
  ])("of %s with %j accepts tokens of others, for every role", (issuer, claims) => {
    expect(severities(issuer, claims)).toEqual(["error"]);
    expect(severities(issuer, claims, "observer")).toEqual(["error"]);
  });

  test("has a message with its role and a suggestion", () => {
    const trustedWorkloads = [
      {
        id: "1",
        name: "deploy",
        issuer: GITHUB,
        claims: { repository: "acme/fleet" },
        role: "administrator",
      },
    ];
    expect(linted({}, { trustedWorkloads })).toMatchObject([
      {
        message:
          'Trusted workload "deploy" (administrator) accepts tokens of every branch of the repository.',
        suggestion: "Require ref, environment or job_workflow_ref, or use the role observer.",
      },
    ]);
  });
});
