import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient, passwordCredential } from "../../../sdk/index.ts";
import { makeCertificate, openssl } from "../../support/certificate.ts";
import { type Instances, startPeers } from "../../support/instances.ts";
import { startNginx, type TestNginx, withoutNginx } from "../../support/nginx.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import type { TestService } from "../../support/service.ts";
import {
  acceptWithKey,
  newKey,
  openFolder,
  ssh,
  sshPortOf,
  startAgent,
  type TestAgent,
  withoutSsh,
} from "../../support/sshFleet.ts";

const EXAMPLE = join(import.meta.dirname, "..", "..", "..", "examples", "deploy", "nginx");
const why = withoutNginx ?? withoutSsh ?? (openssl ? undefined : "openssl is not on the PATH");
/** Returns a public key in the format that agents use. */
const agentKey = () =>
  generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ type: "pkcs1", format: "pem" });
const portOf = (url: string): number => Number(new URL(url).port);

describe.skipIf(why)(
  `three instances behind nginx, configured as in examples/deploy${why ? ` (${why})` : ""}`,
  { tags: ["long"], timeout: 120_000 },
  () => {
    const folder = openFolder();
    let instances: Instances;
    let nginx: TestNginx;
    let agent: TestAgent;
    let client: Client;
    let trusting: Agent;
    let url: string;
    let cert: string;
    let tenant: string;
    let namespace: string;
    let key: string;
    let login: { readonly username: string; readonly password: string };

    beforeAll(async () => {
      const hostKey = newKey(folder.path, "host");
      key = newKey(folder.path, "key");
      const certificate = makeCertificate(folder.path, "gate");
      cert = certificate.cert;
      instances = await startPeers(postgresqlAddress() ?? "", 3, {
        GATEHOUSE_TRUSTED_PROXIES: "127.0.0.1",
        GATEHOUSE_SSH_HOST_KEY_FILE: hostKey,
      });
      const { services } = instances;
      const files = join(folder.path, "nginx");
      mkdirSync(files);
      nginx = await startNginx({
        folder: files,
        http: join(EXAMPLE, "gatehouse.conf"),
        stream: join(EXAMPLE, "gatehouse-ssh.conf"),
        ports: 3,
        substitutes: ([http, https, tcp]) => [
          [/listen 80;/g, `listen 127.0.0.1:${http};`],
          [/listen 443 ssl;/g, `listen 127.0.0.1:${https} ssl;`],
          [/listen 22;/g, `listen 127.0.0.1:${tcp};`],
          [/gate\.example\.org\$request_uri/g, `localhost:${https}$request_uri`],
          [/server_name gate\.example\.org/g, "server_name localhost"],
          [/\/etc\/letsencrypt\S+fullchain\.pem/g, cert],
          [/\/etc\/letsencrypt\S+privkey\.pem/g, certificate.key],
          ...services.flatMap((service, index) => [
            [new RegExp(`127\\.0\\.0\\.1:808${index + 1}`, "g"), `127.0.0.1:${portOf(service.url)}`] as const,
            [new RegExp(`127\\.0\\.0\\.1:222${index + 1}`, "g"), `127.0.0.1:${sshPortOf(service)}`] as const,
          ]),
        ],
      });
      url = `https://localhost:${nginx.ports[1]}`;
      const ca = readFileSync(cert, "utf8");
      trusting = new Agent({ connect: { ca } });
      login = await (services[0] as TestService).setup();
      client = createClient({ url, ca, credential: passwordCredential(login) });
      const [first] = await client.getNamespaces({});
      tenant = first?.tenantId ?? "";
      namespace = first?.name ?? "";
      agent = await startAgent({
        url,
        tenant,
        hostname: "edge-1",
        folder: folder.path,
        env: { NODE_EXTRA_CA_CERTS: cert },
      });
      await acceptWithKey({ client }, agent.uid, key);
    });
    afterAll(async () => {
      await agent?.kill();
      await client?.close();
      await trusting?.close();
      await nginx?.stop();
      await instances?.stop();
      folder.remove();
    });

    it("serve only HTTPS, and use the clients' addresses and the public address", async () => {
      const plain = await request(`http://127.0.0.1:${nginx.ports[0]}/api/devices?page=2`, {
        headers: { host: "localhost" },
      });
      await plain.body.dump();
      expect([plain.statusCode, plain.headers.location]).toEqual([308, `${url}/api/devices?page=2`]);

      const headers = {
        "x-real-ip": "203.0.113.9",
        "x-forwarded-for": "203.0.113.9",
        "x-forwarded-host": "evil",
        "content-type": "application/json",
      };
      const info = await request(`${url}/info`, { dispatcher: trusting, headers });
      expect(info.headers["strict-transport-security"]).toBe("max-age=31536000");
      expect(await info.body.json()).toMatchObject({ endpoints: { api: `localhost:${nginx.ports[1]}` } });
      const elsewhere = new Agent({ connect: { ca: readFileSync(cert, "utf8") }, localAddress: "127.0.0.2" });
      const device = { hostname: "edge-2", identity: { mac: "02:00:00:00:0e:02" }, tenant_id: tenant };
      const machine = {
        id: "debian",
        pretty_name: "Debian",
        version: "v0.19.0",
        arch: "amd64",
        platform: "native",
      };
      const enrolled = await request(`${url}/api/devices/auth`, {
        dispatcher: elsewhere,
        headers,
        method: "POST",
        body: JSON.stringify({ ...device, info: machine, public_key: agentKey() }),
      });
      const { uid } = (await enrolled.body.json()) as { readonly uid: string };
      expect(await client.getDevice({ params: { uid } })).toMatchObject({ remoteAddr: "127.0.0.2" });
      await elsewhere.close();
    });

    it("forward requests of any size that the service accepts: long filters, and large session records", async () => {
      const statusOf = async (path: string, options: object = {}) => {
        const { statusCode, body } = await request(`${url}${path}`, { dispatcher: trusting, ...options });
        await body.dump();
        return statusCode;
      };
      // The service returns 401 for a missing credential. nginx returns another status if it rejects a request.
      expect(await statusOf(`/api/devices?filter=${"a".repeat(20_000)}`)).toBe(401);
      const record = { method: "POST", body: JSON.stringify({ data: "a".repeat(190_000) }) };
      const type = { headers: { "content-type": "application/json" } };
      expect(await statusOf("/api/sessions/a/records/0", { ...record, ...type })).toBe(401);
    });

    it("forward tunnels and logins, and firewall rules match the client's address", async () => {
      const enter = (from: string) =>
        ssh({
          to: `root@${namespace}.edge-1`,
          port: nginx.ports[2] ?? 0,
          key,
          from,
          command: "echo $GATEHOUSE_HOST",
        });
      expect(await enter("127.0.0.1")).toEqual({ code: 0, stdout: "edge-1\n", stderr: "" });
      await client.createFirewallRule({
        body: {
          action: "deny",
          priority: 1,
          sourceIp: "^127\\.0\\.0\\.2$",
          username: ".*",
          active: true,
          filter: { hostname: ".*" },
        },
      });
      expect((await enter("127.0.0.2")).code).toBe(255);
      // Logs in three times, so that the load balancer can use each of the three instances once.
      for (let count = 0; count < 3; count += 1) expect((await enter("127.0.0.1")).code).toBe(0);
    });

    it("continue when one instance dies, without an error for a client", async () => {
      const entered = await request(`${url}/api/login`, {
        dispatcher: trusting,
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(login),
      });
      const { token } = (await entered.body.json()) as { readonly token: string };
      const requests = { before: 0, after: 0 };
      const statuses = new Set<number>();
      let isDead = false;
      // The SDK would retry failed requests, so the test sends plain requests.
      const reader = async () => {
        while (requests.after < 200) {
          const when = isDead ? "after" : "before";
          const headers = { authorization: `Bearer ${token}` };
          const { statusCode, body } = await request(`${url}/api/devices`, { dispatcher: trusting, headers });
          await body.dump();
          statuses.add(statusCode);
          requests[when] += 1;
        }
      };
      const readers = Array.from({ length: 8 }, reader);
      await expect.poll(() => requests.before).toBeGreaterThan(50);
      await instances.services[1]?.kill();
      isDead = true;
      await Promise.all(readers);
      expect([...statuses]).toEqual([200]);

      // A new client with the same URL and credential reaches only the remaining instances.
      const again = createClient({
        url,
        ca: readFileSync(cert, "utf8"),
        credential: passwordCredential(login),
      });
      const names = (await again.getDevices({ query: { perPage: 10 } })).map(({ name }) => name);
      expect(names).toContain("edge-1");
      await again.close();
    });
  },
);
