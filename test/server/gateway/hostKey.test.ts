import ssh2 from "ssh2";
import { afterEach, expect, test, vi } from "vitest";
import { readHostKey } from "../../../server/secrets/hostKey.ts";
import { testFolder } from "../../support/folder.ts";

afterEach(() => vi.restoreAllMocks());

/**
 * Returns an Ed25519 key pair in OpenSSH format, whose private key is one byte too short. The SSH library writes such a
 * file if the key begins with a zero byte.
 */
function shortenedPair() {
  const pair = ssh2.utils.generateKeyPairSync("ed25519");
  const [begin = "", ...lines] = pair.private.trimEnd().split("\n");
  const end = lines.pop();
  const bytes = Buffer.from(lines.join(""), "base64");
  return { ...pair, private: [begin, bytes.subarray(0, -1).toString("base64"), end, ""].join("\n") };
}

test("the first start stores a host key that later starts can read, even if the library first generates an unreadable key", () => {
  const folder = testFolder();
  const unreadable = shortenedPair();
  expect(ssh2.utils.parseKey(unreadable.private)).toBeInstanceOf(Error);
  vi.spyOn(ssh2.utils, "generateKeyPairSync").mockReturnValueOnce(unreadable);
  const created = readHostKey(folder, undefined);
  expect(created.fingerprint).toMatch(/^SHA256:/);
  expect(readHostKey(folder, undefined)).toEqual(created);
});
