import { expect, it } from "vitest";
import { describeSsh } from "./SshTarget.ts";

/** Time limit for the service to measure the recordings, which it does each minute. */
const patiently = { timeout: 150_000, interval: 1_000 };

const options = {
  env: { GATEHOUSE_NAMESPACE_RECORDINGS_MAX: "1", GATEHOUSE_RECORDINGS_FULL: "refuse" },
};

describeSsh("recordings that have reached their quota", options, (target) => {
  it("refuse new sessions with the reason until recordings are deleted", {
    timeout: 360_000,
    tags: ["long"],
  }, async () => {
    const { client, service, tenant } = target.fleet;
    await client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } });
    const wide = await target.ssh({ command: "head -c 1500000 /dev/zero | tr '\\0' x" });
    expect([wide.code, wide.stdout.length]).toEqual([0, 1_500_000]);
    const { uid } = await target.session(({ active }) => !active);

    const login = async () => {
      const { code, stderr } = await target.ssh({ command: "true" });
      return { code, stderr };
    };
    await expect.poll(login, patiently).toEqual({
      code: 255,
      stderr: expect.stringContaining(
        "The device accepts no session: the recordings of the namespace are full",
      ),
    });
    expect(service.logs()).toContainEqual(
      expect.objectContaining({
        tenant,
        msg: "the recordings of a namespace are full; refusing its new sessions",
      }),
    );
    await client.deleteSessionRecord({ params: { uid, seat: "0" } });
    await expect.poll(async () => (await login()).code, patiently).toBe(0);
  });
});
