import { describe, expect, test } from "vitest";
import { accessLines, accessSentence } from "../../provider/privileges/accessLines.ts";
import {
  changesMode,
  copiedFindings,
  limitationsOfModeChange,
} from "../../provider/privileges/modeChange.ts";
import { blockingFindings } from "../../provider/review/report/sections.ts";
import { PLAIN } from "../../provider/style.ts";
import { parseSshPublicKey, sha256Fingerprint } from "../../sdk/contract/index.ts";
import {
  type AccessKey,
  type AccessPolicy,
  type AccessRule,
  lint,
  type NamespacePolicy,
  type Principal,
} from "../../sdk/policy/index.ts";
import { accesses } from "./support/example.ts";
import { identityFixture, type NamespaceFixture, namespaceAfter } from "./support/namespace.ts";
import { namespaceReview } from "./support/namespaceReview.ts";
import { estate, keyInputs } from "./support/planned.ts";
import {
  accessDevice,
  accessKey,
  accessPolicy,
  accessRule,
  serviceAccount,
  sshKey,
  user,
} from "./support/policyObjects.ts";
import { creation, managing, planOf, step, TENANT, urnOf } from "./support/steps.ts";

const devices = ["web-1", "web-2", "db-1"].map((name) => accessDevice(name));
const key = (name: string, more: Partial<AccessKey> = {}): AccessKey =>
  accessKey(name, {
    fingerprint: `md5 ${name}`,
    sshFingerprint: `SHA256:${name}`,
    username: "^root$",
    filter: { hostname: "web" },
    ...more,
  });
const policyFor = (name: string, more: Partial<AccessPolicy> = {}): AccessPolicy =>
  accessPolicy(name, {
    id: `policy-${name}`,
    subject: { type: "user", value: `id-${name}` },
    filter: { hostname: "web" },
    ...more,
  });
const denial = accessRule("1", { username: "^root$", filter: { hostname: "db" } });

interface World {
  readonly keys?: readonly AccessKey[];
  readonly rules?: readonly AccessRule[];
  readonly principals?: readonly Principal[];
  readonly policies?: readonly AccessPolicy[];
}

/** Returns the effect of a change of the mode of a namespace whose objects stay. */
function change({ keys = [], rules = [], principals = [], policies = [] }: World, newMode = "identity") {
  const legacy: NamespacePolicy = { devices, keys, rules };
  const identity = { ...legacy, identity: { principals, policies } };
  const [old, now] = newMode === "identity" ? [legacy, identity] : [identity, legacy];
  const { before, after } = accesses(old, now);
  expect(changesMode(before, after)).toBe(true);
  const lines = accessLines(before, after);
  const found = lint(after);
  const copied = copiedFindings([before, lint(before)], [after, found], lines);
  const unanchored = found.filter(({ rule }) => rule === "unanchored-pattern");
  return {
    lines,
    sentences: lines.map((line) => accessSentence(line, PLAIN)),
    newPatterns: unanchored.filter((finding) => !copied.has(finding)).map(({ object }) => object.name),
    copiedPatterns: unanchored.filter((finding) => copied.has(finding)).map(({ object }) => object.name),
    limitations: limitationsOfModeChange(before, after, lines),
  };
}

