import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { Harness, type Program } from "./support/harness.ts";

// A cloud service asks people before they are members, those without an account too.

describe("a Member who is asked first", () => {
  let fleet: Fleet;
  let harness: Harness;
  beforeAll(async () => {
    fleet = await startFleet(["bob"], {
      env: { GATEHOUSE_EDITION: "cloud", GATEHOUSE_PUBLIC_URL: "https://access.example.org" },
    });
  });
  afterAll(() => fleet.stop());
  beforeEach(() => {
    harness = new Harness(fleet.env);
  });
  afterEach(() => harness.close());

  const declared = (email: string, role = "observer"): Program => ({
    it: { type: "Member", args: { email, role } },
  });
  const outputs = () => harness.state.get("it")?.outputs;
  const members = async () => {
    const { members: all } = await fleet.client.getNamespace({ params: { tenant: fleet.tenant } });
    return all.filter(({ role }) => role !== "owner");
  };

  it("is invited until the invitation is accepted; its role and its end are declared as ever", async () => {
    const program = declared("bob@example.com");
    await harness.up(program);
    expect(outputs()).toMatchObject({ status: "invited", accountEmail: "bob@example.com" });
    expect(Date.parse(String(outputs()?.expiresAt))).toBeGreaterThan(Date.now());
    expect(await harness.preview(program)).toEqual([]);
    expect(await harness.refresh()).toEqual([]);

    expect(await harness.up(declared("bob@example.com", "operator"))).toEqual(["update it"]);
    expect(await members()).toMatchObject([{ status: "pending", role: "operator" }]);

    const body = { email: "bob@example.com", role: "operator" } as const;
    const { link } = await fleet.client.generateInvitationLink({ params: { tenant: fleet.tenant }, body });
    const sig = new URL(link).searchParams.get("sig") ?? "";
    const bob = createClient({
      url: fleet.service.url,
      credential: passwordCredential({ username: "bob", password: "correct-horse" }),
    });
    await bob.acceptInvite({ params: { tenant: fleet.tenant }, body: { sig } });
    await bob.close();
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(outputs()).toMatchObject({ status: "accepted", expiresAt: "" });
    expect(await harness.preview(declared("bob@example.com", "operator"))).toEqual([]);

    await harness.up({});
    expect(await members()).toEqual([]);
  });

  it("without an account is invited too, and not asked any more where nothing declares it", async () => {
    await harness.up(declared("nobody@example.com"));
    expect(outputs()).toMatchObject({ status: "invited", accountEmail: "nobody@example.com" });
    expect(await members()).toMatchObject([{ email: "nobody@example.com", status: "pending" }]);
    await harness.up({});
    expect(await members()).toEqual([]);
  });
});
