import fc from "fast-check";
import { expect, test } from "vitest";
import { type LintedWorkload, unmatchedClaim } from "../../sdk/policy/index.ts";
import { workloadFindings } from "../../sdk/policy/lint/workloads.ts";

type Claims = LintedWorkload["claims"];

interface Tokens {
  readonly issuer: string;
  readonly claims: Claims;
}

const GITHUB = "https://token.actions.githubusercontent.com";
const GITLAB = "https://gitlab.com";

/** Returns true if lint accepts a workload that is an administrator. */
const passes = ({ issuer, claims }: Tokens): boolean =>
  workloadFindings([{ id: "1", name: "deploy", issuer, claims, role: "administrator" }]).length === 0;

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,5}$/);
const number = fc.integer({ min: 10, max: 99_999 }).map(String);

const together = (...parts: readonly fc.Arbitrary<Claims>[]): fc.Arbitrary<Claims> =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all));

const githubProject = fc.oneof(
  fc.tuple(name, name).map(([owner, project]): Claims => ({ repository: `${owner}/${project}` })),
  number.map((id): Claims => ({ repository_id: id })),
);
const githubRef = fc
  .tuple(fc.constantFrom("heads", "tags"), name)
  .map(([kind, ref]) => `refs/${kind}/${ref}`);
const githubPlace = fc.oneof(
  githubRef.map((ref): Claims => ({ ref })),
  name.map((environment): Claims => ({ environment })),
);

/** Workloads that lint accepts, and whose every claim is necessary. */
const minimal: fc.Arbitrary<Tokens> = fc.oneof(
  fc
    .oneof(
      together(githubProject, githubPlace),
      fc.tuple(name, name, githubRef).map(
        ([owner, project, ref]): Claims => ({
          repository: `${owner}/${project}`,
          workflow_ref: `${owner}/${project}/.github/workflows/x.yml@${ref}`,
        }),
      ),
      fc
        .tuple(
          name,
          name,
          fc.oneof(
            githubRef.map((ref) => `ref:${ref}`),
            name.map((env) => `environment:${env}`),
          ),
        )
        .map(([owner, project, place]): Claims => ({ sub: `repo:${owner}/${project}:${place}` })),
    )
    .chain((claims) =>
      fc
        .oneof(
          fc.constant(GITHUB),
          name.map((enterprise) => `${GITHUB}/${enterprise}`),
        )
        .map((issuer) => ({
          issuer,
          claims,
        })),
    ),
  fc
    .oneof(
      together(
        fc.oneof(
          fc.tuple(name, name).map(([group, project]): Claims => ({ project_path: `${group}/${project}` })),
          number.map((id): Claims => ({ project_id: id })),
        ),
        fc.oneof(
          fc.constant<Claims>({ ref_protected: "true" }),
          name.map((ref): Claims => ({ ref, ref_type: "branch" })),
          githubRef.map((ref): Claims => ({ ref_path: ref })),
          name.map((environment): Claims => ({ environment })),
        ),
      ),
      fc.tuple(name, name, name).map(
        ([group, project, ref]): Claims => ({
          sub: `project_path:${group}/${project}:ref_type:tag:ref:${ref}`,
        }),
      ),
    )
    .map((claims) => ({ issuer: GITLAB, claims })),
  fc
    .oneof(
      fc
        .tuple(name, name)
        .map(([account, project]): Claims => ({ email: `${account}@${project}.iam.gserviceaccount.com` })),
      number.map((sub): Claims => ({ sub })),
    )
    .map((claims) => ({ issuer: "https://accounts.google.com", claims })),
);

/** Changes of one character to another host, port, path or letter. */
const otherIssuer = (issuer: string): fc.Arbitrary<string> =>
  fc
    .oneof(
      fc
        .constantFrom(".evil.example", ":8443", "/", "/a/b", "@evil.example", "\n")
        .map((end) => issuer + end),
      fc.constantFrom("a", "evil.example/").map((start) => issuer.replace("https://", `https://${start}`)),
      fc
        .nat({ max: issuer.length - 1 })
        .map((place) => `${issuer.slice(0, place)}\u0430${issuer.slice(place + 1)}`),
      fc.constant(issuer.replace("https:", "http:")),
    )
    .filter((other) => other !== issuer);

/** Returns a workload that accepts more tokens, or the tokens of another issuer. */
const loosened = ({ issuer, claims }: Tokens): fc.Arbitrary<Tokens> => {
  const names = Object.keys(claims);
  const wild = fc
    .tuple(fc.constantFrom(...names), fc.constantFrom("*", "**"), fc.nat(), fc.nat())
    .map(([claim, wildcard, from, length]) => {
      const value = claims[claim] ?? "";
      const start = from % (value.length + 1);
      const end = start + (length % (value.length + 1 - start));
      return { issuer, claims: { ...claims, [claim]: value.slice(0, start) + wildcard + value.slice(end) } };
    });
  const dropped = fc.constantFrom(...names).map((claim) => {
    const { [claim]: _, ...rest } = claims;
    return { issuer, claims: rest };
  });
  return fc.oneof(
    wild,
    dropped,
    otherIssuer(issuer).map((other) => ({ issuer: other, claims })),
  );
};