describe("the access changes of a change of the mode", () => {
  test("omit an SSH key that keeps its access, in both directions", () => {
    const world = { keys: [key("ana")], principals: [serviceAccount("ana")], policies: [policyFor("ana")] };
    expect(change(world).sentences).toEqual([]);
    expect(change(world, "legacy").sentences).toEqual([]);
  });

  test("contain the net effect with the key and its principal", () => {
    const world = {
      keys: [key("ana"), key("ben"), key("old")],
      principals: [serviceAccount("ana"), user("ben")],
      policies: [policyFor("ana", { logins: ["deploy"] }), policyFor("ben", { filter: {} })],
    };
    const { lines, sentences } = change(world);
    expect(sentences).toEqual([
      "key ana (now service account ana) loses login root on web-1, web-2",
      "key old loses login root on web-1, web-2",
      "key ana (now service account ana) gains login deploy on web-1, web-2",
      "key ben (now user ben@example.com) gains login root on db-1",
    ]);
    expect(lines[0]).toMatchObject({
      keys: [{ fingerprint: "md5 ana" }],
      principals: [{ id: "id-ana" }],
      newMode: "identity",
      before: "allow",
      after: "deny",
    });
    expect(change(world, "legacy").sentences).toEqual([
      "key ana (before: service account ana) loses login deploy on web-1, web-2",
      "key ben (before: user ben@example.com) loses login root on db-1",
      "key ana (before: service account ana) gains login root on web-1, web-2",
      "key old gains login root on web-1, web-2",
    ]);
  });

  test("share a line for SSH keys with the same effect", () => {
    const { sentences } = change({
      keys: [key("ana"), key("ben")],
      principals: [serviceAccount("ana"), serviceAccount("ben")],
    });
    expect(sentences).toEqual([
      "2 keys ana (now service account ana) and ben (now service account ben) lose login root on web-1, web-2",
    ]);
  });

  test("contain the access of principals with other SSH keys, and of users who can approve a key", () => {
    const everyone = policyFor("all", { subject: { type: "all-members", value: "" } });
    const { sentences } = change({
      keys: [key("ana")],
      principals: [
        user("ana", { keys: [sshKey("ana"), sshKey("ana's phone")] }),
        user("ben", { keys: [] }),
        user("cleo", { keys: [], role: "observer" }),
      ],
      policies: [everyone],
    });
    expect(sentences).toEqual([
      "user ana@example.com gains login root on web-1, web-2",
      "user ben@example.com gains login root on web-1, web-2 after the approval of an SSH key",
    ]);
  });

  test("contain the loss of an SSH key that has expired for its principal", () => {
    const expired = sshKey("ana", { expiresAt: "2020-01-01T00:00:00Z" });
    const { sentences } = change({
      keys: [key("ana")],
      principals: [serviceAccount("ana", { keys: [expired] })],
      policies: [policyFor("ana")],
    });
    expect(sentences).toEqual(["key ana loses login root on web-1, web-2"]);
  });

  test("contain a new condition of the same SSH key", () => {
    const { sentences } = change({
      keys: [key("ana")],
      principals: [user("ana")],
      policies: [policyFor("ana", { requireReauth: true })],
    });
    expect(sentences).toEqual([
      "key ana (now user ana@example.com) needs a re-authentication for login root on web-1, web-2 (before: no confirmation)",
    ]);
  });

  test("do not match the keys of users that could not be read", () => {
    const { sentences } = change({
      keys: [key("ana")],
      principals: [user("ana", { keys: undefined })],
      policies: [policyFor("ana")],
    });
    expect(sentences).toEqual([
      "key ana loses login root on web-1, web-2",
      expect.stringContaining("user ana@example.com gains login root on web-1, web-2"),
    ]);
  });
});

describe("a finding about the pattern of an access policy", () => {
  const ana = { keys: [key("ana")], principals: [serviceAccount("ana")], policies: [policyFor("ana")] };

  test("is not new if the public key of the same SSH key had the pattern, in both directions", () => {
    expect(change(ana)).toMatchObject({ newPatterns: [], copiedPatterns: ["ana"] });
    expect(change(ana, "legacy")).toMatchObject({ newPatterns: [], copiedPatterns: ["ana"] });
  });

  test("is new if only the public key of another SSH key had the pattern", () => {
    const { newPatterns, copiedPatterns } = change({
      keys: [key("ana"), key("ben", { filter: { hostname: "^web-[12]$" } })],
      principals: [serviceAccount("ana"), serviceAccount("ben")],
      policies: [policyFor("ana"), policyFor("ben")],
    });
    expect([newPatterns, copiedPatterns]).toEqual([["ben"], ["ana"]]);
  });

  test("is new if the SSH key gains access", () => {
    const wider = policyFor("ana", { logins: ["root", "deploy"] });
    expect(change({ ...ana, policies: [wider] }).newPatterns).toEqual(["ana"]);
    const second = policyFor("ana", { id: "second", name: "second", filter: {} });
    expect(change({ ...ana, policies: [policyFor("ana"), second] }).newPatterns).toEqual(["ana"]);
  });

  test("is new if the policy also applies to a principal without this SSH key", () => {
    const all = policyFor("ana", { subject: { type: "role", value: "service" } });
    const { newPatterns } = change({
      ...ana,
      principals: [...ana.principals, serviceAccount("robot", { keys: [sshKey("robot")] })],
      policies: [all],
    });
    expect(newPatterns).toEqual(["ana"]);
  });

  test("is new if the policy applies to no principal", () => {
    expect(change({ ...ana, principals: [] }).newPatterns).toEqual(["ana"]);
  });

  test("is new for another pattern", () => {
    expect(change({ ...ana, policies: [policyFor("ana", { filter: { hostname: "we" } })] })).toMatchObject({
      newPatterns: ["ana"],
    });
  });

  test("is not new for a policy that denies, if a rule that denies had the pattern", () => {
    const denies = policyFor("deny-1", {
      action: "deny",
      subject: { type: "role", value: "service" },
      filter: { hostname: "db" },
    });
    const world = { ...ana, policies: [...ana.policies, denies] };
    expect(change({ ...world, rules: [denial] }).newPatterns).toEqual([]);
    expect(change({ ...world, rules: [{ ...denial, action: "allow" }] }).newPatterns).toEqual(["deny-1"]);
    expect(change({ ...world, keys: [key("ana"), key("db", { filter: { hostname: "db" } })] })).toMatchObject(
      {
        newPatterns: ["deny-1"],
      },
    );
  });
});

