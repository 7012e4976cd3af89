// The demo (`npm run demo`). Previews and applies a policy in TypeScript, and changes objects out of band. Then
// reports, reviews and repairs the drift. At the end, a key expires while a session that uses the key is open.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Client, createClient, passwordCredential } from "@gatehouse-access/sdk";
import picocolors from "picocolors";
import { changeOutOfBand } from "./demo/changes.ts";
import { HELP, readFlags } from "./demo/flags.mjs";
import { copyProgram, holdSession, logIn, setEnd, startAgent, withoutSsh } from "./demo/logins.ts";
import { createUser, enroll, type Login, macOf, type Service, setUp, startService } from "./demo/service.ts";

const GATEHOUSE = fileURLToPath(new URL("../provider/bin/gatehouse.js", import.meta.url));
/** The access map that the demo writes to the current directory. */
const MAP = "access-map.html";
/** Name of the only device on which the demo runs an agent. */
const SERVED = "edge-01";
/**
 * The devices that the contractor logs in to, with the expected exit codes of `gatehouse access --explain`. The first
 * login is allowed, the key's filter denies the second, and a rule denies the third.
 */
const LOGINS = [
  [SERVED, 0],
  ["web-01", 2],
  ["edge-08", 2],
] as const;

// By default, the color library would also color the output of CI jobs.
const pc = picocolors.createColors(process.stdout.isTTY === true && !process.env.NO_COLOR);
const options = readFlags(process.argv.slice(2));

const engine = options.engine ?? (pulumiOnPath() ? "cli" : "embedded");
const started = Date.now();
let step = 0;
/** A promise that rejects if the service or the agent exits during the demo. */
const childDeath = Promise.withResolvers<never>();
childDeath.promise.catch(() => {});
/** Directory of the Pulumi program: a copy of `examples/fleet-access`. */
let program = "";
let running: ChildProcess | undefined;
let agent: Awaited<ReturnType<typeof startAgent>> | undefined;

function heading(text: string): void {
  step += 1;
  console.log(`\n${pc.bold(pc.cyan(`${step}. ${text}`))}`);
}

function pulumiOnPath(): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, "pulumi")));
}

/** Runs a `gatehouse` command as a user would. The output is printed to this terminal. */
async function gatehouse(
  env: NodeJS.ProcessEnv,
  expected: number,
  command: string,
  ...more: string[]
): Promise<void> {
  const flags = ["--stack", "demo", "--engine", engine, ...more];
  await run(env, expected, [command, program, ...flags], [command, "examples/fleet-access", ...flags]);
}

/** @param shown the arguments to print instead of the actual arguments */
async function run(
  env: NodeJS.ProcessEnv,
  expected: number,
  args: readonly string[],
  shown: readonly string[] = args,
): Promise<void> {
  const typed = shown.map((word) => (word.includes("*") ? `'${word}'` : word));
  console.log(pc.dim(`$ gatehouse ${typed.join(" ")}`));
  const child = spawn(process.execPath, [GATEHOUSE, ...args], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  running = child;
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("exit", resolve));
  running = undefined;
  if (code !== expected) {
    throw new Error(
      `gatehouse ${args[0]} failed with exit code ${code}, expected ${expected}. See its output above.`,
    );
  }
}

interface ServedDevice {
  readonly folder: string;
  readonly tenant: string;
  readonly mac: string;
}

interface PreparedFleet {
  readonly tenant: string;
  readonly bob: Login;
  readonly carla: Login;
}

async function prepareFleet(client: Client, service: Service, folder: string): Promise<PreparedFleet> {
  const bob = await createUser(service, "bob", "Bob Lind");
  const carla = await createUser(service, "carla", "Carla Nunes");
  await createUser(service, "dora", "Dora Weiss");
  const { tenant } = await client.identity();
  if (!tenant) throw new Error("the first user has no namespace");
  const names = [
    ...Array.from({ length: 12 }, (_, i) => `web-${String(i + 1).padStart(2, "0")}`),
    ...Array.from({ length: 5 }, (_, i) => `db-${String(i + 1).padStart(2, "0")}`),
    ...Array.from({ length: 8 }, (_, i) => `edge-${String(i + 1).padStart(2, "0")}`),
  ];
  // One device runs a real agent, for the logins at the end of the demo.
  const served = names.indexOf(SERVED);
  await Promise.all(names.map((name, index) => index !== served && enroll(client, tenant, name, index)));
  await enrollServed(client, service, { folder, tenant, mac: macOf(served) });
  console.log(`${names.length} devices enrolled and accepted, 4 users`);
  return { tenant, bob, carla };
}

