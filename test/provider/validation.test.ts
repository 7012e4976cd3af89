import { describe, expect, it } from "vitest";
import { check } from "../../provider/lifecycle/checkInputs.ts";
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

/** Rejected inputs of each resource, with the error, which begins with the resource and the field. */
const REJECTED: Readonly<Record<string, readonly (readonly [Record<string, unknown>, RegExp])[]>> = {
  Namespace: [
    [{ name: "a.b" }, /^name must be one host-name label/],
    [{ name: "x".repeat(64) }, /^name /],
    [{ settings: { record: true } }, /^settings must not have "record"\.$/],
    [
      { settings: { connectionAnnouncement: "x".repeat(4097) } },
      /^settings\.connectionAnnouncement must have at most 4096 characters\.$/,
    ],
    [{ settings: { deviceProof: "no" } }, /^settings\.deviceProof must be one of opt/],
    [{ settings: { sessionMaxMinutes: -1 } }, /^settings\.sessionMaxMinutes must be at/],
    [
      { settings: { sshForwarding: [{ login: "deploy-*", target: "^db:5432$" }] } },
      /^settings\.sshForwarding\.0\.login: .*not a glob/,
    ],
    [
      { settings: { sshForwarding: [{ login: "^deploy$", target: "^db:5432$", port: 1 }] } },
      /^settings\.sshForwarding\.0 must not have "port"\.$/,
    ],
    [
      { settings: { sshForwarding: Array(20).fill({ login: "[a-z]{500}", target: "^db:5432$" }) } },
      /^settings\.sshForwarding must have patterns with a total size of at most 6000 /,
    ],
    [{ forceDestroy: "yes" }, /^forceDestroy must be true or false\.$/],
    [{ adopt: "force" }, /^adopt must be true or false, or must be overwrite\.$/],
  ],
  Member: [
    [
      { tenant: "mine" },
      /^tenant must be a lower-case uuid, the id of a namespace\. Run gatehouse namespace list, which prints the ids\.$/,
    ],
    [{ role: "owner" }, /^role must be one of observer, operator, administrator\.$/],
    [{ email: "ana" }, /^email must be an e-mail address such as ana@example\.com\.$/],
  ],
  TrustedWorkload: [
    [{ issuer: "http://gitlab.example.com" }, /^issuer /],
    [{ issuer: "https://gitlab.example.com/?x=1" }, /^issuer must be an https/],
    [
      { issuer: "https://gitl\u0430b.com" },
      /^issuer must be in the normalized form https:\/\/xn--gitlb-7ve\.com\.$/,
    ],
    [{ claims: {} }, /^claims must have at least one claim\.$/],
    [{ claims: { "a b": "x" } }, /^claims/],
    [{ claims: { ref: "" } }, /^claims\.ref must have at least 1 character\.$/],
    [{ claims: { ref: true } }, /^claims\.ref must be a (text|string)/],
    [{ maxSessionMinutes: 4 }, /^maxSessionMinutes must be at least 5\.$/],
    [{ maxSessionMinutes: 1441 }, /^maxSessionMinutes must be at most 1440\.$/],
    [{ role: "owner" }, /^role must be one of observer, operator, adm/],
    [{ name: "a b" }, /^name must have 1 to 64 letters/],
  ],
  PublicKey: [
    [{ name: "" }, /^name must have at least 1 character\.$/],
    [{ name: "x".repeat(256) }, /^name must have at most 255 characters\.$/],
    [{ username: "(" }, /^username must be a regular expression in RE2 syntax/],
    [{ username: "(?=x)" }, /^username must be a regular expression in RE2 syntax/],
    [{ username: "x".repeat(1025) }, /^username .*1024/],
    [{ username: "10.0.0.0/8" }, /^username: .*not CIDR notation\.$/],
    [{ filter: {} }, /^filter must have exactly one of hostname and tags/],
    [{ filter: { hostname: "a", tags: ["prod"] } }, /^filter must have exactly one/],
    [{ filter: { hostname: "(" } }, /^filter\.hostname must be a regular expression/],
    [{ filter: { hostname: "web-*" } }, /^filter\.hostname: .*not a glob/],
    [{ filter: { hostname: "*" } }, /^filter\.hostname: .*not a glob/],
    [{ filter: { tags: [] } }, /^filter\.tags must have at least 1 item\.$/],
    [{ filter: { tags: ["a b c"] } }, /^filter\.tags has an invalid item: "a b c" may .*letters and digits/],
    [{ data: "-----BEGIN OPENSSH PRIVATE KEY-----" }, /^data must be a public key/],
    [{ data: "ssh-ed25519 AAAA" }, /^data must contain/],
  ],
  FirewallRule: [
    [{ action: "drop" }, /^action must be one of allow, deny\.$/],
    [{ priority: -1 }, /^priority must be at least 0\.$/],
    [{ priority: 1.5 }, /^priority must be a whole number\.$/],
    [{ sourceIp: "[" }, /^sourceIp must be a regular expression in RE2 syntax/],
    [{ username: "*" }, /^username: .*not a glob/],
    [
      { filter: { tags: ["a", "b", "web"] } },
      /^filter\.tags has invalid items: "a" must have at least 3 characters; "b" must have at least 3 characters\.$/,
    ],
    [
      { sourceIp: "198.51.100.0/24" },
      /^sourceIp: A regular expression is expected, not CIDR notation\. Use `cidr\("198\.51\.100\.0\/24"\)`\.$/,
    ],
    [{ sourceIp: "^10.0.0.0/8$|192.168.0.1" }, /`cidr\("10\.0\.0\.0\/8", "192\.168\.0\.1"\)`/],
    [{ sourceIp: "2001:db8::/32" }, /not CIDR notation/],
    [{ sourceIp: "10.0.0.1-10.0.0.9" }, /^sourceIp: .*not a range of addresses\.$/],
    [{ sourceIp: "10.0.*.*" }, /not a glob\. Use `\^10\\\.0\\\.\.\*\\\.\.\*\$`\.$/],
    [{ username: "dev-*" }, /^username: .*not a glob\. Use `\^dev-\.\*\$`\.$/],
    [
      { action: "deny", sourceIp: "^300\\." },
      /^sourceIp: "\^300\\\\\." matches no IP address, so the rule never denies a login\.$/,
    ],
    [{ action: "deny", filter: { hostname: "^web 1$" } }, /^filter\.hostname: .* matches no device name/],
    [{ active: "yes" }, /^active must be true or false\.$/],
  ],
  ApiKey: [
    [{ name: "ab" }, /^name must have at least 3 characters\.$/],
    [{ name: "x".repeat(21) }, /^name must have at most 20 characters\.$/],
    [{ name: "with space" }, /^name must not contain white space/],
    [{ role: "root" }, /^role must be one of .*observer/],
    [{ validDays: 31 }, /^validDays must be one of -1, 30, 60, 90, 365\.$/],
    [{ validDays: 30, rotateBefore: 30 }, /^rotateBefore must be less than validDays \(30\)/],
    [{ rotateBefore: -1 }, /^rotateBefore must be at least 0\.$/],
    [{ overlap: 91 }, /^overlap must be at most 90\.$/],
    [{ keepers: { year: 2026 } }, /^keepers\.year must be a string\.$/],
  ],
  DeviceTags: [
    [{ device: "" }, /^device /],
    [{ device: "x".repeat(65) }, /^device .*64/],
    [{ tags: [] }, /^tags must have at least 1 item\.$/],
    [
      { tags: Array.from({ length: 65 }, (_, index) => `tag${index}`) },
      /^tags must have at most 64 items\.$/,
    ],
    [{ tags: ["aaa", "aaa"] }, /^tags must not repeat a tag/],
  ],
  DeviceTagAttachment: [[{ tag: "no-hyphens" }, /^tag .*letters and digits/]],
  Device: [
    [{ name: "a.b" }, /^name may contain letters, digits/],
    [{ status: "pending" }, /^status must be one of accepted, rejected\.$/],
    [{ onDestroy: "delete" }, /^onDestroy must be one of keep, remove\.$/],
  ],
};

describe("the error of a rejected input has the resource, the field and the requirement", () => {
  const rejected = Object.entries(REJECTED).flatMap(([type, rows]) =>
    rows.map((row) => [type, ...row] as const),
  );
  it.each(rejected)("%s %j", (type, change, message) => {
    const [, ...texts] = reasonsOf(type, change)
      .join("\n")
      .split(new RegExp(`(?:^|\\n)${type}\\.`));
    expect(texts).toContainEqual(expect.stringMatching(message));
  });

  const fields = definitions.flatMap((definition) =>
    Object.keys(definition.inputs).map((field) => ({ type: definition.name, field })),
  );

  it.each(fields)("$type.$field with a value of the wrong type", ({ type, field }) => {
    // No input accepts a list of lists.
    const reasons = reasonsOf(type, { [field]: [[1]] });
    expect(reasons).not.toEqual([]);
    for (const reason of reasons) {
      expect(reason).toMatch(new RegExp(`^${type}\\.${field}(\\.\\w+)* must`));
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
        await expect(definition.read(connection, id, {}), id).rejects.toThrow(`id "${id}" must be ${text}`);
      }
    },
  );
});