describe("the limitations of a change of the mode", () => {
  const PASSWORDS = expect.stringContaining("logins with the password of a device account");

  test("contain the logins with passwords", () => {
    const world = { keys: [key("ana")], principals: [serviceAccount("ana")], policies: [policyFor("ana")] };
    expect(change(world).limitations).toEqual([PASSWORDS]);
    expect(change(world, "legacy").limitations).toEqual([PASSWORDS]);
  });

  test("contain an SSH key whose other logins or devices no evaluated login distinguishes", () => {
    const world = {
      keys: [key("ana", { username: "^root" }), key("ben", { filter: { hostname: "^web-[12]$" } })],
      principals: [serviceAccount("ana"), serviceAccount("ben")],
      policies: [policyFor("ana"), policyFor("ben")],
    };
    expect(change(world).sentences).toEqual([]);
    expect(change(world).limitations).toEqual([
      PASSWORDS,
      expect.stringContaining(
        'key ana: username "^root" and filter {"hostname":"web"} become logins ["root"] and filter {"hostname":"web"} (access policy ana), but no evaluated',
      ),
      expect.stringMatching(/^key ben: .* become .*, but no evaluated/),
    ]);
    expect(change(world, "legacy").limitations[1]).toContain(
      '(access policy ana) become username "^root" and filter {"hostname":"web"}, but no evaluated',
    );
  });
});

describe("a plan that changes the mode", () => {
  const line = keyInputs.data;
  const sshFingerprint = sha256Fingerprint(parseSshPublicKey(line));
  const live = key("a", { fingerprint: parseSshPublicKey(line).fingerprint, sshFingerprint });
  const namespace: NamespaceFixture = {
    ...estate,
    apiKeys: [],
    trustedWorkloads: [],
    policy: { ...estate.policy, rules: [], keys: [live] },
    identity: identityFixture({ decides: false }),
  };
  /** Returns a plan that copies the filter of the key to an access policy, and then changes the mode. */
  const moveWith = (logins: readonly string[]) => {
    const subject = { user: "[unknown]" };
    const created = creation("AccessPolicy", "a", {
      name: "a",
      subject,
      filter: { hostname: "web" },
      logins: [...logins],
    });
    const { after } = created;
    if (!after) throw new Error("the step creates no policy");
    const references = { subject: [urnOf("ServiceAccount", "a")] };
    const switched = step("update", "Namespace", "fleet", {
      id: TENANT,
      after: { name: "fleet", settings: { sshAccessMode: "identity" } },
      before: { inputs: { name: "fleet" }, outputs: { name: "fleet", tenant: TENANT } },
    });
    return planOf(
      creation("ServiceAccount", "a", { name: "a", data: line }),
      { ...created, after: { ...after, references } },
      {
        ...switched,
        ...(switched.after && { after: { ...switched.after, dependsOn: [created.urn] } }),
      },
    );
  };
  const review = (logins: readonly string[]) => namespaceReview(namespace, moveWith(logins));

  test("has no access change and no blocking finding if it copies the patterns of the keys", async () => {
    const found = await review(["root"]);
    expect(found.access).toEqual([]);
    expect(found.lint).toMatchObject([{ rule: "unanchored-pattern", isNew: false }]);
    expect(blockingFindings(found)).toEqual([]);
  });

  test("has a blocking finding if a copied pattern gives more logins", async () => {
    const found = await review(["root", "deploy"]);
    expect(found.access?.map((one) => accessSentence(one, PLAIN))).toEqual([
      "key a (now service account a) gains login deploy on web-01, web-02",
    ]);
    expect(blockingFindings(found)).toMatchObject([{ rule: "unanchored-pattern", object: { name: "a" } }]);
  });

  test("knows the SSH keys of planned public keys", () => {
    const inputs = { ...keyInputs, name: "renamed" };
    const state = managing("PublicKey", live.fingerprint, {}, keyInputs);
    const renamed = planOf(step("update", "PublicKey", "a", { ...state, after: inputs }));
    const keysIn = (found: NamespaceFixture) => namespaceAfter(found, renamed).policy.keys;
    expect(keysIn(namespace)).toMatchObject([{ name: "renamed", sshFingerprint }]);
    // Servers without access modes have no SSH keys of principals.
    expect(keysIn({ ...namespace, identity: undefined })[0]?.sshFingerprint).toBeUndefined();
  });
});
