/** The settings of a `TrustedWorkload` for the tokens of specific jobs or programs. */
export interface WorkloadTokens {
  /** The URL of the OpenID Connect provider. */
  readonly issuer: string;
  /** The required claims by name. */
  readonly claims: Record<string, string>;
  /** True if each token can be exchanged only once. */
  readonly singleUse: boolean;
}

/** The jobs of GitHub Actions whose tokens a workload accepts. */
export interface GithubJobs {
  /** The repository, as `owner/name`. `*` is allowed in the name only. */
  readonly repository: string;
  /** The branch or tag, such as `refs/heads/main`. `*` matches any characters except a slash. */
  readonly ref?: string;
  /** The environment of the job. Protect the environment in the settings of the repository. */
  readonly environment?: string;
  /**
   * The workflow that contains the job. This is a file of the repository, such as `deploy.yml`, or a reusable workflow,
   * such as `acme/ci/.github/workflows/deploy.yml@refs/heads/main`. A file of the repository requires `ref`. With a
   * reusable workflow, also set `ref` or `environment`, because a job on any branch can call the workflow with inputs
   * of its choice.
   */
  readonly workflow?: string;
  /**
   * The numeric id of the owner. If the name later belongs to a different owner, the tokens of that owner do not match.
   */
  readonly repositoryOwnerId?: string;
}

/**
 * Returns the settings for tokens of GitHub Actions. For a role above `observer`, set `ref` or `environment`, and do
 * not use wildcards.
 * @example new TrustedWorkload("deploy", { ...githubActions({ repository: "acme/fleet", environment: "prod" }), … })
 * @throws TypeError if the values also match repositories of other owners, or environments of other repositories
 */
export function githubActions(jobs: GithubJobs): WorkloadTokens {
  const options = ["ref", "environment", "workflow", "repositoryOwnerId"] as const;
  const refuse = refuser("githubActions", jobs, ["repository"], options);
  const { repository, ref, environment, workflow, repositoryOwnerId } = jobs;
  const [owner = "", ...names] = repository.split("/");
  if (owner === "" || names.length !== 1 || names[0] === "")
    refuse("repository", "must be owner/name, such as acme/fleet");
  if (owner.includes("*")) refuse("repository", "cannot have a wildcard in the owner");
  if (environment !== undefined && `${repository}${environment}`.includes("*"))
    refuse(
      "environment",
      "cannot be combined with a wildcard, because other repositories can create environments",
    );
  if (ref !== undefined && !/^refs\/(?:heads|tags)\/[^*]/.test(ref))
    refuse("ref", "must begin with refs/heads/ or refs/tags/ and a name, such as refs/heads/main");
  if (repositoryOwnerId !== undefined && !/^[0-9]+$/.test(repositoryOwnerId))
    refuse("repositoryOwnerId", "must be a number, such as 65");
  const isReusable = workflow?.includes("@") ?? false;
  if (isReusable && (!workflow?.includes("/.github/workflows/") || workflow.includes("*")))
    refuse("workflow", "must be owner/name/.github/workflows/file@ref, without wildcards");
  if (workflow !== undefined && !isReusable && (ref === undefined || /[*/]/.test(workflow)))
    refuse("workflow", "must be the name of a file, such as deploy.yml, together with ref");
  const file = workflow && `${repository}/.github/workflows/${workflow}@${ref}`;
  const claims = withValues({
    repository,
    repository_owner_id: repositoryOwnerId,
    ref,
    environment,
    ...(isReusable ? { job_workflow_ref: workflow } : { workflow_ref: file }),
  });
  return { issuer: "https://token.actions.githubusercontent.com", claims, singleUse: true };
}

/** The jobs of GitLab CI whose tokens a workload accepts. */
export interface GitlabJobs {
  /** The project, as `group/project` or `group/subgroup/project`. `*` is not allowed in the first group. */
  readonly project: string;
  /** The branch, such as `main`, or the branch or tag with its path, such as `refs/tags/v1`. */
  readonly ref?: string;
  /** True to accept only jobs on protected branches and tags. */
  readonly refProtected?: boolean;
  /** The environment of the job. */
  readonly environment?: string;
  /** The URL of the GitLab instance. @default "https://gitlab.com" */
  readonly issuer?: string;
}

