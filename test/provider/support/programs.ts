import { createPublicKey, generateKeyPairSync } from "node:crypto";
import fc from "fast-check";

const letters = (alphabet: string, min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: min, maxLength: max });

const ALPHANUMERIC = "abcXYZ019";
const tag = letters(ALPHANUMERIC, 3, 8);
const tags = fc.uniqueArray(tag, { minLength: 1, maxLength: 3 });
const tenant = fc.option(fc.uuid(), { nil: undefined });

/** An OpenSSH line of a new ed25519 key. */
export function sshKeyLine(comment = ""): string {
  const { publicKey } = generateKeyPairSync("ed25519");
  const raw = createPublicKey(publicKey.export({ type: "spki", format: "pem" }))
    .export({ type: "spki", format: "der" })
    .subarray(-32);
  const field = (data: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, data.length]), data]);
  const blob = Buffer.concat([field(Buffer.from("ssh-ed25519")), field(raw)]).toString("base64");
  return `ssh-ed25519 ${blob} ${comment}`.trimEnd();
}

const lines = Array.from({ length: 5 }, (_, index) => sshKeyLine(`key-${index}`));
const pattern = fc.constantFrom("^root$", ".*", "^(web|db)-[0-9]+$", "a+b", "[[:alpha:]]+");
const filter = fc.oneof(
  fc.record({ hostname: pattern }),
  fc.record({ tags }),
  fc.record({ tags, hostname: fc.constant(undefined) }),
);

const byName: Record<string, fc.Arbitrary<Record<string, unknown>>> = {
  Namespace: fc.record(
    {
      name: letters("abcXYZ019", 1, 20),
      settings: fc.record(
        { sessionRecord: fc.boolean(), connectionAnnouncement: fc.string({ maxLength: 40 }) },
        { requiredKeys: [] },
      ),
      forceDestroy: fc.boolean(),
    },
    { requiredKeys: ["name"] },
  ),
  Member: fc.record({
    tenant,
    email: fc.constantFrom("ana@example.org", "Bob@Example.org", "c.d@example.com"),
    role: fc.constantFrom("observer", "operator", "administrator"),
  }),
  PublicKey: fc.record({
    tenant,
    name: fc.constantFrom("laptop", "Ana's key", "x"),
    data: fc
      .tuple(fc.constantFrom(...lines), fc.constantFrom("", " comment", "\n", "  \n"))
      .map(([line, end]) => line + end),
    username: pattern,
    filter,
  }),
  DeviceTags: fc.record({
    tenant,
    device: fc.constantFrom("web-01", "WEB-02", "02:00:00:00:00:01", "f".repeat(64)),
    tags,
  }),
};

/** Valid inputs as programs write them, in any spelling that means something. */
export function programs(resource: string): fc.Arbitrary<Record<string, unknown>> {
  const arbitrary = byName[resource];
  if (!arbitrary) throw new Error(`no generator of programs for ${resource}: add one in this file`);
  return arbitrary;
}
