import { userInfo } from "node:os";
import { expect } from "vitest";
import { startFleet } from "../support/fleet.ts";
import { isRoot } from "../support/nobody.ts";
import { newKey, publicHalf, ssh, sshPortOf, withoutSsh } from "../support/sshFleet.ts";
import type { Terminal } from "../support/terminal.ts";
import { type PageFleet, startPageFleet } from "./PageFleet.ts";
import { type OnEnd, pageTypedIn, typed, typedPage } from "./PageTest.ts";

interface EnrollingFleet extends PageFleet {
  readonly sshPort: number;
  /** The address of the device, `<namespace>.<device>`, after the acceptance. */
  address: string;
  readonly onEnd: OnEnd;
}

/** Runs the printed command on the device, accepts the device, and returns its address. */
async function enrollBy(context: EnrollingFleet, terminal: Terminal): Promise<void> {
  await terminal.untilShown("(Ctrl-C to stop)");
  const printed = /^ {2}(gatehouse-agent run .*?) +#/m.exec(terminal.shown())?.[1] ?? "";
  // The agent of root needs a user for its sessions, as the page describes.
  const command = `${printed} --data-dir agent${isRoot ? " --user nobody" : ""}`;
  let isOpen = () => {};
  const opened = new Promise<void>((resolve) => {
    isOpen = resolve;
  });
  const agent = await context.shell.start(command, (line) => {
    if (line.includes('"tunnel open"')) isOpen();
    return /"uid":"([0-9a-f]+)"/.exec(line)?.[1];
  });
  context.onEnd(agent.stop);
  await terminal.untilShown("Accept this device? [y/N] ");
  expect(/^ {2}uid +(\S+)/m.exec(terminal.shown())?.[1]).toBe(agent.value);
  terminal.type("y");
  expect([await terminal.code, terminal.shown()]).toEqual([0, expect.stringContaining("Accepted")]);
  context.shell.record(terminal.shown());
  [, context.address = ""] = /ssh (?:-p \d+ )?<login>@(\S+)@127\.0\.0\.1/.exec(terminal.shown()) ?? [];
  await opened;
}

export const firstDevice = typedPage<EnrollingFleet>({
  path: "docs/get-started/first-device.md",
  skip: withoutSsh,
  async start(folder, onEnd) {
    const flags = ["--ssh-port", "0", "--ssh-refusals-per-address", "0"];
    const fleet = await startFleet([], { flags });
    onEnd(fleet.stop);
    const context = await startPageFleet(folder, onEnd, { fleet, empty: true });
    return { ...context, sshPort: sshPortOf(fleet.service), address: "", onEnd };
  },
  lines: [
    typed("export GATEHOUSE_URL"),
    typed("export GATEHOUSE_USERNAME"),
    typed("gatehouse device enroll", {
      by: (context, line) => enrollBy(context, context.shell.open(line)),
    }),
  ],
  async after({ client, shell, address, sshPort: port }) {
    const key = newKey(shell.folder, "key");
    const login = isRoot ? "nobody" : userInfo().username;
    const run = () => ssh({ to: `${login}@${address}`, port, key, command: "echo in $SHELL" });
    expect(await run()).toMatchObject({ code: 255, stdout: "" });
    const everything = { username: `^${login}$`, filter: { hostname: ".*" } };
    await client.createPublicKey({ body: { name: "key", data: publicHalf(key), ...everything } });
    expect(await run()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^in \//) });
  },
});

const QUICK_START = "test/packaging/quickStart.test.ts";

export const getStarted = [
  firstDevice,
  pageTypedIn("docs/get-started/quick-start.md", QUICK_START, "test/terraform/installed.test.ts"),
  pageTypedIn("docs/get-started/first-pull-request.md", QUICK_START),
];
