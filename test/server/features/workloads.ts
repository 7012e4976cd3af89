import { afterAll, beforeAll, expect } from "vitest";
import { startIssuer, type TestIssuer } from "../../support/issuer.ts";
import type { Answer, TestApp, TestUser } from "../http/testApp.ts";

/** The audience of the workloads and tokens of tests. */
export const AUDIENCE = "https://gate.example.org";

/** The networks of {@link withIssuer}. */
export const LOCAL_NETWORKS = ["127.0.0.0/8"];

/** Starts an issuer for the tests of a file. This process trusts its certificate until the tests end. */
export function withIssuer(): { readonly issuer: TestIssuer } {
  const shared = {} as { issuer: TestIssuer };
  let distrust: () => void;
  beforeAll(async () => {
    shared.issuer = await startIssuer();
    distrust = shared.issuer.trust();
  });
  afterAll(async () => {
    distrust();
    await shared.issuer.stop();
  });
  return shared;
}

/**
 * Creates a trusted workload that matches the job of {@link TestIssuer.github}. Returns its id.
 * @param more fields that are added or replaced
 */
export async function trust(user: TestUser, issuer: string, more: object = {}): Promise<string> {
  const claims = { repository: "octo-org/octo-repo", environment: "prod" };
  const workload = { name: "deploy", issuer, audience: AUDIENCE, claims, role: "administrator", ...more };
  const { status, text, body } = await user.call("createTrustedWorkload", { body: workload });
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
