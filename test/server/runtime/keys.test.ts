import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadSigningKeys } from "../../../server/dist/keys.js";
import { setupSign } from "../../../server/dist/setupSign.js";
import { testFolder } from "../../support/folder.ts";

const pem = (type: "rsa" | "ec", bits = 2048) => {
  const pair =
    type === "rsa"
      ? generateKeyPairSync("rsa", { modulusLength: bits })
      : generateKeyPairSync("ec", { namedCurve: "P-256" });
  return pair.privateKey.export({ type: "pkcs8", format: "pem" });
};

function folderWithKey(text: string | Buffer, mode = 0o600): string {
  const folder = testFolder();
  writeFileSync(join(folder, "signing-key.pem"), text, { mode });
  chmodSync(join(folder, "signing-key.pem"), mode);
  return folder;
}

test("the first start makes an RSA key that its user alone can read; later ones use it", async () => {
  const folder = testFolder();
  const first = await loadSigningKeys(folder);
  expect(first.made).toBe(true);
  expect(first.privateKey.asymmetricKeyDetails?.modulusLength).toBeGreaterThanOrEqual(2048);
  expect(readdirSync(folder)).toEqual(["signing-key.pem"]);
  expect(statSync(join(folder, "signing-key.pem")).mode & 0o777).toBe(0o600);

  const second = await loadSigningKeys(folder);
  expect(second.made).toBe(false);
  expect(second.privateKey.equals(first.privateKey)).toBe(true);
  expect(second.publicKey.equals(first.publicKey)).toBe(true);
});

test("what an interrupted first start left is replaced", async () => {
  const folder = testFolder();
  writeFileSync(join(folder, "signing-key.pem.new"), "half of a k");
  expect((await loadSigningKeys(folder)).made).toBe(true);
  expect(readdirSync(folder)).toEqual(["signing-key.pem"]);
});

test.each([0o640, 0o604, 0o620])("a key with mode %o is refused", async (mode) => {
  const folder = folderWithKey(pem("rsa"), mode);
  await expect(loadSigningKeys(folder)).rejects.toThrow(
    /Others than its user .*signing-key\.pem: run `chmod 600/,
  );
});

test("another kind of key, a short one and one that cannot be read are refused, without being quoted", async () => {
  await expect(loadSigningKeys(folderWithKey(pem("ec")))).rejects.toThrow("must be an RSA key of 2048 bits");
  await expect(loadSigningKeys(folderWithKey(pem("rsa", 1024)))).rejects.toThrow(
    "must be an RSA key of 2048",
  );
  const broken = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
  const failure = await loadSigningKeys(folderWithKey(broken)).catch((error: unknown) => error);
  expect(String(failure)).toContain("cannot be read: it must be an RSA private key in PEM form");
  expect(String(failure)).not.toContain("c2VjcmV0");
});

test("the setup sign is the digest of the key's signature of a fixed text", async () => {
  const folder = testFolder();
  const keys = await loadSigningKeys(folder);
  // As an operator would compute it, without the service.
  const command = 'printf shellhub | openssl dgst -sha256 -sign "$1" | openssl dgst -sha256 -r | cut -c1-64';
  const expected = execFileSync("sh", ["-c", command, "sh", join(folder, "signing-key.pem")], {
    encoding: "utf8",
  });
  expect(setupSign(keys)).toBe(expected.trim());
});
