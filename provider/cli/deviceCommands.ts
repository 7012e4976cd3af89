import { setTimeout as delay } from "node:timers/promises";
import { type Command, Option } from "@commander-js/extra-typings";
import { DeclinedError, EngineError } from "../engine/index.ts";
import type { Connection } from "../service/connection.ts";
import type { Device } from "../service/listings.ts";
import type { DeviceLookup } from "../service/lookups.ts";
import { byText, counted, firstOf, printable, printableLines, tableLines } from "../words.ts";
import type { ActionOf, CommandOutput, Io } from "./commandOutput.ts";
import { addConfigurationFlags, configurationOf, type FlagsOf, FOLDER, JSON_RESULT } from "./flags.ts";
import { addHelp } from "./help.ts";
import { ask, canPrompt } from "./prompt.ts";
import { withConnection } from "./service.ts";
import { parseGateway } from "./sshConfigCommand.ts";

const STATUSES = ["pending", "accepted", "rejected"] as const;

type Flags = FlagsOf<typeof subcommand<"list">>;

/** A device, as `gatehouse device list --json` prints it. */
interface ListedDevice extends Pick<Device, "uid" | "name" | "status" | "online" | "tags"> {
  readonly mac: string;
  /** The IP address that the device had when it last reported to the service. */
  readonly address: string;
}

const PAGE = "docs/get-started/first-device.md";

/** The maximum number of devices that an error lists. */
const LISTED = 20;

/** The interval between two reads of the pending devices, in milliseconds. */
const POLL_INTERVAL = 2000;

/** Adds `gatehouse device` with its subcommands. */
export function addDeviceCommands(program: Command, action: ActionOf): void {
  const devices = program.command("device");
  addHelp(devices, {
    group: "Operate a fleet:",
    summary: "Enroll, accept and list devices.",
    examples: ["gatehouse device enroll", "gatehouse device list --status pending"],
    page: PAGE,
  });
  addHelp(subcommand(devices, "enroll").action(action(enroll)), {
    summary: "Print the command that connects a device, wait for the device, and accept it.",
    notes: `
The command waits until a device enrolls in the namespace, shows the device, and
prompts before it accepts the device. Compare the uid with the uid in the log of the
agent: every client that knows the id of the namespace can enroll a device.
The command does not show devices that were pending before its start. Use
"gatehouse device list --status pending" and "gatehouse device accept".`,
    examples: ["gatehouse device enroll"],
    page: PAGE,
  });
  addHelp(acceptCommand(devices).action(action(accept)), {
    summary: "Accept a pending or rejected device, so that logins are possible.",
    description: "<device> is the name or the uid of a device.",
    notes: `
A device replaces an accepted device that has the same MAC address. With --yes, give
the uid of such a device.`,
    examples: ["gatehouse device accept web-01", "gatehouse device accept <uid> --yes"],
    page: PAGE,
  });
  addHelp(listCommand(devices).action(action(list)), {
    summary: "List the devices of the namespace.",
    examples: ["gatehouse device list", "gatehouse device list --status pending --json"],
    page: PAGE,
  });
}

const subcommand = <Usage extends string>(devices: Command, usage: Usage) =>
  addConfigurationFlags(devices.command(usage)).option("--folder <folder>", `${FOLDER}, for --stack`, ".");

const acceptCommand = (devices: Command) =>
  subcommand(devices, "accept <device>").option(
    "-y, --yes",
    "Skip the confirmation; required without a terminal",
    false,
  );

const listCommand = (devices: Command) =>
  subcommand(devices, "list")
    .addOption(new Option("--status <status>", "List only devices with this status").choices(STATUSES))
    .option("--json", JSON_RESULT);

const connected = async <T>(io: Io, flags: Flags, work: (connection: Connection) => Promise<T>): Promise<T> =>
  withConnection(io, await configurationOf(io, flags.folder, flags), work);

async function devicesIn(connection: Connection, lookup: DeviceLookup): Promise<readonly Device[]> {
  const { devicesOf } = await import("../service/lookups.ts");
  const devices = await devicesOf(connection, lookup);
  return devices.toSorted((left, right) => byText(left.name, right.name));
}

