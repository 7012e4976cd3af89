import type { Client } from "@gatehouse-access/sdk";
import { describe, expect, test } from "vitest";
import { connectionOf } from "../../provider/providers/instanceSettings.ts";
import { Connection } from "../../provider/service/connection.ts";

const TENANTS = ["3dd0d1f8-8246-4519-b11a-a3dd33717f65", "ba6d7e2e-0c0a-4a9c-9a55-5d5d6a1b8e01"];

/** Returns a client whose user is a member of these namespaces. */
const memberOf = (...tenants: readonly string[]) =>
  ({
    identity: async () => ({ kind: "password" }),
    async *pages() {
      yield { items: tenants.map((tenantId) => ({ tenantId, name: "home" })), total: tenants.length };
    },
  }) as unknown as Client;

const open = (inputs: Readonly<Record<string, string>>, env: NodeJS.ProcessEnv) =>
  connectionOf({ isDefault: false, inputs }, { tell: () => {} }, env, "terraform");

describe("the remedy for users of Terraform", () => {
  test.each([
    ["a missing address", () => open({}, {}), "the provider's argument url"],
    ["a missing credential", () => open({}, { GATEHOUSE_URL: "http://a.example" }), "token, or api_key"],
    [
      "a credential of another service",
      () => open({ url: "http://a.example" }, { GATEHOUSE_URL: "http://b.example", GATEHOUSE_TOKEN: "t" }),
      "provider's credentials: api_key",
    ],
    [
      "several namespaces",
      () => new Connection(memberOf(...TENANTS), { frontEnd: "terraform" }).home(),
      "the provider's argument tenant or GATEHOUSE_TENANT",
    ],
    [
      "no namespace",
      () => new Connection(memberOf(), { frontEnd: "terraform" }).home(),
      "Declare a gatehouse_namespace",
    ],
  ])("for %s refers to settings of the Terraform provider", async (_, work, remedy) => {
    const error: unknown = await (async () => work())().catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toContain(remedy);
    expect(String(error)).not.toMatch(/pulumi|gatehouse:|gatehouse up|apiKey/i);
  });
});
