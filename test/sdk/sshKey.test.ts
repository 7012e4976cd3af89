import { generateKeyPairSync, type JsonWebKey } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  LOGIN_KEY_TYPES,
  parseSshPublicKey,
  refusedKeyType,
  sshPublicKeyLine,
} from "../../sdk/contract/index.ts";
import { DSA_FINGERPRINT, DSA_KEY } from "../support/dsaKey.ts";

const field = (data: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  return Buffer.concat([length, data]);
};
const text = (value: string) => Buffer.from(value);

/** Returns an OpenSSH public key line of this type. Its binary data consists of `parts`. */
const line = (type: string, ...parts: Buffer[]) =>
  `${type} ${Buffer.concat([text(type), ...parts].map(field)).toString("base64")}`;

/** Encodes a positive number in the SSH format mpint (RFC 4251, section 5). */
const mpint = (bytes: Buffer) => ((bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes);

/** Returns an odd number with exactly `bits` bits. */
const number = (bits: number) => {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff);
  bytes[0] = 2 ** (bits % 8 || 8) - 1;
  return mpint(bytes);
};

const decoded = (key: JsonWebKey, name: "x" | "y" | "n" | "e") => Buffer.from(String(key[name]), "base64url");

function ecPoint(namedCurve: string): Buffer {
  const key = generateKeyPairSync("ec", { namedCurve }).publicKey.export({ format: "jwk" });
  return Buffer.concat([Buffer.from([4]), decoded(key, "x"), decoded(key, "y")]);
}

const P256 = ecPoint("P-256");
const P384 = ecPoint("P-384");
const P521 = ecPoint("P-521");
const E = Buffer.from([1, 0, 1]);
const ED = Buffer.alloc(32, 7);

/** Keys that `ssh-keygen` of OpenSSH 9.2 created, with the MD5 fingerprints that `ssh-keygen` prints for them. */
const SSH_KEYGEN_KEYS = [
  [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILihyRlnpu5QKDZ2JY5V44kBhuNRw34QZghPxtaUmqCI",
    "95:0e:0c:86:c9:a0:1c:0f:66:24:71:b1:31:2c:68:ea",
  ],
  [
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPdw3cKxa500naIX3fHBTN8vMb9qj0NSHU1LhZC9Pf1Z5sY1XtvBkpL/LYDfunyo0fIMXxMnGV2Bv2Sdr9yodsQ=",
    "6d:76:b0:96:51:a6:52:9d:90:bf:46:be:82:c7:75:13",
  ],
  [
    "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBLvIDvqWG6H7jnnrQ2KATVQ7HhVGp5a0wDg/7PUI7kdDkGDjjeZ4sftFLnyXYuHw3oAElUGKvUdhozstlVnwN3ZrXVXbz+09fMtpLIENx4H/ti/DNOeck/KOhrDYNrpA9w==",
    "ce:1f:90:47:e4:6e:13:3e:f3:32:00:d0:5e:42:0f:09",
  ],
  [
    "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAF27PO41WzCl+R8+tOC9hT3zVxZNsT36/oQmjaFfyDG1knu1Iv0EAPhe839uB/rMx/gp8lzxYJayAyaWmGIiB1SnwCvpJHRr0NFDMub5fFhEUAIRugRRsebV6Bd+qsyeBdHPJgbzQiR4CKh78nLTXw4yPLsAVlvxJIuuqbYPhNdll32Mg==",
    "f2:9b:d6:b3:b7:0b:8e:64:57:49:64:7a:da:9c:83:52",
  ],
  [
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQCqYrsWmU1ULjh/w/YpHIn7O6NQ8aWaBjsWpx1Y1nXvl3y3yHp/Z1fT5qb4d1759is4A33GHUnNyhXWV9/PFRp8NzsCvzrzJYlQRX0DimFHHNrb5QjqyEv9/wbhHvXXxD5keawb/hBkcYi8/N6eXnMtQ+nw+QvfKlXt1Uu3BHCAcw==",
    "b3:7f:ba:82:4a:2a:ac:96:2e:06:4a:3d:1c:8f:77:c6",
  ],
  [DSA_KEY, DSA_FINGERPRINT],
] as const;

