import { describe, expect, it } from "vitest";
import { check } from "../../provider/lifecycle/lifecycle.ts";
import type { ResourceDefinition } from "../../provider/model/definition.ts";
import { firewallRule } from "../../provider/resources/firewallRule.ts";
import { definitions } from "../../provider/resources/index.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { sampleOf } from "./support/samples.ts";

const byName = new Map<string, ResourceDefinition>(
  definitions.map((definition) => [definition.name, definition]),
);

function reasonsOf(name: string, change: Record<string, unknown>): string[] {
  const definition = byName.get(name);
  if (!definition) throw new Error(`no resource ${name}`);
  const { failures } = check(definition, { ...sampleOf(definition).base, ...change });
  return failures.map(({ message }) => message);
}

const RULES: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
  ["Namespace", { name: "a.b" }, /^Namespace\.name: must be one host-name label/],
  ["Namespace", { name: "x".repeat(64) }, /^Namespace\.name: /],
  ["Namespace", { settings: { record: true } }, /^Namespace\.settings: must not have "record"$/],
  [
    "Namespace",
    { settings: { connectionAnnouncement: "x".repeat(4097) } },
    /^Namespace\.settings\.connectionAnnouncement: must have at most 4096 characters$/,
  ],
  ["Namespace", { settings: { deviceProof: "no" } }, /^Namespace\.settings\.deviceProof: must be one of opt/],
  [
    "Namespace",
    { settings: { sessionMaxMinutes: -1 } },
    /^Namespace\.settings\.sessionMaxMinutes: must be at/,
  ],
  [
    "Namespace",
    { settings: { sshForwarding: [{ login: "deploy-*", target: "^db:5432$" }] } },
    /^Namespace\.settings\.sshForwarding\.0\.login: .*not a glob/,
  ],
  [
    "Namespace",
    { settings: { sshForwarding: [{ login: "^deploy$", target: "^db:5432$", port: 1 }] } },
    /^Namespace\.settings\.sshForwarding\.0: must not have "port"$/,
  ],
  [
    "Namespace",
    { settings: { sshForwarding: Array(20).fill({ login: "[a-z]{500}", target: "^db:5432$" }) } },
    /^Namespace\.settings\.sshForwarding: must have patterns with a total size of at most 6000 /,
  ],
  ["Namespace", { forceDestroy: "yes" }, /^Namespace\.forceDestroy: must be true or false$/],
  ["Namespace", { adopt: "force" }, /^Namespace\.adopt: must be true or false, or must be overwrite$/],
  ["Member", { tenant: "mine" }, /^Member\.tenant: must be a lower-case uuid/],
  ["Member", { role: "owner" }, /^Member\.role: must be one of observer, operator, administrator$/],
  ["Member", { email: "ana" }, /^Member\.email: must be a valid email$/],
  ["TrustedWorkload", { issuer: "http://gitlab.example.com" }, /^TrustedWorkload\.issuer: /],
  [
    "TrustedWorkload",
    { issuer: "https://gitlab.example.com/?x=1" },
    /^TrustedWorkload\.issuer: must be an https/,
  ],
  [
    "TrustedWorkload",
    { issuer: "https://gitl\u0430b.com" },
    /^TrustedWorkload\.issuer: must be in the normalized form https:\/\/xn--gitlb-7ve\.com$/,
  ],
  ["TrustedWorkload", { claims: {} }, /^TrustedWorkload\.claims: must have at least one claim$/],
  ["TrustedWorkload", { claims: { "a b": "x" } }, /^TrustedWorkload\.claims/],
  [
    "TrustedWorkload",
    { claims: { ref: "" } },
    /^TrustedWorkload\.claims\.ref: must have at least 1 character$/,
  ],
  ["TrustedWorkload", { claims: { ref: true } }, /^TrustedWorkload\.claims\.ref: must be a (text|string)/],
  ["TrustedWorkload", { maxSessionMinutes: 4 }, /^TrustedWorkload\.maxSessionMinutes: must be at least 5$/],
  [
    "TrustedWorkload",
    { maxSessionMinutes: 1441 },
    /^TrustedWorkload\.maxSessionMinutes: must be at most 1440$/,
  ],
  ["TrustedWorkload", { role: "owner" }, /^TrustedWorkload\.role: must be one of observer, operator, adm/],
  ["TrustedWorkload", { name: "a b" }, /^TrustedWorkload\.name: must have 1 to 64 letters/],
  ["PublicKey", { name: "" }, /^PublicKey\.name: must have at least 1 character$/],
  ["PublicKey", { name: "x".repeat(256) }, /^PublicKey\.name: must have at most 255 characters$/],
  ["PublicKey", { username: "(" }, /^PublicKey\.username: must be a regular expression in RE2 syntax/],
  ["PublicKey", { username: "(?=x)" }, /^PublicKey\.username: must be a regular expression in RE2 syntax/],
  ["PublicKey", { username: "x".repeat(1025) }, /^PublicKey\.username: .*1024/],
  ["PublicKey", { filter: {} }, /^PublicKey\.filter: must have exactly one of hostname and tags/],
  ["PublicKey", { filter: { hostname: "a", tags: ["prod"] } }, /^PublicKey\.filter: must have exactly one/],
  ["PublicKey", { filter: { hostname: "(" } }, /^PublicKey\.filter\.hostname: must be a regular expression/],
  ["PublicKey", { filter: { tags: [] } }, /^PublicKey\.filter\.tags: must have at least 1 item$/],
  ["PublicKey", { filter: { tags: ["a b c"] } }, /^PublicKey\.filter\.tags\.0: .*letters and digits/],
  ["PublicKey", { data: "-----BEGIN OPENSSH PRIVATE KEY-----" }, /^PublicKey\.data: must be a public key/],
  ["PublicKey", { data: "ssh-ed25519 AAAA" }, /^PublicKey\.data: must contain/],
  ["FirewallRule", { action: "drop" }, /^FirewallRule\.action: must be one of allow, deny$/],
  ["FirewallRule", { priority: -1 }, /^FirewallRule\.priority: must be at least 0$/],
  ["FirewallRule", { priority: 1.5 }, /^FirewallRule\.priority: must be a whole number$/],
  ["FirewallRule", { sourceIp: "[" }, /^FirewallRule\.sourceIp: must be a regular expression in RE2 syntax/],
  ["FirewallRule", { username: "*" }, /^FirewallRule\.username: .*not a glob/],
  [
    "FirewallRule",
    { filter: { tags: ["a", "b"] } },
    /^FirewallRule\.filter\.tags\.0: must have at least 3 characters$/,
  ],
  [
    "FirewallRule",
    { sourceIp: "198.51.100.0/24" },
    /^FirewallRule\.sourceIp: A regular expression is expected, not CIDR notation\. Use `cidr\("198\.51\.100\.0\/24"\)`\.$/,
  ],
  ["FirewallRule", { sourceIp: "^10.0.0.0/8$|192.168.0.1" }, /`cidr\("10\.0\.0\.0\/8", "192\.168\.0\.1"\)`/],
  ["FirewallRule", { sourceIp: "2001:db8::/32" }, /not CIDR notation/],
  [
    "FirewallRule",
    { sourceIp: "10.0.0.1-10.0.0.9" },
    /^FirewallRule\.sourceIp: .*not a range of addresses\.$/,
  ],
  ["FirewallRule", { sourceIp: "10.0.*.*" }, /not a glob\. Use `\^10\\\.0\\\.\.\*\\\.\.\*\$`\.$/],
  ["FirewallRule", { username: "dev-*" }, /^FirewallRule\.username: .*not a glob\. Use `\^dev-\.\*\$`\.$/],
  ["PublicKey", { username: "10.0.0.0/8" }, /^PublicKey\.username: .*not CIDR notation\.$/],
  ["PublicKey", { filter: { hostname: "web-*" } }, /^PublicKey\.filter\.hostname: .*not a glob/],
  ["PublicKey", { filter: { hostname: "*" } }, /^PublicKey\.filter\.hostname: .*not a glob/],
  [
    "FirewallRule",
    { action: "deny", sourceIp: "^300\\." },
    /^FirewallRule\.sourceIp: "\^300\\\\\." matches no IP address, so the rule never denies a login$/,
  ],
  [
    "FirewallRule",
    { action: "deny", filter: { hostname: "^web 1$" } },
    /^FirewallRule\.filter\.hostname: .* matches no device name/,
  ],
  ["FirewallRule", { active: "yes" }, /^FirewallRule\.active: must be true or false$/],
  ["ApiKey", { name: "ab" }, /^ApiKey\.name: must have at least 3 characters$/],
  ["ApiKey", { name: "x".repeat(21) }, /^ApiKey\.name: must have at most 20 characters$/],
  ["ApiKey", { name: "with space" }, /^ApiKey\.name: must not contain white space/],
  ["ApiKey", { role: "root" }, /^ApiKey\.role: must be one of .*observer/],
  ["ApiKey", { validDays: 31 }, /^ApiKey\.validDays: must be one of -1, 30, 60, 90, 365$/],
  [
    "ApiKey",
    { validDays: 30, rotateBefore: 30 },
    /^ApiKey\.rotateBefore: must be less than validDays \(30\)/,
  ],
  ["ApiKey", { rotateBefore: -1 }, /^ApiKey\.rotateBefore: must be at least 0$/],
  ["ApiKey", { overlap: 91 }, /^ApiKey\.overlap: must be at most 90$/],
  ["ApiKey", { keepers: { year: 2026 } }, /^ApiKey\.keepers\.year: must be a string$/],
  ["DeviceTags", { device: "" }, /^DeviceTags\.device: /],
  ["DeviceTags", { device: "x".repeat(65) }, /^DeviceTags\.device: .*64/],
  ["DeviceTags", { tags: [] }, /^DeviceTags\.tags: must have at least 1 item$/],
  [
    "DeviceTags",
    { tags: Array.from({ length: 65 }, (_, index) => `tag${index}`) },
    /^DeviceTags\.tags: must have at most 64 items$/,
  ],
  ["DeviceTags", { tags: ["aaa", "aaa"] }, /^DeviceTags\.tags: must not repeat a tag/],
  ["DeviceTagAttachment", { tag: "no-hyphens" }, /^DeviceTagAttachment\.tag: .*letters and digits/],
  ["Device", { name: "a.b" }, /^Device\.name: may contain letters, digits/],
  ["Device", { status: "pending" }, /^Device\.status: must be one of accepted, rejected$/],
  ["Device", { onDestroy: "delete" }, /^Device\.onDestroy: must be one of keep, remove$/],
];