test("lint rejects each workload that requires less than a workload that it accepts", {
  tags: ["long"],
}, () => {
  fc.assert(
    fc.property(
      minimal.chain((tokens) => loosened(tokens).map((looser) => [tokens, looser] as const)),
      ([tokens, looser]) => {
        expect([tokens, passes(tokens)]).toEqual([tokens, true]);
        expect([looser, passes(looser)]).toEqual([looser, false]);
      },
    ),
    { numRuns: 2_000 },
  );
});

/** Values with wildcards and exact values, as a careless or hostile program declares them. */
const githubClaims: fc.Arbitrary<Claims> = fc.dictionary(
  fc.constantFrom(
    "repository",
    "repository_owner",
    "repository_owner_id",
    "repository_id",
    "ref",
    "environment",
    "sub",
    "workflow_ref",
    "job_workflow_ref",
    "event_name",
  ),
  fc.constantFrom(
    "acme/fleet",
    "acme/*",
    "acme/**",
    "*/fleet",
    "**",
    "*",
    "acme",
    "a*",
    "65",
    "74",
    "7*",
    "refs/heads/main",
    "refs/heads/*",
    "refs/heads/ma*",
    "refs/tags/v1",
    "main",
    "prod",
    "*prod*",
    "repo:acme/fleet:ref:refs/heads/main",
    "repo:acme/fleet:*",
    "repo:acme/*:ref:refs/heads/main",
    "repo:acme/fleet:environment:prod",
    "repo:*:environment:prod",
    "repo:acme/fleet:**:refs/heads/main",
    "acme/fleet/.github/workflows/x.yml@refs/heads/main",
    "**@refs/heads/main",
    "acme/**@refs/heads/main",
    "evil/ci/.github/workflows/x.yml@refs/heads/main",
    "push",
    "pull_request*",
    "p*",
  ),
  { minKeys: 1, maxKeys: 4 },
);

interface Job {
  readonly repository: string;
  readonly ids: readonly [repository: string, owner: string];
  readonly ref: string;
  readonly environment?: string;
  readonly event?: string;
  /** The reusable workflow that the job calls. */
  readonly calls?: string;
}

/** Returns the token that GitHub issues for a job (see `test/fixtures/claims/github.json`). */
function tokenOf({ repository, ids, ref, environment, event = "push", calls }: Job): Claims {
  const own = `${repository}/.github/workflows/x.yml@${ref}`;
  return {
    repository,
    repository_id: ids[0],
    repository_owner_id: ids[1],
    ref,
    event_name: event,
    repository_owner: repository.split("/")[0] ?? "",
    workflow_ref: own,
    job_workflow_ref: calls ?? own,
    ...(environment !== undefined && { environment }),
    sub: `repo:${repository}:${environment === undefined ? (event === "pull_request" ? event : `ref:${ref}`) : `environment:${environment}`}`,
  };
}

/** Jobs that attackers control: of other owners and projects, and of branches and pull requests of the project. */
const ATTACKS: readonly Claims[] = [
  { repository: "evil/fleet", ids: ["9", "8"] as const },
  { repository: "evil/ci", ids: ["9", "8"] as const },
  { repository: "acme/toy", ids: ["75", "65"] as const },
].flatMap((foreign) =>
  ["refs/heads/main", "refs/tags/v1", "refs/pull/1/merge"].flatMap((ref) => [
    tokenOf({ ...foreign, ref }),
    tokenOf({ ...foreign, ref, environment: "prod" }),
    tokenOf({ ...foreign, ref, calls: "acme/fleet/.github/workflows/x.yml@refs/heads/main" }),
  ]),
);

const OWN = { repository: "acme/fleet", ids: ["74", "65"] as const };

const OWN_ATTACKS: readonly Claims[] = [
  ...["refs/heads/evil", "refs/heads/main-evil", "refs/heads/x/main", "refs/tags/evil"].flatMap((ref) => [
    tokenOf({ ...OWN, ref }),
    tokenOf({ ...OWN, ref, environment: "evil-prod" }),
    ...["evil/ci", "acme/fleet", "acme/ci"].map((repository) =>
      tokenOf({ ...OWN, ref, calls: `${repository}/.github/workflows/x.yml@refs/heads/main` }),
    ),
  ]),
  tokenOf({ ...OWN, ref: "refs/pull/1/merge", event: "pull_request" }),
];

test("a workload that lint accepts accepts no token of a job that attackers control", () => {
  const counts = { accepted: 0, rejected: 0 };
  fc.assert(
    fc.property(githubClaims, (claims) => {
      const isAccepted = passes({ issuer: GITHUB, claims });
      counts[isAccepted ? "accepted" : "rejected"] += 1;
      if (!isAccepted) return;
      const open = [...ATTACKS, ...OWN_ATTACKS].filter(
        (token) => unmatchedClaim(claims, token) === undefined,
      );
      expect([claims, open]).toEqual([claims, []]);
    }),
    { numRuns: 20_000 },
  );
  expect(Math.min(counts.accepted, counts.rejected)).toBeGreaterThan(50);
});