/** Starts the agent for the logins at the end of the demo, and accepts the agent's device. */
async function enrollServed(client: Client, service: Service, device: ServedDevice): Promise<void> {
  agent = await startAgent(device.folder, service, { ...device, name: SERVED });
  agent.died.catch(childDeath.reject);
  const [pending] = await client.getDevices({ query: { status: "pending" } });
  if (!pending) throw new Error("the agent's device has not enrolled");
  await client.acceptDevice({ params: { uid: pending.uid } });
}

/** Logs in three times with the contractor's key, and explains the policy's decision for each login. */
async function logInThreeTimes(env: NodeJS.ProcessEnv, service: Service, folder: string): Promise<void> {
  if (withoutSsh)
    console.log(`Skipped the logins: ${withoutSsh}. The policy's decision for each login follows.`);
  for (const [device, code] of LOGINS) {
    const target = `support@ana.${device}`;
    if (!withoutSsh) {
      console.log(pc.dim(`$ ssh -p ${service.sshPort} -i contractor ${target}@127.0.0.1`));
      console.log(logIn(folder, service, target));
    }
    const flags = ["--key", "Contractor*", "--login", "support", "--from", "127.0.0.1", "--device", device];
    await run(env, code, ["access", "--explain", ...flags]);
  }
}

/**
 * Sets the contractor's key to expire within seconds, opens a session, and waits until the service closes the session.
 * The next run changes nothing and reports the expired key.
 * @param time the duration of a run, in milliseconds
 */
async function letKeyExpire(
  env: NodeJS.ProcessEnv,
  service: Service,
  folder: string,
  time: number,
): Promise<void> {
  const end = new Date(Date.now() + 2 * time + 10_000);
  setEnd(program, end);
  await gatehouse(env, 0, "up", "--yes");
  if (withoutSsh) {
    console.log(`Skipped the session: ${withoutSsh}.`);
    return;
  }
  const target = `support@ana.${SERVED}`;
  console.log(pc.dim(`$ ssh -p ${service.sshPort} -i contractor ${target}@127.0.0.1`));
  const message = await holdSession(folder, service, target, () => console.log("The session is open."));
  const late = ((Date.now() - end.getTime()) / 1000).toFixed(1);
  console.log(`${message}\nThe session ended ${late} s after the end of the key. Another login:`);
  console.log(logIn(folder, service, target));
  await gatehouse(env, 0, "up", "--yes");
}

