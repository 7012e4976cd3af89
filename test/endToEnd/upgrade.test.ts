import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { DATA, PROGRAM, PROJECT, RELEASES, STACK } from "../fixtures/release.ts";
import { changesOf, engines, Stack } from "../support/gatehouse.ts";
import { startService } from "../support/service.ts";

interface Fixture {
  readonly env: Record<string, string>;
  readonly policy: Record<string, { readonly type: string; readonly args: Record<string, unknown> }>;
}

describe.each(readdirSync(RELEASES))("state and database of %s", (version) => {
  const release = join(RELEASES, version);

  it.each(engines.filter((one) => one.available))(
    "remain usable with the $label",
    {
      timeout: 180_000,
      tags: ["long"],
    },
    async ({ engine }) => {
      const folder = mkdtempSync(join(tmpdir(), "gatehouse-upgrade-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const stacks = join(folder, ".pulumi", "stacks", PROJECT);
      mkdirSync(stacks, { recursive: true });
      writeFileSync(join(folder, ".pulumi", "meta.yaml"), "version: 1\n");
      copyFileSync(join(release, "state.json"), join(stacks, `${STACK}.json`));
      copyFileSync(join(release, "settings.yaml"), join(PROGRAM, `Pulumi.${STACK}.yaml`));
      const dataDir = join(folder, "data");
      mkdirSync(dataDir);
      for (const file of DATA) {
        copyFileSync(join(release, file), join(dataDir, file));
        // Git does not store file permissions except "executable", so the test restores the permissions.
        chmodSync(join(dataDir, file), 0o600);
      }
      const service = await startService({ dataDir });
      onTestFinished(async () => void (await service.stop()));

      const { env, policy } = JSON.parse(readFileSync(join(release, "program.json"), "utf8")) as Fixture;
      const stack = new Stack({
        program: PROGRAM,
        folder,
        engine,
        env: { ...env, GATEHOUSE_URL: service.url },
        name: STACK,
      });
      onTestFinished(() => stack.dispose());
      const program = (one: Fixture["policy"]) => ({ POLICY: JSON.stringify(one) });
      expect(changesOf(await stack.result(["preview"], program(policy)))).toEqual([]);
      expect((await stack.run(["drift"], program(policy))).code).toBe(0);
      const key = policy.key ?? { type: "", args: {} };
      const changed = { ...policy, key: { ...key, args: { ...key.args, name: "another name" } } };
      expect(changesOf(await stack.result(["up", "--yes", "--skip-preview"], program(changed)))).toEqual([
        // The state lacks inputs of later versions, so the update shows their defaults.
        "update key expiresAt name owner",
      ]);
      const destroyed = await stack.result(["destroy", "--yes"], program(changed));
      expect(destroyed.summary).toMatchObject({ delete: Object.keys(policy).length + 1 });
    },
  );
});
