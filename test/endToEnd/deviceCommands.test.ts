import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../sdk/index.ts";
import { environmentWithout } from "../support/command.ts";
import { agentCall, type Fleet, newAgentKey, startFleet } from "../support/fleet.ts";
import { COMMAND, gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { listening } from "../support/listening.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { openTerminal, type Terminal } from "../support/terminal.ts";

const [CTRL_C, CTRL_D] = ["\u0003", "\u0004"];

const fleet = sharedFleet([], { env: { GATEHOUSE_SSH_ENDPOINT: "gate.example.org:2222" } });

/** A namespace with devices that only the calling test uses. */
interface Namespace {
  readonly name: string;
  readonly tenant: string;
  readonly client: Client;
  readonly env: Record<string, string>;
  /** Enrolls a pending device. Returns its uid. */
  enroll(hostname: string, mac?: string): Promise<string>;
  /** Enrolls a device and accepts it. Returns its uid. */
  accepted(hostname: string, mac?: string): Promise<string>;
  /** Enrolls a device and rejects it. Returns its uid. */
  rejected(hostname: string): Promise<string>;
  status(uid: string): Promise<string>;
}

let [namespaces, macs] = [0, 0];

async function newNamespace({ client, env }: Fleet = fleet): Promise<Namespace> {
  namespaces += 1;
  const name = `lab-${namespaces}`;
  const { tenantId: tenant } = await client.createNamespace({ body: { name } });
  const own = client.forTenant(tenant);
  const newMac = () => {
    macs += 1;
    return `02:00:00:00:01:${macs.toString(16).padStart(2, "0")}`;
  };
  const enroll = async (hostname: string, mac = newMac()) =>
    (await agentCall(own, hostname, mac, tenant)).uid;
  return {
    name,
    tenant,
    client: own,
    env: { ...env, GATEHOUSE_TENANT: tenant },
    enroll,
    async accepted(hostname, mac) {
      const uid = await enroll(hostname, mac);
      await own.acceptDevice({ params: { uid } });
      return uid;
    },
    async rejected(hostname) {
      const uid = await enroll(hostname);
      await own.updateDeviceStatus({ params: { uid, status: "reject" } });
      return uid;
    },
    status: async (uid) => (await own.getDevice({ params: { uid } })).status,
  };
}

/** Runs `gatehouse device` in a terminal. */
const inTerminal = (env: Record<string, string>, ...args: readonly string[]) =>
  openTerminal(process.execPath, [COMMAND, "device", ...args], {
    env: { ...environmentWithout("GATEHOUSE_", "PULUMI_"), ...env },
  });

/** Runs `gatehouse device enroll` in a terminal, and waits until the command waits for a device. */
async function enrolling(env: Record<string, string>): Promise<Terminal> {
  const terminal = inTerminal(env, "enroll");
  await terminal.untilShown("Waiting for a device … (Ctrl-C to stop)");
  return terminal;
}

/** Runs `gatehouse device accept` in a terminal, and waits for the prompt. */
async function accepting(env: Record<string, string>, device = "web-1"): Promise<Terminal> {
  const terminal = inTerminal(env, "accept", device);
  await terminal.untilShown("[y/N] ");
  return terminal;
}

/** Presses Ctrl-C, and expects that the command ends. */
async function expectStopped(terminal: Terminal): Promise<void> {
  terminal.press(CTRL_C);
  expect(await terminal.code).toBe(130);
}

const page = readFileSync(new URL("../../docs/get-started/first-device.md", import.meta.url), "utf8");
/** The output in the documentation. */
const onPage = /```console\n(.*?)```/s.exec(page)?.[1] ?? "";
const firstWords = (output: string) =>
  stripVTControlCharacters(output)
    .trim()
    .split(/\r?\n */)
    .map((line) => line.split(" ")[0]);

/** Returns the address of a proxy that replaces a text in the responses of the service. */
async function replacing(text: string, replacement: string): Promise<string> {
  const proxy = await listening(
    createServer(async (request, answer) => {
      const headers = { "x-api-key": String(request.headers["x-api-key"]) };
      const { method = "GET", url } = request;
      const response = await fetch(`${fleet.service.url}${url}`, { method, headers });
      const body = (await response.text()).replaceAll(text, replacement);
      answer.writeHead(response.status, { "content-type": "application/json" }).end(body);
    }),
  );
  onTestFinished(() => proxy.stop());
  return proxy.url;
}

const apiKeyEnv = async ({ client, tenant }: Namespace, role: "observer" | "operator") => ({
  GATEHOUSE_URL: fleet.service.url,
  GATEHOUSE_TENANT: tenant,
  GATEHOUSE_API_KEY: (await client.createApiKey({ body: { name: role, role, expiresAt: 30 } })).id,
});

describe("gatehouse device list", () => {
  test("lists name, status, connection, tags, address and uid, sorted by name", async () => {
    const lab = await newNamespace();
    const [ten, two] = [await lab.accepted("web-10"), await lab.enroll("web-2")];
    const bad = await lab.rejected("bad");
    await lab.client.updateDeviceTags({ params: { uid: ten }, body: { tags: ["prod", "edge"] } });
    const { code, stdout } = await gatehouse(["device", "list"], lab.env);
    expect(stdout).toBe(
      [
        "NAME    STATUS    ONLINE  TAGS        ADDRESS    UID",
        `bad     rejected  online              127.0.0.1  ${bad}`,
        `web-2   pending   online              127.0.0.1  ${two}`,
        `web-10  accepted  online  prod, edge  127.0.0.1  ${ten}`,
        "",
      ].join("\n"),
    );
    expect(code).toBe(0);
    for (const [status, uid] of Object.entries({ accepted: ten, pending: two, rejected: bad })) {
      const lines = (await gatehouse(["device", "list", "--status", status], lab.env)).stdout.split("\n");
      expect(lines).toEqual([expect.stringMatching(/^NAME /), expect.stringContaining(uid), ""]);
    }
  });

  test("prints JSON with the MAC address of each device", async () => {
    const lab = await newNamespace();
    const empty = await gatehouse(["device", "list", "--json"], lab.env);
    expect(JSON.parse(empty.stdout)).toEqual({ devices: [] });
    const mac = "02:00:00:00:02:09";
    const uid = await lab.accepted("web-1", mac);
    await lab.client.updateDeviceTags({ params: { uid }, body: { tags: ["prod"] } });
    const { code, stdout } = await gatehouse(["device", "list", "--json"], lab.env);
    const device = { uid, name: "web-1", status: "accepted", online: true, tags: ["prod"], mac };
    expect(JSON.parse(stdout)).toEqual({ devices: [{ ...device, address: "127.0.0.1" }] });
    expect(code).toBe(0);
  });

  test("prints a sentence for an empty list", async () => {
    const { env } = await newNamespace();
    expect(await gatehouse(["device", "list"], env)).toMatchObject({
      code: 0,
      stdout: "The namespace has no device.\n",
    });
    const pending = await gatehouse(["device", "list", "--status", "pending"], env);
    expect(pending.stdout).toBe("The namespace has no pending device.\n");
  });

  test("rejects an unknown status", async () => {
    expect(await gatehouse(["device", "list", "--status", "open"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/--status.*pending, accepted, rejected/),
    });
  });

  // 150,000 devices take 5 seconds.
  test("prints more devices than a function call can have arguments", { tags: ["long"] }, async () => {
    const lab = await newNamespace();
    await lab.enroll("web-1");
    const env = await apiKeyEnv(lab, "observer");
    const [device] = (await (
      await fetch(`${fleet.service.url}/api/devices`, { headers: { "x-api-key": env.GATEHOUSE_API_KEY } })
    ).json()) as [object];
    const count = 150_000;
    const pages = await listening(
      createServer(async ({ url = "" }, answer) => {
        if (!url.startsWith("/api/devices")) {
          const other = await fetch(fleet.service.url + url, {
            headers: { "x-api-key": env.GATEHOUSE_API_KEY },
          });
          answer.writeHead(other.status, { "content-type": "application/json" }).end(await other.text());
          return;
        }
        const page = Number(new URL(url, "http://x").searchParams.get("page") ?? 1);
        const numbers = Array.from({ length: 100 }, (_, index) => (page - 1) * 100 + index);
        const body = numbers.filter((n) => n < count).map((n) => ({ ...device, name: `web-${n}` }));
        answer.writeHead(200, { "content-type": "application/json", "x-total-count": String(count) });
        answer.end(JSON.stringify(body));
      }),
    );
    onTestFinished(() => pages.stop());
    const { code, stdout } = await gatehouse(["device", "list"], { ...env, GATEHOUSE_URL: pages.url });
    expect([code, stdout.split("\n").length]).toEqual([0, count + 2]);
  });
});

describe("gatehouse device accept", () => {
  test("accepts a device by its name in any letter case, and prints the SSH command", async () => {
    const lab = await newNamespace();
    const uid = await lab.enroll("web-1");
    expect(await gatehouse(["device", "accept", "WEB-1", "--yes"], lab.env)).toEqual({
      code: 0,
      stdout:
        "Accepted web-1. If the policy allows the login, connect with:\n" +
        `  ssh -p 2222 <login>@${lab.name}.web-1@gate.example.org\n`,
      stderr: "",
    });
    expect(await lab.status(uid)).toBe("accepted");
  });

  test("accepts a device by its uid, and a rejected device", async () => {
    const lab = await newNamespace();
    const uid = await lab.rejected("web-1");
    const { code, stdout } = await gatehouse(["device", "accept", uid, "-y"], lab.env);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Accepted web-1.")]);
    expect(await lab.status(uid)).toBe("accepted");
  });

  test("changes nothing for an accepted device", async () => {
    const lab = await newNamespace();
    const uid = await lab.accepted("web-1");
    const accepted = { code: 0, stdout: "web-1 is already accepted.\n", stderr: "" };
    for (const selector of ["web-1", uid])
      expect(await gatehouse(["device", "accept", selector], lab.env)).toEqual(accepted);
  });

  test("lists the pending devices if the device is unknown", async () => {
    const lab = await newNamespace();
    const unknown = await gatehouse(["device", "accept", "web-9", "--yes"], lab.env);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      'error: The namespace has no device "web-9". The namespace has no pending device. Run gatehouse device enroll. [usage]\n',
    ]);
    for (let n = 1; n <= 22; n += 1) await lab.enroll(`web-${n}`);
    await lab.enroll("db-1");
    const { stderr } = await gatehouse(["device", "accept", "f".repeat(64), "--yes"], lab.env);
    expect(stderr).toMatch(
      /no device "f{64}"\. Pending devices: db-1, web-1, web-2, .*, web-19 and 3 more\./,
    );
  });

  test("requires a uid if several devices that wait for acceptance have the name", async () => {
    const lab = await newNamespace();
    const [first, second] = [await lab.enroll("web-1"), await lab.rejected("web-1")];
    const { code, stderr } = await gatehouse(["device", "accept", "web-1", "--yes"], lab.env);
    expect([code, stderr.replace(" [usage]", "").split("\n").toSorted()]).toEqual([
      1,
      [
        "",
        ...[`  ${first} (pending, from 127.0.0.1)`, `  ${second} (rejected, from 127.0.0.1)`].toSorted(),
        "error: 2 devices have the name web-1. Give a uid:",
      ],
    ]);
    expect(await Promise.all([first, second].map(lab.status))).toEqual(["pending", "rejected"]);
    // The name then belongs to an accepted device, but the command selects the device that waits.
    await gatehouse(["device", "accept", first, "--yes"], lab.env);
    const taken = await gatehouse(["device", "accept", "web-1", "--yes"], lab.env);
    expect([taken.code, taken.stderr]).toEqual([
      1,
      expect.stringContaining("another accepted device has the same name"),
    ]);
  });

  /** Enrolls two devices with the same MAC address and accepts the first one. Returns the uids. */
  async function reinstalled(lab: Namespace, mac: string) {
    const old = await lab.accepted("web-1", mac);
    const { uid } = await agentCall(lab.client, "reinstalled", mac, lab.tenant, "v0.19.0", newAgentKey());
    return { old, uid };
  }

  test("prints the name that the device receives from the replaced device of the same machine", async () => {
    const lab = await newNamespace();
    const { uid } = await reinstalled(lab, "02:00:00:00:02:01");
    const { stdout } = await gatehouse(["device", "accept", uid, "--yes"], lab.env);
    expect(stdout).toContain(`Accepted web-1. If the policy allows the login, connect with:\n`);
    expect(stdout).toContain(`<login>@${lab.name}.web-1@`);
  });

  test("shows the accepted device that the device replaces", async () => {
    const lab = await newNamespace();
    const { old, uid } = await reinstalled(lab, "02:00:00:00:02:02");
    const terminal = await accepting(lab.env, "reinstalled");
    expect(terminal.shown()).toContain(
      `  replaces the accepted device web-1 (uid ${old})\r\n` +
        "           The other device is deleted. Its name and sessions pass to this device.\r\n",
    );
    terminal.type("y");
    await terminal.untilShown("Accepted web-1.");
    expect([await terminal.code, await lab.status(uid)]).toEqual([0, "accepted"]);
    await expect(lab.status(old)).rejects.toThrow("404");
  });

  test("--yes requires the uid of a device that replaces an accepted device", async () => {
    const lab = await newNamespace();
    const { old, uid } = await reinstalled(lab, "02:00:00:00:02:03");
    expect(await gatehouse(["device", "accept", "reinstalled", "--yes"], lab.env)).toEqual({
      code: 1,
      stdout: "",
      stderr:
        `error: The device reinstalled (uid ${uid}) would replace the accepted device web-1 (uid ${old}), which has the same MAC address. ` +
        `To confirm, give the uid: gatehouse device accept ${uid} --yes. Nothing was changed. [usage]\n`,
    });
    expect([await lab.status(old), await lab.status(uid)]).toEqual(["accepted", "pending"]);
  });

  test("fails without a terminal unless --yes is given", async () => {
    const lab = await newNamespace();
    const uid = await lab.enroll("web-1");
    expect(await spawnGatehouse(["device", "accept", "web-1"], lab.env)).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "error: `device accept` needs a confirmation, but the standard input or output is not a terminal. Add --yes. " +
        "Nothing was changed. [confirmation_required]\n",
    });
    expect(await lab.status(uid)).toBe("pending");
  });

  test("reports a missing permission", async () => {
    const lab = await newNamespace();
    const uid = await lab.enroll("web-1");
    const env = await apiKeyEnv(lab, "observer");
    expect((await gatehouse(["device", "list"], env)).stdout).toContain("web-1");
    const { code, stdout, stderr } = await gatehouse(["device", "accept", "web-1", "--yes"], env);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^error: Permission denied \(403\): needs the role operator or above\. \[acceptDevice /,
    );
    expect(await lab.status(uid)).toBe("pending");
  });

  test("reports that the namespace has the maximum number of devices", { tags: ["long"] }, async () => {
    const cloud = await startFleet([], {
      env: { GATEHOUSE_EDITION: "cloud", GATEHOUSE_PUBLIC_URL: "http://gate.example.org" },
    });
    onTestFinished(() => cloud.stop());
    for (const name of ["web-1", "web-2", "web-3"]) await cloud.enroll(name);
    await cloud.enrollPending("web-4");
    expect(await gatehouse(["device", "accept", "web-4", "--yes"], cloud.env)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the namespace can have at most 3 accepted devices"),
    });
  });

  test("shows the device at a terminal, and accepts it only after a confirmation", async () => {
    const lab = await newNamespace();
    const uid = await lab.rejected("web-1");
    const declining = await accepting(lab.env);
    expect(declining.shown()).toContain("Accept this device? [y/N] ");
    expect(declining.shown()).toContain(
      ["Device web-1", `  uid      ${uid}`, "  status   rejected, online", "  MAC      02:00:00:00:01:"].join(
        "\r\n",
      ),
    );
    declining.type("");
    await declining.untilShown("error: Nothing was changed. [declined]");
    expect([await declining.code, await lab.status(uid)]).toEqual([1, "rejected"]);

    const terminal = await accepting(lab.env);
    terminal.type("yes");
    await terminal.untilShown("Accepted web-1.");
    expect([await terminal.code, await lab.status(uid)]).toEqual([0, "accepted"]);
    expect(firstWords(terminal.shown())).toEqual(firstWords(onPage));
  });

  test.each([
    ["Ctrl-C", CTRL_C, 130],
    ["the end of the input", CTRL_D, 1],
  ])("changes nothing if %s ends the prompt", async (_, keys, code) => {
    const lab = await newNamespace();
    const uid = await lab.enroll("web-1");
    const terminal = await accepting(lab.env);
    terminal.press(keys);
    expect([await terminal.code, await lab.status(uid)]).toEqual([code, "pending"]);
    expect(terminal.shown()).not.toMatch(/Warning|unsettled/);
  });
});

