import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import { agentCall, createKey, type Fleet, startFleet } from "../support/fleet.ts";
import { PASSPHRASE } from "../support/gatehouse.ts";
import { ROOT } from "../support/pageCommands.ts";
import { Shell } from "../support/Shell.ts";
import type { OnEnd, PageContext } from "./PageTest.ts";

/** The URL of the service in the pages. */
const URL_IN_PAGES = /https:\/\/access\.example\.org/g;

/** A shell of the administrator `ana`, and a service with the namespace of the page. */
export interface PageFleet extends PageContext {
  readonly fleet: Fleet;
  /** An API client of `ana` for the namespace. */
  readonly client: Client;
  /** The id of the namespace. */
  readonly tenant: string;
  /** Returns the path of a file in the home directory of the shell. */
  path(...names: string[]): string;
}

/** The name and the tags of each device. */
const DEVICES = [
  ["web-01", "prod", "web"],
  ["web-02", "prod", "web"],
  ["db-1", "prod"],
] as const;

interface PageFleetOptions {
  /** The name of the namespace. @default "fleet" */
  readonly namespace?: string;
  /** True for a namespace with devices without tags, and no other object. */
  readonly empty?: boolean;
  /** A running service, which the caller stops. @default a new service */
  readonly fleet?: Fleet;
}

/**
 * Starts a service with a namespace of three devices, two keys, a firewall rule and a member, and a shell with the
 * commands of this repository. The shell has the files of the pages' settings, but not the settings.
 */
export async function startPageFleet(
  folder: string,
  onEnd: OnEnd,
  { namespace = "fleet", empty = false, fleet: given }: PageFleetOptions = {},
): Promise<PageFleet> {
  const fleet = given ?? (await startFleet());
  if (given === undefined) onEnd(fleet.stop);
  const password = "correct-horse";
  for (const username of ["ana", "carla"]) {
    await fleet.service.createUser({ username, password, email: `${username}@example.org` });
  }
  const user = createClient({
    url: fleet.service.url,
    credential: passwordCredential({ username: "ana", password }),
  });
  onEnd(() => user.close());
  const { tenantId: tenant } = await user.createNamespace({ body: { name: namespace } });
  const client = user.forTenant(tenant);
  for (const [name, ...tags] of DEVICES) {
    await enroll(client, tenant, name, ...(empty ? [] : tags));
  }
  if (!empty) await addPolicy(client, tenant);

  const shell = shellIn(folder);
  mkdirSync(join(folder, "secrets"), { mode: 0o700 });
  const path = (...names: string[]) => join(folder, ...names);
  writeFileSync(path("secrets", "ana"), `${password}\n`, { mode: 0o600 });
  writeFileSync(path("secrets", "passphrase"), `${PASSPHRASE}\n`, { mode: 0o600 });
  shell.substitute(/\/run\/secrets\//g, `${path("secrets")}/`);
  // `~` is the home directory of the operating system's user, not `HOME`.
  shell.substitute(/file:\/\/~/, `file://${folder}`);
  shell.substitute(URL_IN_PAGES, fleet.service.url);
  return {
    shell,
    fleet,
    client,
    tenant,
    path,
  };
}

/** Creates objects in a namespace, like a user without a program. */
async function addPolicy(client: Client, tenant: string): Promise<void> {
  await createKey(client, "ana", "^(ana|root)$", { tags: ["prod"] });
  await createKey(client, "bob", "^bob$", { hostname: "^web-" });
  const filter = { tags: ["prod"] };
  const rule = { action: "deny" as const, active: true, priority: 10, sourceIp: "^203\\.0\\.113\\." };
  await client.createFirewallRule({ body: { ...rule, username: ".*", filter } });
  await client.inviteMember({ params: { tenant }, body: { email: "carla@example.org", role: "observer" } });
}

/** Enrolls and accepts a device, and sets its tags. Returns its uid. */
export async function enroll(
  client: Client,
  tenant: string,
  name: string,
  ...tags: string[]
): Promise<string> {
  // Each device needs a MAC address of its own, and each of these names has six characters or fewer.
  const mac = Buffer.from(name.padEnd(6, "."))
    .toString("hex")
    .slice(0, 12)
    .replace(/..(?!$)/g, "$&:");
  const { uid } = await agentCall(client, name, mac, tenant);
  await client.acceptDevice({ params: { uid } });
  if (tags.length > 0) await client.updateDeviceTags({ params: { uid }, body: { tags } });
  return uid;
}

/** Returns a shell with the commands of this repository. Its programs import the packages of this repository. */
export function shellIn(folder: string): Shell {
  const shell = new Shell(folder, [join(ROOT, "node_modules", ".bin")], {
    GATEHOUSE_ENGINE: "embedded",
    GATEHOUSE_RETRY_TIMEOUT: "2",
  });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  // The packages of this repository are on the PATH already. Their names must be correct.
  shell.command("npm", NPM);
  shell.command("npx", 'exec "$@"');
  return shell;
}

const NAMES = ["sdk", "provider", "server", "agent"].map((name) => `@gatehouse-access/${name}`);

const NPM = `[ "$1" = install ] || exit 1
shift
for name; do
  case "$name" in
    --global|${NAMES.join("|")}) ;;
    *) echo "npm: no replacement for $name" >&2; exit 1 ;;
  esac
done`;

/** The settings of a user, for pages that describe no settings. */
export async function setSettings({ shell, fleet, path }: PageFleet): Promise<void> {
  for (const [name, value] of [
    ["GATEHOUSE_URL", fleet.service.url],
    ["GATEHOUSE_USERNAME", "ana"],
    ["GATEHOUSE_PASSWORD_FILE", path("secrets", "ana")],
    ["PULUMI_BACKEND_URL", `file://${shell.folder}`],
    ["PULUMI_CONFIG_PASSPHRASE_FILE", path("secrets", "passphrase")],
  ]) {
    await shell.type(`export ${name}=${value}`);
  }
}
