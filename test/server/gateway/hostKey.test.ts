import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ssh2 from "ssh2";
import { afterEach, expect, test, vi } from "vitest";
import { readHostKey } from "../../../server/gateway/hostKey.ts";

afterEach(() => vi.restoreAllMocks());

/** A pair that the library wrote without the first byte of its public key. */
function unreadablePair() {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync("ed25519");
    if (ssh2.utils.parseKey(pair.private) instanceof Error) return pair;
  }
}

test("the first start keeps a host key that later starts can read, even if the library writes an unreadable one", () => {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-host-key-"));
  try {
    vi.spyOn(ssh2.utils, "generateKeyPairSync").mockReturnValueOnce(unreadablePair());
    const created = readHostKey(folder, undefined);
    expect(created.fingerprint).toMatch(/^SHA256:/);
    expect(readHostKey(folder, undefined)).toEqual(created);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
