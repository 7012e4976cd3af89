import { githubActions, TrustedWorkload } from "@gatehouse-access/provider";

const audience = "https://gatehouse.example.com";

// Pull requests are reviewed with the role observer.
export const review = new TrustedWorkload("review", {
  ...githubActions({ repository: "acme/fleet" }),
  name: "review",
  audience,
  role: "observer",
});

// Only jobs of the protected environment on the main branch can change access.
export const deploy = new TrustedWorkload("deploy", {
  ...githubActions({ repository: "acme/fleet", environment: "production", ref: "refs/heads/main" }),
  name: "deploy",
  audience,
  role: "administrator",
});