/** Makes changes out of band. Bob and Carla use their own accounts, with the roles that the policy gives them. */
async function changeManually(
  ana: Client,
  { tenant, ...others }: PreparedFleet,
  { url }: Service,
): Promise<void> {
  const clientOf = (login: Login) => createClient({ url, credential: passwordCredential(login) });
  const clients = [clientOf(others.bob), clientOf(others.carla)] as const;
  try {
    const [bob, carla] = clients.map((client) => client.forTenant(tenant));
    if (!bob || !carla) throw new Error("a client is missing");
    for (const change of await changeOutOfBand({ ana, bob, carla }, tenant)) console.log(`  ${change}`);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** Quotes a string as a single word for the shell. */
const quoted = (text: string): string =>
  /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Creates the folder of the demo: the folder of `--keep`, or a temporary folder. Other users cannot read it. */
function newFolder(): string {
  if (options.keep === undefined) return mkdtempSync(join(tmpdir(), "gatehouse-demo-"));
  const folder = resolve(options.keep);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Writes the file `environment`. It sets the `gatehouse` variables for the service and the state of the demo. */
function writeEnvironment(folder: string, env: NodeJS.ProcessEnv, tenant: string): void {
  const secrets = { GATEHOUSE_PASSWORD: "password", PULUMI_CONFIG_PASSPHRASE: "passphrase" };
  const variables = Object.entries(secrets).map(([name, file]) => {
    writeFileSync(join(folder, file), `${env[name]}\n`, { mode: 0o600 });
    return [`${name}_FILE`, join(folder, file)];
  });
  const names = ["GATEHOUSE_URL", "GATEHOUSE_USERNAME", "PULUMI_BACKEND_URL"];
  const bin = fileURLToPath(new URL("../node_modules/.bin", import.meta.url));
  const lines = [
    ...[...names.map((name) => [name, env[name]]), ["GATEHOUSE_TENANT", tenant], ...variables].map(
      ([name, value = ""]) => `export ${name}=${quoted(value)}`,
    ),
    ...(engine === "embedded" ? ["export GATEHOUSE_ENGINE=embedded"] : []),
    `export PATH=${quoted(bin)}:"$PATH"`,
  ];
  writeFileSync(join(folder, "environment"), `${lines.join("\n")}\n`, { mode: 0o600 });
}

async function story(service: Service, folder: string): Promise<void> {
  heading("First user, users, devices");
  const login = await setUp(service, "ana");
  const credential = passwordCredential(login);
  const client = createClient({ url: service.url, credential });
  try {
    const fleet = await prepareFleet(client, service, folder);
    program = copyProgram(folder);
    const env = {
      ...process.env,
      GATEHOUSE_URL: service.url,
      GATEHOUSE_USERNAME: login.username,
      GATEHOUSE_PASSWORD: login.password,
      PULUMI_BACKEND_URL: `file://${folder}`,
      // The TypeScript compiler keeps its cache in this directory, which the demo deletes at the end.
      TMPDIR: folder,
      PULUMI_CONFIG_PASSPHRASE: randomBytes(12).toString("base64url"),
    };
    heading("Preview the policy");
    await gatehouse(env, 0, "preview", "--create");
    heading("Apply the policy");
    await gatehouse(env, 0, "up", "--yes");
    heading("Apply the policy again: no changes");
    const begun = Date.now();
    await gatehouse(env, 0, "up", "--yes");
    const timeOfRun = Date.now() - begun;
    heading("Three users make six changes manually, through the API");
    await changeManually(client, fleet, service);
    heading("Drift: changed objects, unmanaged objects, and the users who changed them");
    await gatehouse(env, 2, "drift", "--html", MAP);
    heading("Review: the effect of the next up on access, and blocking findings");
    await gatehouse(env, 2, "review");
    heading("Revert the drift and delete unmanaged objects");
    await gatehouse(env, 0, "drift", "--repair", "--yes");
    heading("Check the drift again: no drift");
    await gatehouse(env, 0, "drift");
    heading("Run the policy tests");
    await gatehouse(env, 0, "test");
    heading("Log in to three devices by SSH, and explain the policy's decisions");
    await logInThreeTimes({ ...env, GATEHOUSE_TENANT: fleet.tenant }, service, folder);
    // With `--keep`, the kept service has the policy of the example, in which the contractor's key expires years later.
    // So the demo does not change the expiry time.
    if (options.keep === undefined) {
      heading("Let the contractor's key expire while its session is open");
      await letKeyExpire(env, service, folder, timeOfRun);
    }
    console.log(`\nThe access map of the drift: ${MAP}`);
    if (options.destroy) {
      heading("Destroy the policy's objects");
      await gatehouse(env, 0, "destroy", "--yes");
    }
    if (options.keep !== undefined) writeEnvironment(folder, env, fleet.tenant);
  } finally {
    await client.close();
  }
}

async function main(): Promise<void> {
  console.log(pc.bold("Gatehouse: access policy as code"));
  console.log(
    `Engine: ${engine}${options.engine ? "" : ` (pulumi is ${pulumiOnPath() ? "" : "not "}on the PATH)`}`,
  );
  const folder = newFolder();
  let service: Service | undefined;
  let kept = false;
  // The running command finishes its steps and writes the state before the service stops.
  const stop = async (signal: NodeJS.Signals) => {
    if (running && running.exitCode === null && running.signalCode === null) {
      running.kill(signal);
      await once(running, "exit");
    }
    await agent?.stop();
    if (kept) return;
    await service?.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void stop(signal).finally(() => process.exit(130)));
  }
  try {
    heading("Start the bundled service");
    service = await startService(folder);
    service.died.catch(childDeath.reject);
    console.log(`${service.url}, data in ${options.keep === undefined ? "a temporary directory" : folder}`);
    await Promise.race([story(service, folder), childDeath.promise]);
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    console.log(`\n${pc.green(`Done in ${seconds} s.`)}`);
    if (options.keep !== undefined) {
      kept = true;
      service.release();
      console.log(`The service is still running at ${service.url}. To change and review its policy, run:`);
      console.log(
        `  . ${quoted(join(folder, "environment"))}\n  gatehouse review ${quoted(program)} --stack demo`,
      );
      console.log(`To stop the service, run: kill ${service.pid}; rm -r ${quoted(folder)}`);
    }
  } finally {
    await stop("SIGTERM");
  }
}

if (options.help) {
  console.log(HELP);
} else {
  main().catch((error: unknown) => {
    console.error(pc.red(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`));
    // Ends the demo even if a step still runs, for example because it waits for a child process that has exited.
    process.exit(1);
  });
}
