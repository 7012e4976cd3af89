import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import { callAdmin } from "../../server/admin/adminClient.ts";
import { SERVICE_COMMAND, startProcess } from "../server/process.ts";
import { inputsAt } from "./modules.ts";

/** The service that rules are made at, with its first user. */
export interface BenchService {
  readonly url: string;
  /** What the provider needs to act as the first user. */
  readonly env: Readonly<Record<string, string>>;
  /** Makes so many rules; gives what a state says of each, in their order. */
  makeRules(count: number): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
}

/** Each command logs in, and there are more commands in a minute than one user has. */
const WITHOUT_LIMITS = { GATEHOUSE_LOGINS_PER_ADDRESS: "0", GATEHOUSE_LOGINS_PER_ACCOUNT: "0" };

const LOGIN = { username: "bench", password: "correct-horse" };

/** Requests at a time. */
const CONCURRENT = 16;

/** Starts a service with its data in the folder, on SQLite, and makes its first user. */
export async function startService(folder: string): Promise<BenchService> {
  const dataFolder = join(folder, "data");
  mkdirSync(dataFolder);
  const server = await startProcess([SERVICE_COMMAND, "serve", "--data-dir", dataFolder, "--port", "0"], {
    log: join(folder, "service.log"),
    env: WITHOUT_LIMITS,
  });
  const { url } = server;
  const anonymous = createClient({ url });
  const { sign } = await callAdmin<{ sign: string }>(dataFolder, "GET", "/setup-link");
  const person = { name: LOGIN.username, email: `${LOGIN.username}@example.com` };
  await anonymous.setup({ query: { sign }, body: { ...person, ...LOGIN } });
  await anonymous.close();
  const client = createClient({ url, credential: passwordCredential(LOGIN) });
  const { tenant } = await client.identity();
  if (!tenant) throw new Error("the first user has no namespace");
  return {
    url,
    env: {
      GATEHOUSE_URL: url,
      GATEHOUSE_USERNAME: LOGIN.username,
      GATEHOUSE_PASSWORD: LOGIN.password,
      GATEHOUSE_TENANT: tenant,
    },
    makeRules: (count) => makeRules(client, tenant, count),
    async stop() {
      await client.close();
      await server.stop();
    },
  };
}

async function makeRules(client: Client, tenant: string, count: number): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = new Array(count);
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next++;
      const { source_ip, ...inputs } = inputsAt(index);
      const body = { ...inputs, sourceIp: source_ip, filter: { hostname: ".*" }, active: true };
      const { id } = await client.createFirewallRule({ body });
      rows[index] = { ...inputs, source_ip, tenant, id: `${tenant}/${id}`, rule_id: id };
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, worker));
  return rows;
}
