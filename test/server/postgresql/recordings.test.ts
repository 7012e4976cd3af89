import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { ResponseOf } from "@gatehouse-access/sdk";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SshTarget } from "../../gateway/SshTarget.ts";
import { INSTANCE_SECRET } from "../../support/instances.ts";
import { emptyPostgresql, type TestPostgresql } from "../../support/postgresql/database.ts";
import { type PostgresqlServer, startPostgresql } from "../../support/postgresql/server.ts";
import { type StallingProxy, startStallingProxy } from "../../support/proxy.ts";
import { newKey, publicHalf, withoutSsh } from "../../support/sshFleet.ts";
import { query } from "./clients.ts";

type Session = ResponseOf<"getSession">;

/** Time limit for the database to recover and for the service to notice it. */
const patiently = { timeout: 60_000 };

/** Returns the address of a service's metrics. */
function metricsOf({ fleet: { service } }: SshTarget): string {
  const start = "metrics open at ";
  const line = service.logs().find(({ msg }) => msg.startsWith(start));
  return `${line?.msg.slice(start.length)}/metrics`;
}

describe.skipIf(withoutSsh)(
  `recorded sessions and an outage of PostgreSQL${withoutSsh ? ` (${withoutSsh})` : ""}`,
  { timeout: 180_000, tags: ["long"] },
  () => {
    let postgresql: PostgresqlServer;
    let database: TestPostgresql;
    /** The proxy through which the service uses the database. */
    let proxy: StallingProxy;
    let target: SshTarget;
    beforeAll(async () => {
      postgresql = await startPostgresql();
      database = await emptyPostgresql(postgresql.url);
      const address = new URL(database.url);
      proxy = await startStallingProxy(Number(address.port));
      address.port = String(proxy.port);
      target = new SshTarget({
        env: {
          GATEHOUSE_DATABASE_URL: address.toString(),
          GATEHOUSE_SECRET: INSTANCE_SECRET,
          GATEHOUSE_SSH_RECORD_PATIENCE: "1",
          GATEHOUSE_METRICS_ADDRESS: "127.0.0.1:0",
        },
        begin: ({ fleet: { client, tenant } }) =>
          client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } }),
      });
      await target.start();
      await target.createKey();
    });
    afterAll(async () => {
      await postgresql?.resume();
      await target?.stop();
      await proxy?.stop();
      await database?.drop();
      await postgresql?.stop();
    });

    const databaseName = () => new URL(database.url).pathname.slice(1);
    const terminate = () => {
      const statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
      return query(postgresql.url, statement, [databaseName()]);
    };
    /** Runs work, and terminates the connections that write to a session in the meantime. */
    async function withTerminatedWrites(uid: string, work: () => Promise<unknown>): Promise<void> {
      const client = new Client(database.url);
      await client.connect();
      try {
        // The lock holds the writes back, so that they are in progress when their connections end.
        await client.query("BEGIN");
        await client.query('SELECT 1 FROM "Session" WHERE "uid" = $1 FOR UPDATE', [uid]);
        await work();
        const terminateWaiting = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = $1 AND wait_event_type = 'Lock'`;
        const terminated = async () =>
          (await query(postgresql.url, terminateWaiting, [databaseName()])).length;
        await expect.poll(terminated, patiently).toBeGreaterThan(0);
        await client.query("ROLLBACK");
      } finally {
        await client.end();
      }
    }
    const become = async (readOnly: "on" | "off") => {
      await query(
        postgresql.url,
        `ALTER DATABASE ${databaseName()} SET default_transaction_read_only = ${readOnly}`,
      );
      await terminate();
    };

    /** Starts a login whose command returns its input. */
    async function startCat(more: { readonly key?: string } = {}) {
      const child = target.spawnSsh({ command: "echo begun; cat; exit 7", ...more });
      const complaint = text(child.stderr);
      const left = once(child, "close");
      let seen = "";
      child.stdout.on("data", (data) => {
        seen += String(data);
      });
      const untilSeen = (expected: string) => expect.poll(() => seen, patiently).toContain(expected);
      await untilSeen("begun\n");
      let lines = 0;
      const uid = (await target.session(({ active, authenticated }) => active && authenticated)).uid;
      return {
        uid,
        complaint,
        /** Sends lines, and waits until the device has returned them. */
        async send(count: number) {
          const last = lines + count;
          while (lines < last) {
            lines += 1;
            child.stdin.write(`line ${lines}\n`);
          }
          await untilSeen(`line ${last}\n`);
        },
        /** Ends the input. Returns the exit code of the client. */
        async end() {
          child.stdin.end();
          const [code] = await left;
          return code;
        },
        left,
        /** All output that the device has sent. */
        output: () => seen,
      };
    }

    const read = (uid: string): Promise<Session> => target.fleet.client.getSession({ params: { uid } });

    const isActive = (uid: string) =>
      read(uid).then(
        ({ active }) => active,
        () => true,
      );
    const untilEnded = (uid: string) => expect.poll(() => isActive(uid), patiently).toBe(false);

    /** Waits until a session is closed. Returns its events and its recording. */
    async function closed(uid: string) {
      await expect
        .poll(
          () =>
            read(uid).then(
              ({ events }) => events.types.flat(),
              () => [],
            ),
          patiently,
        )
        .toContain("exit-status");
      await expect.poll(async () => (await read(uid)).active, patiently).toBe(false);
      const session = await read(uid);
      const chunks = await target.fleet.client.getSessionRecord({ params: { uid, seat: "0" } });
      return { session, recording: chunks.map(({ message }) => message).join("") };
    }
    const gapsOf = ({ events }: Session) => events.items.filter(({ type }) => type === "recording-gap");

    it("record every line exactly once, although connections are terminated", {
      tags: ["long"],
    }, async () => {
      const cat = await startCat();
      for (let round = 0; round < 30; round += 1) {
        if (round % 6 === 3) await withTerminatedWrites(cat.uid, () => cat.send(10));
        else await cat.send(10);
      }
      expect(await cat.end()).toBe(7);
      const { session, recording } = await closed(cat.uid);
      expect(recording).toBe(cat.output());
      expect(recording.match(/line \d+\n/g)).toHaveLength(300);
      expect(gapsOf(session)).toEqual([]);
    });

    it("record all output of an outage that fits into the queue, also of a session that ends in it", {
      tags: ["long"],
    }, async () => {
      const ending = await startCat();
      await ending.send(5);
      const staying = await startCat();
      await staying.send(5);
      await postgresql.halt();
      await ending.send(50);
      await staying.send(50);
      expect(await ending.end()).toBe(7);
      await postgresql.resume();
      await staying.send(5);
      expect(await staying.end()).toBe(7);
      for (const cat of [ending, staying]) {
        const { session, recording } = await closed(cat.uid);
        expect(recording).toBe(cat.output());
        expect(gapsOf(session)).toEqual([]);
        expect(session.events.types.flat()).toContain("exit-status");
      }
    });

    it("record all output of a time in which the database does not respond", { tags: ["long"] }, async () => {
      const { service } = target.fleet;
      const cat = await startCat();
      await cat.send(5);
      const begun = service.logs().length;
      proxy.stall();
      await cat.send(50);
      const messages = () =>
        service
          .logs()
          .slice(begun)
          .map(({ msg }) => msg);
      await expect
        .poll(messages, patiently)
        .toContainEqual(expect.stringContaining("cannot write session entries"));
      await cat.send(50);
      proxy.recover();
      await cat.send(5);
      expect(await cat.end()).toBe(7);
      const { session, recording } = await closed(cat.uid);
      expect(recording).toBe(cat.output());
      expect(gapsOf(session)).toEqual([]);
    });

    /** Starts a login that writes many bytes once it receives a line. */
    async function startFlood(bytes: number) {
      const child = target.spawnSsh({
        command: `echo begun; read go; head -c ${bytes} /dev/zero | tr '\\0' x; exit 7`,
      });
      const complaint = text(child.stderr);
      const left = once(child, "close");
      await once(child.stdout, "data");
      const { uid } = await target.session(({ active, authenticated }) => active && authenticated);
      const received = text(child.stdout);
      return { uid, begin: () => child.stdin.write("go\n"), complaint, left, received };
    }

    it("continue when an outage lasts too long, and have a gap with the number of lost bytes", {
      tags: ["long"],
    }, async () => {
      const bytes = 3_000_000;
      const flood = await startFlood(bytes);
      await postgresql.halt();
      flood.begin();
      const [code] = await flood.left;
      expect([code, (await flood.received).length]).toEqual([7, bytes]);
      await postgresql.resume();
      const { session, recording } = await closed(flood.uid);
      const gaps = gapsOf(session);
      const lost = gaps.reduce((sum, { data }) => sum + Number(data.bytes), 0);
      expect(lost).toBeGreaterThan(0);
      expect(recording.match(/x/g)).toHaveLength(bytes - lost);
      expect(recording.match(/\[recording gap: [\d,]+ bytes lost between .* and .*\]/g)).toHaveLength(
        gaps.length,
      );
      // The gateway process reports its counts each second.
      const metrics = async () => (await fetch(metricsOf(target))).text();
      await expect
        .poll(metrics, patiently)
        .toMatch(new RegExp(`^gatehouse_recording_lost_bytes_total ${lost}$`, "m"));
      expect(await metrics()).toMatch(/^gatehouse_recording_gaps_total [1-9]/m);
    });

    it("end when an outage lasts too long, if their namespace requires it", { tags: ["long"] }, async () => {
      const { client, tenant } = target.fleet;
      const set = (sessionRecordFailure: "continue" | "end") =>
        client.editNamespace({ params: { tenant }, body: { settings: { sessionRecordFailure } } });
      await set("end");
      const cat = await startCat();
      await cat.send(5);
      await postgresql.halt();
      await cat.send(1);
      const [code] = await cat.left;
      expect(code).toBe(255);
      expect(await cat.complaint).toContain("the session cannot be recorded");
      await postgresql.resume();
      await untilEnded(cat.uid);
      await expect
        .poll(
          async () =>
            (await target.fleet.client.getSessionRecord({ params: { uid: cat.uid, seat: "0" } }))
              .map(({ message }) => message)
              .join(""),
          patiently,
        )
        .toBe(cat.output());
      await set("continue");
    });

    it("continue on a database that becomes read-only, and clients of new logins see the reason", {
      tags: ["long"],
    }, async () => {
      const cat = await startCat();
      await become("on");
      await cat.send(50);
      // A login that uses a terminated connection is refused without this text.
      const complaint = async () => (await target.ssh({ command: "true" })).stderr;
      await expect
        .poll(complaint, patiently)
        .toContain("The service cannot write its database at the moment. Try again later");
      await become("off");
      await cat.send(5);
      expect(await cat.end()).toBe(7);
      const { session, recording } = await closed(cat.uid);
      expect(recording).toBe(cat.output());
      expect(gapsOf(session)).toEqual([]);
    });

    it("end at the end of their key during an outage", { tags: ["long"] }, async () => {
      const { client } = target.fleet;
      const key = newKey(target.folder, "short");
      const expiresAt = new Date(Date.now() + 45_000);
      await client.createPublicKey({
        body: {
          name: "short",
          data: publicHalf(key),
          username: ".*",
          filter: { hostname: ".*" },
          expiresAt: expiresAt.toISOString(),
        },
      });
      const cat = await startCat({ key });
      await postgresql.halt();
      expect(Date.now()).toBeLessThan(expiresAt.getTime());
      const [code] = await cat.left;
      expect([code, await cat.complaint]).toEqual([255, expect.stringContaining("access was revoked")]);
      await postgresql.resume();
      await untilEnded(cat.uid);
    });

    // The last test, because it stops the service.
    it("are in the log of a service that is stopped during an outage, with the entries that were not written", {
      tags: ["long"],
    }, async () => {
      const { service } = target.fleet;
      const cat = await startCat();
      await cat.send(5);
      await postgresql.halt();
      await cat.send(5);
      await service.stop();
      await cat.left;
      const line = service
        .logs()
        .find(({ msg, session }) => session === cat.uid && msg.includes("they are lost"));
      expect(line).toMatchObject({ entries: expect.any(Number), characters: expect.any(Number) });
    });
  },
);