describe("the error of a rejected input has the resource, the field and the requirement", () => {
  it.each(RULES)("%s %j", (name, change, message) => {
    expect(reasonsOf(name, change)).toContainEqual(expect.stringMatching(message));
  });

  const fields = definitions.flatMap((definition) =>
    Object.keys(definition.inputs).map((field) => ({ type: definition.name, field })),
  );

  it.each(fields)("$type.$field with a value of the wrong type", ({ type, field }) => {
    // No input accepts a list of lists.
    const reasons = reasonsOf(type, { [field]: [[1]] });
    expect(reasons).not.toEqual([]);
    for (const reason of reasons) {
      expect(reason).toMatch(new RegExp(`^${type}\\.${field}(\\.\\w+)*: must`));
      // Errors must not contain messages of the validation library, which are written for developers of schemas.
      expect(reason).not.toMatch(/expected|received|invalid|too (small|big)|unrecognized/i);
    }
  });
});

it("accepts an allow rule that matches no address", () => {
  expect(reasonsOf("FirewallRule", { action: "allow", sourceIp: "^300\\." })).toEqual([]);
});

it("FirewallRule adopts a rule with equal inputs that no other resource manages", async () => {
  const tenant = "3dd0d1f8-8246-4519-b11a-a3dd33717f65";
  const inputs = {
    tenant,
    action: "deny" as const,
    priority: 1,
    sourceIp: ".*",
    username: "^root$",
    active: true,
    filter: { tags: ["prod", "web"] },
  };
  const changes = {
    action: "allow",
    priority: 2,
    sourceIp: "^10",
    username: "^ana$",
    active: false,
    filter: { hostname: ".*" },
  };
  const others = Object.entries(changes).map(([field, value]) => ({ ...inputs, id: field, [field]: value }));
  const equal = { ...inputs, id: "equal", filter: { tags: ["web", "prod"] } };
  const find = (rules: readonly object[], isOthers?: (id: string) => boolean) => {
    const connection = { tenant: async () => ({ tenant, listing: () => ({ all: async () => rules }) }) };
    return firewallRule.definition.find?.(connection as unknown as Connection, inputs, isOthers);
  };
  expect(await find(others)).toBeUndefined();
  expect((await find([...others, equal]))?.id).toBe(`${tenant}/equal`);
  expect(await find([equal], (id) => id === `${tenant}/equal`)).toBeUndefined();
});

describe("rejects an id of the wrong format before any request", () => {
  const connection = new Proxy({} as Connection, {
    get: (_, property) => {
      throw new Error(`connection.${String(property)} is used`);
    },
  });
  // Skipped for a Namespace, whose import also accepts a name in place of the id.
  const inNamespace = definitions.filter(({ name }) => name !== "Namespace");

  it.each(inNamespace.map((definition) => [definition.name, definition] as const))(
    "%s",
    async (_name, definition) => {
      const { example, text } = definition.id;
      const [tenant = "", ...rest] = example.split("/");
      const wrong = ["", "/", tenant, `${tenant}/`, rest.join("/"), `/${example}`];
      // Skipped for an id that ends with a name: a name may contain slashes, so a further part of the id would belong
      // to the name.
      if (!text.endsWith("/name")) wrong.push(`${example}/`, `${example}/other`, `other/${example}`);
      for (const id of wrong) {
        await expect(definition.read(connection, id, {}), id).rejects.toThrow(`id "${id}": must be ${text}`);
      }
    },
  );
});
