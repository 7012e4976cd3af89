import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { githubActions } from "../../provider/helpers/workloads.ts";
import type { Origin } from "../../provider/model/definition.ts";
import { declarable, inventoryOf } from "../../provider/namespace/liveObjects.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { definitionsByName } from "../../provider/resources/index.ts";
import { workloadsOf } from "../../provider/resources/trustedWorkload.ts";
import { Connection } from "../../provider/service/connection.ts";
import { NotFoundError } from "../../sdk/index.ts";
import { requestsDuring } from "../support/requests.ts";
import { shared } from "../support/shared.ts";
import { startSparseService } from "../support/sparseService.ts";
import { sharedFilledFleet } from "./support/filledFleet.ts";
import { Harness, testHarness } from "./support/harness.ts";

const fleet = sharedFilledFleet();
const args = {
  ...githubActions({ repository: "acme/fleet", ref: "refs/heads/main" }),
  name: "deploy",
  audience: "gatehouse",
  role: "operator",
};
const program = (more: object = {}) => ({ it: { type: "TrustedWorkload", args: { ...args, ...more } } });

describe("a trusted workload", () => {
  const harness = testHarness(() => fleet.env);

  it("is imported by its name, also if the name has the form of an id", async () => {
    for (const name of ["deploy", "0123456789abcdef01234567"]) {
      await harness.up(program({ name }));
      const { outputs = {} } = harness.state.get("it") ?? {};
      const imported = new Harness(fleet.env);
      await imported.import("it", "TrustedWorkload", `${outputs.tenant}/${name}`);
      expect(imported.state.get("it")?.id).toBe(`${outputs.tenant}/${outputs.workloadId}`);
      expect(await imported.preview(program({ name }))).toEqual([]);
      await imported.close();
      await harness.end();
    }
  });

  it("that a user deleted is not found by its name", async () => {
    await harness.up(program());
    const { outputs = {} } = harness.state.get("it") ?? {};
    await fleet.client.deleteTrustedWorkload({ params: { id: String(outputs.workloadId) } });
    const body = { ...args, role: "operator", maxSessionMinutes: 60 } as const;
    await fleet.client.createTrustedWorkload({ body });
    expect(await harness.refresh()).toEqual(["delete it"]);
    await expect(harness.up(program())).rejects.toThrow(/exists already|already exists/);
    await harness.up(program({ adopt: true }));
  });

  it("does not change if the order of its claims changes, and `allowLockout` is no request", async () => {
    await harness.up(program());
    const claims = Object.fromEntries(Object.entries(args.claims).reverse());
    expect(await harness.preview(program({ claims }))).toEqual([]);
    const requests = await requestsDuring(fleet.service, () => harness.up(program({ allowLockout: true })));
    expect(requests.filter((request) => request.includes("trusted-workloads"))).toEqual([]);
    expect(harness.state.get("it")?.outputs).toMatchObject({ allowLockout: true });
    expect(await harness.refresh()).toEqual([]);
  });

  it("that the run renamed or deleted is not found by its former name", async () => {
    const connection = new Connection(fleet.client, { defaultTenant: fleet.tenant });
    const { find, create, update, delete: remove } = definitionsByName.TrustedWorkload;
    const named = (name: string) => ({ ...args, name, maxSessionMinutes: 60, singleUse: false });
    const found = async (name: string) => (await find?.(connection, named(name)))?.id;
    const { id, state } = await create(connection, named("former"), {
      idempotencyKey: randomUUID(),
    } as Origin);
    expect(await found("former")).toBe(id);
    const renamed = await update(connection, id, state, named("renamed"));
    expect([await found("former"), await found("renamed")]).toEqual([undefined, id]);
    await remove(connection, id, renamed, () => false);
    expect(await found("renamed")).toBeUndefined();
  });

  it("is in the inventory with the inputs that declare it", async () => {
    await harness.up(program({ allowLockout: true }));
    const connection = new Connection(fleet.client, { defaultTenant: fleet.tenant });
    const { objects } = await inventoryOf(connection, fleet.tenant, [definitionsByName.TrustedWorkload]);
    const { allowLockout: _, ...inputs } = { ...args, allowLockout: true };
    expect(declarable(objects).declarable).toMatchObject([{ name: "deploy", inputs }]);
    expect(workloadsOf(await readNamespace(connection))).toMatchObject([{ name: "deploy" }]);
  });
});

describe("a server without trusted workloads", () => {
  const other = shared(() => startSparseService(fleet.service.url, { emptyErrors: true }));

  it("rejects a workload at preview, and receives no write", async () => {
    const harness = new Harness({ ...fleet.env, GATEHOUSE_URL: other.url });
    const requests = await requestsDuring(fleet.service, async () => {
      await expect(harness.preview(program())).rejects.toThrow(
        /This server \(.*\) has no trusted workloads\. Remove the workload, and use an API key/,
      );
    });
    expect(requests.filter((request) => request.includes("trusted-workloads"))).toEqual([]);
    await harness.close();
  });
});

describe("a server whose list of trusted workloads returns 404", () => {
  const answering = (serverMessage: string | undefined, isOwn: boolean | undefined) => {
    const connection = new Connection(fleet.client, { defaultTenant: fleet.tenant });
    const details = {
      operation: "listTrustedWorkloads",
      status: 404,
      attempts: 1,
      outcome: "none",
      serverMessage,
    };
    const fault = new NotFoundError("not found", details as ConstructorParameters<typeof NotFoundError>[1]);
    const unread = { all: () => Promise.reject(fault) };
    Object.assign(connection, {
      tenant: async () => ({ listing: () => unread }),
      server: async () => ({ isOwn }),
    });
    return definitionsByName.TrustedWorkload.list?.(connection, fleet.tenant);
  };

  it("has no workloads, unless the answer may come from a proxy in front of this project's server", async () => {
    expect(await answering("no such path", true)).toEqual([]);
    expect(await answering(undefined, undefined)).toEqual([]);
    await expect(answering(undefined, true)).rejects.toThrow(NotFoundError);
  });
});
