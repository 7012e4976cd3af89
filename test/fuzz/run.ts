// `npm run fuzz` starts a service, and sends requests that are generated from the OpenAPI document, once for each kind
// of credential. It fails if the document does not describe a response, or if another check of Schemathesis fails.
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startService } from "../support/service.ts";
import { CREDENTIALS, type CredentialKind, configure, SECRET, secretOf } from "./configuration.ts";
import { INTERNAL_TOKEN, prepareService } from "./objects.ts";
import { installSchemathesis } from "./schemathesis.ts";

const HELP = `npm run fuzz -- [--seed N] [--max-examples N] [--credential ${CREDENTIALS.join("|")}]

  --seed          chooses the requests; the same seed generates the same requests (default: random, printed)
  --max-examples  requests for each operation in each phase (default 15: about 3 minutes in all)
  --credential    run with this credential only`;

function readOptions() {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: String(randomInt(2 ** 31)) },
      "max-examples": { type: "string", default: "15" },
      credential: { type: "string" },
    },
  });
  const { seed, credential, "max-examples": maxExamples } = values;
  if (!/^\d{1,10}$/.test(seed)) throw new Error("--seed must be a whole number of at most 10 digits");
  if (!/^[1-9]\d{0,5}$/.test(maxExamples)) throw new Error("--max-examples must be from 1 to 999999");
  const credentials = CREDENTIALS.filter((kind) => credential === undefined || kind === credential);
  if (credentials.length === 0) throw new Error(`--credential must be one of ${CREDENTIALS.join(", ")}`);
  return { seed, maxExamples, credentials };
}

type Options = ReturnType<typeof readOptions>;

/** Fuzzes a new service with one kind of credential. Returns true if there are no findings. */
async function fuzz(command: string, kind: CredentialKind, options: Options): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-fuzz-"));
  const service = await startService({
    // The login rate limits are off. They would reject requests regardless of the values that the fuzzer generates.
    env: {
      // Only the cloud edition serves all operations.
      GATEHOUSE_EDITION: "cloud",
      GATEHOUSE_PUBLIC_URL: "https://gate.example.org",
      GATEHOUSE_LOGINS_PER_ADDRESS: "0",
      GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
      GATEHOUSE_MAXIMUM_LOCKOUT: "0",
      // The fuzzer creates sessions through the internal listener.
      GATEHOUSE_INTERNAL_PORT: "0",
      GATEHOUSE_INTERNAL_TOKEN: INTERNAL_TOKEN,
    },
  });
  try {
    const fuzzed = await prepareService(service);
    const config = configure(folder, kind, fuzzed);
    const run = ["run", `${service.url}/openapi.json`, "--url", service.url, "--seed", options.seed];
    const child = spawn(command, ["--config-file", config, ...run, "--max-examples", options.maxExamples], {
      env: { ...process.env, [SECRET]: secretOf(kind, fuzzed) },
      stdio: "inherit",
    });
    const [code] = (await once(child, "exit")) as [number | null];
    return code === 0;
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main(): Promise<boolean> {
  const options = readOptions();
  const command = installSchemathesis();
  const failed: CredentialKind[] = [];
  for (const kind of options.credentials) {
    console.log(`\n== credential: ${kind}; seed: ${options.seed}`);
    if (!(await fuzz(command, kind, options))) failed.push(kind);
  }
  if (failed.length > 0)
    console.log(`\nFindings with: ${failed.join(", ")}. Repeat with: --seed ${options.seed}`);
  return failed.length === 0;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`${(error as Error).message}\n\n${HELP}`);
  process.exitCode = 1;
}
