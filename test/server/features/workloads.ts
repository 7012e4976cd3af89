import { expect, onTestFinished } from "vitest";
import { startIssuer, type TestIssuer } from "../../support/issuer.ts";
import { shared } from "../../support/shared.ts";
import type { Answer, TestApp, TestUser } from "../http/testApp.ts";

/** The audience of the workloads and tokens of tests. */
export const AUDIENCE = "https://gate.example.org";

/** The networks of {@link withIssuer}. */
export const LOCAL_NETWORKS = ["127.0.0.0/8"];

/** Starts an issuer for the tests of a file. This process trusts its certificate until the tests end. */
export const withIssuer = (): { readonly issuer: TestIssuer } => shared(startTrustedIssuer);

/** Starts another issuer, which this process trusts until the calling test ends. */
export async function anotherIssuer(): Promise<TestIssuer> {
  const { issuer, stop } = await startTrustedIssuer();
  onTestFinished(stop);
  return issuer;
}

async function startTrustedIssuer() {
  const issuer = await startIssuer();
  const distrust = issuer.trust();
  const stop = async () => {
    distrust();
    await issuer.stop();
  };
  return { issuer, stop };
}

/** A trusted workload that matches the job of {@link TestIssuer.github}. The test adds the issuer. */
export const JOB = {
  name: "deploy",
  audience: AUDIENCE,
  role: "administrator",
  claims: { repository: "octo-org/octo-repo", environment: "prod" },
};

/**
 * Creates a trusted workload, by default {@link JOB}. Returns its id.
 * @param more fields that are added or replaced
 */
export async function trust(user: TestUser, issuer: string, more: object = {}): Promise<string> {
  const { status, text, body } = await user.call("createTrustedWorkload", {
    body: { ...JOB, issuer, ...more },
  });
  expect(status, text).toBe(200);
  return body.id;
}

/** Exchanges a token for a session in the user's namespace. */
export const exchange = (
  app: TestApp,
  { tenant }: TestUser,
  token: string,
  nonce?: string,
): Promise<Answer> =>
  app.call("exchangeWorkloadToken", { body: { tenant, token, ...(nonce !== undefined && { nonce }) } });
