import { describe, expect, it } from "vitest";
import {
  type GithubJobs,
  type GitlabJobs,
  githubActions,
  gitlabCi,
  type KubernetesAccount,
  kubernetes,
} from "../../provider/helpers/workloads.ts";
import { callFunction } from "../../provider/providers/terraform/providerFunctions.ts";
import { decoded, encoded, type WireValue } from "../../provider/providers/terraform/wireValues.ts";
import { trustedWorkload } from "../../provider/resources/trustedWorkload.ts";

const GITHUB = "https://token.actions.githubusercontent.com";
const repository = "acme/fleet";

describe("githubActions()", () => {
  it.each<[GithubJobs, Record<string, string>]>([
    [{ repository }, { repository }],
    [
      { repository: "acme/*", ref: "refs/tags/v*" },
      { repository: "acme/*", ref: "refs/tags/v*" },
    ],
    [
      { repository, environment: "prod", repositoryOwnerId: "65" },
      { repository, environment: "prod", repository_owner_id: "65" },
    ],
    [
      { repository, ref: "refs/heads/main", workflow: "deploy.yml" },
      {
        repository,
        ref: "refs/heads/main",
        workflow_ref: "acme/fleet/.github/workflows/deploy.yml@refs/heads/main",
      },
    ],
    [
      { repository, workflow: "acme/ci/.github/workflows/deploy.yml@refs/heads/main" },
      { repository, job_workflow_ref: "acme/ci/.github/workflows/deploy.yml@refs/heads/main" },
    ],
  ])("returns the claims of %j", (jobs, claims) => {
    expect(githubActions(jobs)).toEqual({ issuer: GITHUB, claims, singleUse: true });
    expect(trustedWorkload.definition.inputs.claims?.schema.safeParse(claims).success).toBe(true);
  });

  it.each<[object, RegExp]>([
    [{}, /repository is required/],
    [{ repository: "fleet" }, /must be owner\/name/],
    [{ repository: "acme/fleet/x" }, /must be owner\/name/],
    [{ repository: "acme/" }, /must be owner\/name/],
    [{ repository: "*/fleet" }, /cannot have a wildcard in the owner/],
    [{ repository: "ac*/fleet" }, /cannot have a wildcard in the owner/],
    [{ repository: "acme/**" }, /cannot contain \*\*/],
    [{ repository: "acme/*", environment: "prod" }, /environment cannot be combined with a wildcard/],
    [{ repository, environment: "prod-*" }, /environment cannot be combined with a wildcard/],
    [{ repository, ref: "main" }, /ref must begin with refs\/heads\//],
    [{ repository, ref: "refs/heads/*" }, /ref must begin with refs\/heads\//],
    [{ repository, ref: "refs/pull/7/merge" }, /ref must begin with refs\/heads\//],
    [{ repository, workflow: "deploy.yml" }, /together with ref/],
    [{ repository, ref: "refs/heads/main", workflow: "*.yml" }, /workflow must be the name of a file/],
    [{ repository, workflow: "acme/ci/.github/workflows/x.yml@*" }, /without wildcards/],
    [{ repository, workflow: "x.yml@refs/heads/main" }, /workflow must be owner\/name/],
    [{ repository, repositoryOwnerId: "acme" }, /must be a number/],
    [{ repository, repositoryOwnerId: 65 }, /repositoryOwnerId must be a string/],
    [{ repository, branch: "main" }, /branch is unknown; use repository, ref/],
    [{ repository, environment: "" }, /environment must be a string/],
  ])("rejects %j", (jobs, message) => {
    expect(() => githubActions(jobs as GithubJobs)).toThrow(message);
  });
});

describe("gitlabCi()", () => {
  it.each<[GitlabJobs, Record<string, string>]>([
    [{ project: "acme/ops/fleet" }, { project_path: "acme/ops/fleet" }],
    [
      { project: repository, ref: "main" },
      { project_path: repository, ref: "main", ref_type: "branch" },
    ],
    [
      { project: "acme/*", ref: "refs/tags/v*" },
      { project_path: "acme/*", ref_path: "refs/tags/v*" },
    ],
    [
      { project: repository, refProtected: true, environment: "prod" },
      { project_path: repository, ref_protected: "true", environment: "prod" },
    ],
    [{ project: repository, refProtected: false }, { project_path: repository }],
  ])("returns the claims of %j", (jobs, claims) => {
    expect(gitlabCi(jobs)).toEqual({ issuer: "https://gitlab.com", claims, singleUse: false });
  });

  it("uses the issuer of an own instance", () => {
    const issuer = "https://gitlab.example.com";
    expect(gitlabCi({ project: repository, issuer }).issuer).toBe(issuer);
  });

  it.each<[object, RegExp]>([
    [{}, /project is required/],
    [{ project: "fleet" }, /must be group\/project/],
    [{ project: "*/fleet" }, /wildcard in the first group/],
    [{ project: "acme/**" }, /cannot contain \*\*/],
    [{ project: "acme/*", environment: "prod" }, /environment cannot be combined/],
    [{ project: repository, ref: "*" }, /ref must be a branch/],
    [{ project: repository, ref: "refs/merge-requests/1/head" }, /ref must be a branch/],
    [{ project: repository, refProtected: "yes" }, /refProtected must be a boolean/],
  ])("rejects %j", (jobs, message) => {
    expect(() => gitlabCi(jobs as GitlabJobs)).toThrow(message);
  });
});

describe("kubernetes()", () => {
  const issuer = "https://oidc.example.com/cluster";

  it("returns the subject of the service account", () => {
    expect(kubernetes({ issuer, namespace: "ops", serviceAccount: "sync" })).toEqual({
      issuer,
      singleUse: false,
      claims: { sub: "system:serviceaccount:ops:sync" },
    });
  });

  it.each<[object, RegExp]>([
    [{ issuer, namespace: "ops" }, /serviceAccount is required/],
    [{ issuer, namespace: "*", serviceAccount: "sync" }, /namespace must be a name/],
    [{ issuer, namespace: "ops:a", serviceAccount: "sync" }, /namespace must be a name/],
    [{ issuer, namespace: "ops", serviceAccount: "a*" }, /serviceAccount must be a name/],
  ])("rejects %j", (account, message) => {
    expect(() => kubernetes(account as KubernetesAccount)).toThrow(message);
  });
});

describe("the functions of the Terraform provider", () => {
  const call = (name: string, values: unknown) =>
    callFunction({ name, arguments: [encoded(values)] }) as {
      readonly result?: WireValue;
      readonly error?: { readonly text: string };
    };

  it("return the same values with Terraform's names", () => {
    expect(decoded(call("github_actions", { repository, repository_owner_id: "65" }).result)).toEqual({
      issuer: GITHUB,
      claims: { repository, repository_owner_id: "65" },
      single_use: true,
    });
    // Terraform converts all values of a map to text.
    expect(
      decoded(call("gitlab_ci", { project: repository, ref_protected: "true", ref: null }).result),
    ).toMatchObject({
      claims: { project_path: repository, ref_protected: "true" },
    });
    const account = { issuer: "https://oidc.example.com", namespace: "ops", service_account: "sync" };
    expect(decoded(call("kubernetes", account).result)).toMatchObject({
      claims: { sub: "system:serviceaccount:ops:sync" },
    });
  });

  it("return errors with Terraform's names", () => {
    expect(call("github_actions", { repository, repository_owner_id: "x" }).error?.text).toBe(
      "github_actions(): repository_owner_id must be a number, such as 65",
    );
    expect(call("gitlab_ci", { project: repository, ref_protected: "yes" }).error?.text).toBe(
      "gitlab_ci(): ref_protected must be a boolean",
    );
  });
});
