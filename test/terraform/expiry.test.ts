import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { type SparseService, startSparseService } from "../support/sparseService.ts";
import {
  type AttachedProvider,
  hasTerraform,
  LABEL,
  RootModule,
  startProvider,
} from "./support/terraform.ts";

const FUTURE = "2100-01-01T00:00:00Z";
const SAME = "2100-01-01T02:00:00+02:00";
const PAST = "2020-01-01T00:00:00Z";

describe.runIf(hasTerraform)(`access that ends under ${LABEL}`, () => {
  let fleet: Fleet;
  let sparse: SparseService;
  let provider: AttachedProvider;
  beforeAll(async () => {
    fleet = await startFleet();
    sparse = await startSparseService(fleet.env.GATEHOUSE_URL ?? "");
    provider = await startProvider(fleet.env);
  });
  afterAll(async () => {
    await provider.stop();
    await sparse.stop();
    await fleet.stop();
  });

  const data = sshKeyLine();
  const withEnd = (expires_at: string) => ({
    resource: {
      gatehouse_public_key: {
        temp: { name: "temp", data, username: "^root$", filter: { hostname: ".*" }, expires_at },
      },
    },
  });
  const statusOf = (root: RootModule) => root.state().resources[0]?.instances[0]?.attributes.expiry_status;
  const update = ["gatehouse_public_key.temp: update"];
  const expired = /Warning: Public key\s[\s\S]*expired \d+ days ago; delete these lines/;

  it.each([
    { server: "this project's server", status: "enforced", after: "enforced", keys: 1 },
    { server: "a server of others", status: "by-run", after: "removed", keys: 0 },
  ])(
    "$server: an expired key has an empty plan with a warning until its lines are deleted",
    async (expected) => {
      const isOwn = expected.status === "enforced";
      const url: Record<string, string> = isOwn ? {} : { GATEHOUSE_URL: sparse.url };
      const attached = isOwn ? provider : await startProvider({ ...fleet.env, ...url });
      try {
        const root = new RootModule(testFolder(), { ...attached.env, ...fleet.env, ...url });
        root.write(withEnd(PAST));
        expect((await root.run("plan")).output).toMatch(/expires_at[\s\S]*must be in the future/);
        root.write(withEnd(FUTURE));
        expect(await root.changes()).toEqual(["gatehouse_public_key.temp: create"]);
        await root.must("apply", "plan");
        expect(statusOf(root)).toBe(expected.status);
        root.write(withEnd(SAME));
        expect(await root.changes()).toEqual([]);
        root.write(withEnd(PAST));
        expect(await root.changes()).toEqual(update);
        await root.must("apply", "plan");
        expect(statusOf(root)).toBe(expected.after);
        expect(await fleet.client.getPublicKeys()).toHaveLength(expected.keys);
        expect(await root.changes()).toEqual([]);
        expect((await root.run("plan")).output).toMatch(expired);
        root.write({});
        await root.must("apply", "-auto-approve");
        expect(await fleet.client.getPublicKeys()).toEqual([]);
      } finally {
        if (!isOwn) await attached.stop();
      }
    },
  );
});
