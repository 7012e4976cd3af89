import { describe, expect, test } from "vitest";
import { BusyError } from "../../../server/errors.ts";
import { IssuerReads } from "../../../server/features/trustedWorkloads/issuerReads.ts";

/** Begins reads that end only when they are aborted, or when the test ends them. */
function slowReads() {
  const reads = new IssuerReads<string>();
  const ends = new Map<string, (result: string) => void>();
  const begin = (owner: string, issuer: string) => {
    const read = reads.run(
      issuer,
      async () => owner,
      (signal) =>
        new Promise((resolve, reject) => {
          ends.set(issuer, resolve);
          signal.addEventListener("abort", () => reject(new Error(`aborted ${issuer}`)));
        }),
    );
    // Most tests look only at the other reads.
    read.catch(() => undefined);
    return read;
  };
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { begin, ends, settle };
}

describe("reads of issuers", () => {
  test("a user has at most four, in all namespaces, and another user has own ones", async () => {
    const { begin, ends, settle } = slowReads();
    for (let index = 0; index < 4; index += 1) void begin("mallory", `slow${index}`);
    await settle();
    await expect(begin("mallory", "slow4")).rejects.toThrow(BusyError);
    const other = begin("ana", "honest");
    await settle();
    ends.get("honest")?.("keys");
    expect(await other).toBe("keys");
    ends.get("slow0")?.("keys");
    await settle();
    const next = begin("mallory", "slow5");
    await settle();
    ends.get("slow5")?.("keys");
    expect(await next).toBe("keys");
  });

  test("concurrent calls for an issuer share one", async () => {
    const { begin, ends, settle } = slowReads();
    const calls = ["ana", "ben", "cleo"].map((owner) => begin(owner, "shared"));
    await settle();
    expect(ends.size).toBe(1);
    ends.get("shared")?.("keys");
    expect(await Promise.all(calls)).toEqual(["keys", "keys", "keys"]);
  });

  test("if all places are taken, a user without one gets the oldest of the user with the most", async () => {
    const { begin, ends, settle } = slowReads();
    const first = begin("user0", "slow0.0");
    for (let user = 0; user < 16; user += 1) {
      for (let index = user === 0 ? 1 : 0; index < 4; index += 1)
        void begin(`user${user}`, `slow${user}.${index}`);
    }
    await settle();
    const honest = begin("ana", "honest");
    await expect(first).rejects.toThrow("aborted slow0.0");
    await settle();
    ends.get("honest")?.("keys");
    expect(await honest).toBe("keys");
  });

  test("if 64 users have one each, a further user is refused", async () => {
    const { begin, settle } = slowReads();
    for (let user = 0; user < 64; user += 1) void begin(`user${user}`, `slow${user}`);
    await settle();
    await expect(begin("ana", "honest")).rejects.toThrow(BusyError);
  });
});
