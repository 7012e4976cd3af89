import { describe, expect, test } from "vitest";
import { EngineError, type Shown, type Step } from "../../provider/engine/index.ts";
import { keyId, keyInputs, keyState, plan } from "./support/planned.ts";
import { creation, step, TENANT } from "./support/steps.ts";

const anywhere = { hostname: ".*" };

describe("a plan without the values of a step is rejected", () => {
  test.each<[string, Step, string]>([
    ["a delete", step("delete", "PublicKey", "a", { id: keyId }), "before and after the step"],
    [
      "a delete with only new values",
      step("delete", "PublicKey", "a", { id: keyId, after: keyInputs }),
      "before",
    ],
    [
      "an update without old values",
      step("update", "PublicKey", "a", { id: keyId, after: keyInputs }),
      "before",
    ],
    ["an update without new values", step("update", "PublicKey", "a", keyState), "after the step"],
    ["a replacement without new values", step("replace", "PublicKey", "a", keyState), "after the step"],
    ["a create", step("create", "PublicKey", "a", {}), "before and after the step"],
  ])("for %s", (_what, one, values) => {
    expect(() => plan(one)).toThrow(EngineError);
    expect(() => plan(one)).toThrow(`::a: the plan has no values ${values}`);
  });
});

describe("a plan with an invalid value has a finding that contains the resource and the input", () => {
  const rule = { action: "deny", active: true, priority: 1, sourceIp: ".*", username: ".*" };
  const policy = { name: "all", filter: anywhere, logins: ["*"] };
  const workload = {
    name: "deploy",
    issuer: "https://example.org",
    audience: "gatehouse",
    claims: { sub: "a" },
    role: "observer",
  };
  test.each<[string, string, string, Record<string, Shown>]>([
    ["data that is no public key", "PublicKey", "data", { ...keyInputs, data: "garbage" }],
    ["data that is no text", "PublicKey", "data", { ...keyInputs, data: 7 }],
    ["an owner that is no text", "PublicKey", "owner", { ...keyInputs, owner: 7 }],
    ["the filter null", "PublicKey", "filter", { ...keyInputs, filter: null }],
    ["a filter that is a text", "PublicKey", "filter", { ...keyInputs, filter: "web" }],
    ["a username that is a number", "PublicKey", "username", { ...keyInputs, username: 7 }],
    [
      "an account without a public key",
      "ServiceAccount",
      "data",
      { name: "ci", data: "garbage", adopt: true },
    ],
    ["the filter null", "FirewallRule", "filter", { ...rule, filter: null }],
    ["a pattern that is invalid", "FirewallRule", "username", { ...rule, username: "(", filter: anywhere }],
    ["an email that is no text", "Member", "email", { email: 7, role: "observer" }],
    ["a role that does not exist", "Member", "role", { email: "ana@example.com", role: "emperor" }],
    ["days that are no number", "ApiKey", "validDays", { name: "deploy", validDays: "x" }],
    ["the claims null", "TrustedWorkload", "claims", { ...workload, claims: null }],
    ["the tags null", "DeviceTags", "tags", { device: "web-01", tags: null }],
    ["a device that is a number", "DeviceTags", "device", { device: 7, tags: ["prod"] }],
    ["a tag that is a number", "Tag", "name", { name: 7 }],
    ["no username", "PublicKey", "username", { ...keyInputs, username: "" }],
    ["no role", "Member", "role", { email: "ana@example.com", role: "" }],
    ["a subject without a member", "AccessPolicy", "subject", { ...policy, subject: {} }],
    ["a subject that is a text", "AccessPolicy", "subject", { ...policy, subject: "all" }],
    ["the subject null", "AccessPolicy", "subject", { ...policy, subject: null }],
    ["a user that is a number", "AccessPolicy", "subject", { ...policy, subject: { user: 5 } }],
    ["settings that are a text", "Namespace", "settings", { name: "fleet", settings: "all" }],
  ])("%s, of the kind %s", (_what, kind, input, after) => {
    const id = `${TENANT}/x`;
    const changed =
      kind === "Namespace"
        ? step("update", kind, "x", { before: { outputs: { tenant: TENANT } }, id: TENANT, after })
        : creation(kind, "x", after);
    for (const one of [changed, step("same", kind, "x", { before: { outputs: {} }, id, after })])
      expect(() => plan(one)).not.toThrow();
    expect(plan(changed).notEvaluated).toEqual([
      expect.stringMatching(new RegExp(`^${kind} "x": its ${input} has an invalid value; `)),
    ]);
  });
});