async function enroll(io: Io, flags: Flags): Promise<CommandOutput> {
  if (!canPrompt(io)) {
    throw new EngineError(
      "confirmation_required",
      "`device enroll` prompts before it accepts a device, but the standard input or output is not a terminal. Use `device accept <device> --yes`.",
    );
  }
  return connected(io, flags, async (connection) => {
    const { newestPending } = await import("../service/lookups.ts");
    const { tenant } = await connection.tenant(undefined);
    const shown = new Set((await devicesIn(connection, { status: "pending" })).map(({ uid }) => uid));
    const text = await instructions(connection.client.url, tenant, shown.size);
    io.stdout.write(`${printableLines(text)}\n`);
    for (;;) {
      const device = (await newestPending(connection)).find(({ uid }) => !shown.has(uid));
      if (device === undefined) {
        await delay(POLL_INTERVAL);
        continue;
      }
      shown.add(device.uid);
      io.stdout.write("\n");
      if (await isConfirmed(io, device, await replacedDevice(connection, device)))
        return accepted(connection, device);
      io.stdout.write("The device stays pending. Waiting for another device …\n");
    }
  });
}

async function isConfirmed(io: Io, device: Device, replaced: Device | undefined): Promise<boolean> {
  io.stdout.write(`${describe(device, replaced)}\n`);
  return ask(io, "Accept this device?");
}

async function replacedDevice(connection: Connection, device: Device): Promise<Device | undefined> {
  const { replacedBy } = await import("../service/lookups.ts");
  return replacedBy(connection, device);
}

async function accept(io: Io, name: string, flags: FlagsOf<typeof acceptCommand>): Promise<CommandOutput> {
  return connected(io, flags, async (connection) => {
    const device = await selected(connection, name);
    if (device.status === "accepted") {
      return { text: () => `${printable(device.name)} is already accepted.` };
    }
    if (!flags.yes && !canPrompt(io)) {
      throw new EngineError(
        "confirmation_required",
        "`device accept` needs a confirmation, but the standard input or output is not a terminal. Add --yes. Nothing was changed.",
      );
    }
    const replaced = await replacedDevice(connection, device);
    if (!flags.yes && !(await isConfirmed(io, device, replaced))) throw new DeclinedError();
    if (flags.yes && replaced && name !== device.uid) {
      throw new EngineError(
        "usage",
        `The device ${identified(device)} would replace the accepted device ${identified(replaced)}, which has the same MAC address. ` +
          `To confirm, give the uid: gatehouse device accept ${printable(device.uid)} --yes. Nothing was changed.`,
      );
    }
    return accepted(connection, device);
  });
}

async function list(io: Io, flags: FlagsOf<typeof listCommand>): Promise<CommandOutput> {
  return connected(io, flags, async (connection) => {
    const devices = await devicesIn(connection, flags.status === undefined ? {} : { status: flags.status });
    const listed = devices.map(
      ({ uid, name, status, online, tags, identity, remoteAddr }): ListedDevice => ({
        uid,
        name,
        status,
        online,
        tags,
        mac: identity.mac,
        address: remoteAddr,
      }),
    );
    const kind = flags.status === undefined ? "device" : `${flags.status} device`;
    const text = () => (listed.length === 0 ? `The namespace has no ${kind}.` : tableOf(listed));
    return { result: { devices: listed }, text };
  });
}

function tableOf(devices: readonly ListedDevice[]): string {
  const rows = devices.map(({ name, status, online, tags, address, uid }) =>
    [name, status, onlineText(online), tags.join(", "), address, uid].map(printable),
  );
  const head = ["NAME", "STATUS", "ONLINE", "TAGS", "ADDRESS", "UID"];
  return [...tableLines([head, ...rows])].join("").trimEnd();
}

const onlineText = (online: boolean): string => (online ? "online" : "offline");

const identified = ({ name, uid }: Device): string => printable(`${name} (uid ${uid})`);