describe("gatehouse device enroll", () => {
  test("fails without a terminal", async () => {
    const { env } = await newNamespace();
    expect(await spawnGatehouse(["device", "enroll"], env)).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "error: `device enroll` prompts before it accepts a device, but the standard input or output is not a terminal. " +
        "Use `device accept <device> --yes`. [confirmation_required]\n",
    });
  });

  test("waits for devices, keeps a declined device pending, and accepts the next device", async () => {
    const lab = await newNamespace();
    const terminal = await enrolling(lab.env);
    const declined = await lab.enroll("intruder");
    await terminal.untilShown("[y/N] ");
    expect(terminal.shown()).toContain(
      `Device intruder\r\n  uid      ${declined}\r\n  status   pending, online\r\n`,
    );
    terminal.type("n");
    await terminal.untilShown("The device stays pending. Waiting for another device …");
    const expected = await lab.enroll("web-1");
    await terminal.untilShown(/Device web-1.*\[y\/N\] /s);
    expect(terminal.shown()).toContain(`uid      ${expected}`);
    terminal.type("y");
    await terminal.untilShown(`ssh -p 2222 <login>@${lab.name}.web-1@gate.example.org`);
    expect(await terminal.code).toBe(0);
    expect([await lab.status(declined), await lab.status(expected)]).toEqual(["pending", "accepted"]);
  });

  test("prints the number of pending devices, and prompts only for devices that enroll later", async () => {
    const lab = await newNamespace();
    const earlier = await lab.enroll("earlier");
    const terminal = await enrolling(lab.env);
    expect(terminal.shown()).toContain(
      "1 device is already pending. To list, run: gatehouse device list --status pending\r\n",
    );
    const uid = await lab.enroll("web-1");
    await terminal.untilShown("[y/N] ");
    terminal.type("y");
    expect([await terminal.code, await lab.status(uid)]).toEqual([0, "accepted"]);
    expect(terminal.shown()).not.toContain("Device earlier");
    expect(await lab.status(earlier)).toBe("pending");
  });

  test("finds a new device among more pending devices than a page has", async () => {
    const lab = await newNamespace();
    for (let n = 1; n <= 101; n += 1) await lab.enroll(`old-${n}`);
    const terminal = await enrolling(lab.env);
    expect(terminal.shown()).toContain("101 devices are already pending.");
    await lab.enroll("web-1");
    await terminal.untilShown("Device web-1");
    await terminal.untilShown("[y/N] ");
    await expectStopped(terminal);
  });

  test("discards an answer that the user types before the prompt", async () => {
    const lab = await newNamespace();
    const terminal = await enrolling(lab.env);
    terminal.type("y");
    terminal.press("y");
    const uid = await lab.enroll("intruder");
    await terminal.untilShown("[y/N] ");
    terminal.type("n");
    await terminal.untilShown("The device stays pending.");
    expect(await lab.status(uid)).toBe("pending");
    await expectStopped(terminal);
  });

  test.each([
    ["127.0.0.1", "The address works only on this machine.\r\n"],
    // Connects to 127.0.0.1, but does not have the form of a loopback address.
    ["[::ffff:127.0.0.1]", "gatehouse-agent rejects this http:// address. Use an https:// address"],
  ])("prints a note about the http:// address of %s", async (host, note) => {
    const { env } = await newNamespace();
    const url = fleet.service.url.replace("127.0.0.1", host);
    const terminal = await enrolling({ ...env, GATEHOUSE_URL: url });
    expect(terminal.shown()).toContain(note);
    await expectStopped(terminal);
  });

  test("prints the address of an install script that enrolls in this namespace", async () => {
    const lab = await newNamespace();
    const terminal = await enrolling(lab.env);
    const address = /curl -fsSL '(\S+)' \| sh/.exec(terminal.shown())?.[1] ?? "";
    const response = await fetch(address);
    expect(response.status).toBe(200);
    const script = await response.text();
    expect(script).toContain(`default_tenant_id='${lab.tenant}'`);
    expect(script).toContain(`default_server_address='${fleet.service.url}'`);
    await expectStopped(terminal);
  });

  test("exits with 130 if Ctrl-C ends the prompt", async () => {
    const lab = await newNamespace();
    const terminal = await enrolling(lab.env);
    await lab.enroll("web-1");
    await terminal.untilShown("[y/N] ");
    await expectStopped(terminal);
  });
});