/**
 * Returns the settings for tokens of GitLab CI. For a role above `observer`, set `ref`, `refProtected` or
 * `environment`, and do not use wildcards.
 * @example new TrustedWorkload("deploy", { ...gitlabCi({ project: "acme/fleet", refProtected: true }), … })
 * @throws TypeError if the values also match projects of other groups, or environments of other projects
 */
export function gitlabCi(jobs: GitlabJobs): WorkloadTokens {
  const refuse = refuser("gitlabCi", jobs, ["project"], ["ref", "refProtected", "environment", "issuer"]);
  const { project, ref, refProtected = false, environment, issuer = "https://gitlab.com" } = jobs;
  const [group = "", ...names] = project.split("/");
  if (group === "" || names.length === 0 || names.includes(""))
    refuse("project", "must be group/project, such as acme/fleet");
  if (group.includes("*")) refuse("project", "cannot have a wildcard in the first group");
  if (environment !== undefined && `${project}${environment}`.includes("*"))
    refuse(
      "environment",
      "cannot be combined with a wildcard, because other projects can create environments",
    );
  const isPath = ref?.startsWith("refs/") ?? false;
  if (ref !== undefined && !(isPath ? /^refs\/(?:heads|tags)\/[^*]/ : /^[^*]/).test(ref))
    refuse("ref", "must be a branch such as main, or begin with refs/heads/ or refs/tags/ and a name");
  const claims = withValues({
    project_path: project,
    ...(isPath ? { ref_path: ref } : { ref, ref_type: ref && "branch" }),
    ref_protected: refProtected ? "true" : undefined,
    environment,
  });
  return { issuer, claims, singleUse: false };
}

/** The service account of a Kubernetes cluster whose tokens a workload accepts. */
export interface KubernetesAccount {
  /** The issuer URL of service account tokens, as configured in the cluster. */
  readonly issuer: string;
  /** The Kubernetes namespace of the account. */
  readonly namespace: string;
  /** The name of the account. */
  readonly serviceAccount: string;
}

/**
 * Returns the settings for projected tokens of a Kubernetes service account. For a role above `observer`, a review
 * reports a finding, because lint cannot recognize the issuer of a cluster.
 * @example new TrustedWorkload("sync", { ...kubernetes({ issuer, namespace: "ops", serviceAccount: "sync" }), … })
 * @throws TypeError if the namespace or the service account is not a name
 */
export function kubernetes(account: KubernetesAccount): WorkloadTokens {
  const refuse = refuser("kubernetes", account, ["issuer", "namespace", "serviceAccount"], []);
  const { issuer, namespace, serviceAccount } = account;
  for (const field of ["namespace", "serviceAccount"] as const)
    if (!/^[a-z0-9.-]+$/.test(account[field]))
      refuse(field, "must be a name of lower-case letters, digits, hyphens and dots, without wildcards");
  return {
    issuer,
    claims: { sub: `system:serviceaccount:${namespace}:${serviceAccount}` },
    singleUse: false,
  };
}

/** Checks values from JavaScript or Terraform. Returns a function that throws an error for a field. */
function refuser<V extends object>(
  helper: string,
  values: V,
  required: readonly (keyof V & string)[],
  options: readonly (keyof V & string)[],
) {
  const refuse = (field: string, rule: string): never => {
    throw new TypeError(`${helper}(): ${field} ${rule}`);
  };
  const fields: readonly string[] = [...required, ...options];
  for (const field of required) if (values[field] === undefined) refuse(field, "is required");
  for (const [field, value] of Object.entries(values)) {
    if (!fields.includes(field)) refuse(field, `is unknown; use ${fields.join(", ")}`);
    const type = field === "refProtected" ? "boolean" : "string";
    if (value !== undefined && (typeof value !== type || value === "")) refuse(field, `must be a ${type}`);
    if (String(value).includes("**")) refuse(field, "cannot contain **, which also matches slashes");
  }
  return refuse;
}

/** Returns the token claims that have a value. */
const withValues = (claims: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(claims).flatMap(([name, value]) => (value ? [[name, value]] : [])));