/** Returns the device with this name or uid. @throws EngineError (`usage`) unless exactly one device matches */
async function selected(connection: Connection, text: string): Promise<Device> {
  const { deviceKey, devices } = await import("../resources/deviceSelector.ts");
  const { listing } = await connection.tenant(undefined);
  const withUid = deviceKey(text) === text ? await listing(devices).find(text) : undefined;
  if (withUid) return withUid;
  const named = await devicesIn(connection, { name: text });
  const waiting = named.filter(({ status }) => status !== "accepted");
  const matching = waiting.length > 0 ? waiting : named;
  const [only, ...others] = matching;
  if (only !== undefined && others.length === 0) return only;
  if (only !== undefined) {
    const choices = matching
      .slice(0, LISTED)
      .map(({ uid, status, remoteAddr }) => `\n  ${printable(`${uid} (${status}, from ${remoteAddr})`)}`);
    throw new EngineError(
      "usage",
      `${counted(matching.length, "device")} have the name ${text}. Give a uid:${choices.join("")}`,
    );
  }
  const pending = await devicesIn(connection, { status: "pending" });
  const names = pending.map(({ name }) => printable(name));
  const known =
    names.length === 0
      ? "The namespace has no pending device. Run gatehouse device enroll."
      : `Pending devices: ${firstOf(names, LISTED)}.`;
  throw new EngineError("usage", `The namespace has no device "${text}". ${known}`);
}

async function accepted(connection: Connection, { uid, tenantId }: Device): Promise<CommandOutput> {
  const client = connection.client.forTenant(tenantId);
  const { ssh } = (await client.getInfo({})).endpoints;
  await client.acceptDevice({ params: { uid } });
  // A device that replaces an earlier device of the same machine receives the name of the earlier device.
  const { name, namespace } = await client.getDevice({ params: { uid } });
  const gateway = parseGateway(ssh);
  const lines = [`Accepted ${name}.`];
  if (gateway) {
    const port = gateway.port === 22 ? "" : `-p ${gateway.port} `;
    lines[0] += " If the policy allows the login, connect with:";
    lines.push(`  ssh ${port}<login>@${namespace}.${name}@${gateway.host}`);
  }
  return { text: () => lines.map(printable).join("\n") };
}

const describe = (
  { name, uid, status, online, identity, info, remoteAddr }: Device,
  replaced: Device | undefined,
): string =>
  [
    `Device ${name}`,
    `  uid      ${uid}`,
    `  status   ${status}, ${onlineText(online)}`,
    `  MAC      ${identity.mac}`,
    `  system   ${info.prettyName} (${info.arch}), agent ${info.version}`,
    `  address  ${remoteAddr}`,
    ...(replaced
      ? [
          `  replaces the accepted device ${identified(replaced)}`,
          "           The other device is deleted. Its name and sessions pass to this device.",
        ]
      : []),
  ]
    .map(printable)
    .join("\n");

async function instructions(url: string, tenant: string, pending: number): Promise<string> {
  const notes = [
    await addressNote(url),
    pending > 0 &&
      `${counted(pending, "device")} ${pending === 1 ? "is" : "are"} already pending. To list, run: gatehouse device list --status pending`,
  ];
  return `On the device, run one of these commands:

  gatehouse-agent run --url ${url} --tenant ${tenant}      # as root, add --user <name>: logins run as this user
  curl -fsSL '${url}/install.sh?tenant_id=${tenant}' | sh    # the agent as a container, with Docker or Podman

To install gatehouse-agent, run: npm install --global @gatehouse-access/agent (Node.js 22.19 or newer)

${notes.map((note) => (note ? `${note}\n\n` : "")).join("")}Waiting for a device … (Ctrl-C to stop)`;
}

/** Returns a note if an agent on a different machine cannot use the address of the service. */
async function addressNote(url: string): Promise<string | undefined> {
  const { isLoopbackHost } = await import("@gatehouse-access/sdk");
  const { protocol, hostname } = new URL(url);
  if (isLoopbackHost(hostname)) return "The address works only on this machine.";
  if (protocol === "https:") return undefined;
  return (
    "gatehouse-agent rejects this http:// address. Use an https:// address, or add --allow-http. " +
    "With --allow-http, an attacker on the network can read the device's token and log in."
  );
}