test("texts from the service cannot control the terminal or add lines", async () => {
  const lab = await newNamespace();
  const uid = await lab.enroll("web-1");
  const env = await apiKeyEnv(lab, "operator");
  const hostile = { ...env, GATEHOUSE_URL: await replacing('"web-1"', '"web-1\\u001b[2J\\nAccepted db-1"') };
  const shown = "web-1\\u{1b}[2J\\u{a}Accepted db-1";
  const listed = await gatehouse(["device", "list"], hostile);
  expect(listed.stdout.split("\n")).toHaveLength(3);
  expect(listed.stdout).toContain(shown);
  const unknown = await gatehouse(["device", "accept", "db-1", "--yes"], hostile);
  expect(unknown.stderr).toBe(
    `error: The namespace has no device "db-1". Pending devices: ${shown}. [usage]\n`,
  );
  const terminal = await accepting(hostile, uid);
  expect(terminal.shown()).toContain(`Device ${shown}\r\n`);
  terminal.type("y");
  await terminal.untilShown(`Accepted ${shown}. If`);
  expect(await terminal.code).toBe(0);
  const again = await gatehouse(["device", "accept", uid, "--yes"], hostile);
  expect(again.stdout).toBe(`${shown} is already accepted.\n`);
});

test("the device is accepted even if the service publishes no usable SSH address", async () => {
  const lab = await newNamespace();
  const uid = await lab.enroll("web-1");
  const env = await apiKeyEnv(lab, "operator");
  const hostile = { ...env, GATEHOUSE_URL: await replacing("gate.example.org:2222", "-oProxyCommand=id") };
  expect(await gatehouse(["device", "accept", "web-1", "--yes"], hostile)).toMatchObject({
    code: 0,
    stdout: "Accepted web-1.\n",
  });
  expect(await lab.status(uid)).toBe("accepted");
});
