import { githubActions, TrustedWorkload } from "@gatehouse-access/provider";

const audience = "https://gatehouse.example.com";

// Jobs that review pull requests get the role `observer`.
export const review = new TrustedWorkload("review", {
  ...githubActions({ repository: "acme/fleet" }),
  name: "review",
  audience,
  role: "observer",
});

// Only jobs that run on the main branch in the protected environment can change access.
export const deploy = new TrustedWorkload("deploy", {
  ...githubActions({ repository: "acme/fleet", environment: "production", ref: "refs/heads/main" }),
  name: "deploy",
  audience,
  role: "administrator",
});