describe("a public key line", () => {
  test.each(SSH_KEYGEN_KEYS)("that ssh-keygen created is accepted: %s", (key, fingerprint) => {
    const parsed = parseSshPublicKey(`${key} ana@laptop\n`);
    expect(parsed.fingerprint).toBe(fingerprint);
    expect(sshPublicKeyLine(parsed)).toBe(key);
  });

  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ format: "jwk" });
  const whole = {
    "ed25519 of 32 bytes": line("ssh-ed25519", ED),
    "ed25519 of a security key": line("sk-ssh-ed25519@openssh.com", ED, text("ssh:")),
    nistp256: line("ecdsa-sha2-nistp256", text("nistp256"), P256),
    nistp384: line("ecdsa-sha2-nistp384", text("nistp384"), P384),
    nistp521: line("ecdsa-sha2-nistp521", text("nistp521"), P521),
    "nistp256 of a security key": line(
      "sk-ecdsa-sha2-nistp256@openssh.com",
      text("nistp256"),
      P256,
      text("ssh:"),
    ),
    "rsa of 2048 bits": line("ssh-rsa", decoded(rsa, "e"), mpint(decoded(rsa, "n"))),
    "rsa of 1024 bits": line("ssh-rsa", E, number(1024)),
    "rsa of 16384 bits": line("ssh-rsa", E, number(16_384)),
    dsa: line("ssh-dss", number(1024), number(160), number(1023), number(1022)),
  };
  test.each(Object.entries(whole))("is accepted: %s", (_, key) => {
    expect(sshPublicKeyLine(parseSshPublicKey(key))).toBe(key);
    expect(sshPublicKeyLine(parseSshPublicKey(key.replace(/=+$/, "")))).toBe(key);
  });

  const offCurve = Buffer.from(P256);
  offCurve[40] = (offCurve[40] ?? 0) ^ 1;
  const compressed = Buffer.concat([Buffer.from([2 + ((P256[64] ?? 0) & 1)]), P256.subarray(1, 33)]);
  const rest = [number(160), number(1023), number(1022)];
  const broken = {
    "ed25519 of 1 byte": line("ssh-ed25519", Buffer.from([1])),
    "ed25519 of 31 bytes": line("ssh-ed25519", Buffer.alloc(31)),
    "ed25519 of 33 bytes": line("ssh-ed25519", Buffer.alloc(33)),
    "ed25519 with something after it": line("ssh-ed25519", ED, text("x")),
    "ed25519 of a security key, without application": line("sk-ssh-ed25519@openssh.com", ED),
    "nothing after the type": line("ssh-ed25519"),
    "another curve's name": line("ecdsa-sha2-nistp256", text("nistp384"), P256),
    "another curve's point": line("ecdsa-sha2-nistp256", text("nistp256"), P384),
    "no point": line("ecdsa-sha2-nistp384", text("nistp384")),
    "a compressed point": line("ecdsa-sha2-nistp256", text("nistp256"), compressed),
    "a point at infinity": line("ecdsa-sha2-nistp521", text("nistp521"), Buffer.alloc(1)),
    "a point off the curve": line("ecdsa-sha2-nistp256", text("nistp256"), offCurve),
    "nistp256 of a security key, without application": line(
      "sk-ecdsa-sha2-nistp256@openssh.com",
      text("nistp256"),
      P256,
    ),
    "rsa of 1023 bits": line("ssh-rsa", E, number(1023)),
    "rsa of 16385 bits": line("ssh-rsa", E, number(16_385)),
    "a negative modulus": line("ssh-rsa", E, Buffer.alloc(256, 0xff)),
    "a modulus with leading zeros": line("ssh-rsa", E, Buffer.concat([Buffer.alloc(1), number(2048)])),
    "an even modulus": line("ssh-rsa", E, mpint(Buffer.alloc(256, 0xfe))),
    "no exponent": line("ssh-rsa", Buffer.alloc(0), number(2048)),
    "an exponent of 1": line("ssh-rsa", Buffer.from([1]), number(2048)),
    "an even exponent": line("ssh-rsa", Buffer.from([4]), number(2048)),
    "rsa without a modulus": line("ssh-rsa", E),
    "dsa with a small modulus": line("ssh-dss", number(512), ...rest),
    "dsa without its key": line("ssh-dss", number(1024), number(160), number(1023)),
    "another type inside": `ssh-rsa ${line("ssh-ed25519", ED).split(" ")[1]}`,
    "a cut blob": line("ssh-ed25519", ED).slice(0, -8),
  };
  test.each(Object.entries(broken))("is rejected, and the message contains the requirement: %s", (_, key) => {
    const [type, blob = ""] = key.split(" ");
    expect(() => parseSshPublicKey(key)).toThrow(`must contain a complete ${type} key after its type: `);
    expect(() => parseSshPublicKey(key)).not.toThrow(blob);
  });

  test.each(["A", "AAAA===", "====", "AA=A", "AA-_", "AAAA*"])(
    "is rejected with %j in place of its base64 part",
    (blob) => {
      expect(() => parseSshPublicKey(`ssh-ed25519 ${blob}`)).toThrow("must contain the base64-encoded key");
    },
  );
});

test("clients can log in with all types of keys except DSA", () => {
  expect(refusedKeyType(`  ${DSA_KEY} ana@laptop`)).toBe("ssh-dss");
  expect(LOGIN_KEY_TYPES).not.toContain("ssh-dss");
  const others = SSH_KEYGEN_KEYS.filter(([key]) => key !== DSA_KEY);
  expect(others.map(([key]) => refusedKeyType(key))).toEqual(others.map(() => undefined));
  expect(LOGIN_KEY_TYPES).toEqual(expect.arrayContaining(others.map(([key]) => key.split(" ")[0])));
  expect(refusedKeyType("constructor AAAA")).toBeUndefined();
});
